// SPDX-License-Identifier: Apache-2.0
// One table per struct describes its fields once: reading, writing, and the CRD's schema all come from it.
//
//   std::span<const kube::FieldInfo> WorkersSpec::Fields() {
//     using kube::Field;
//     using T = WorkersSpec;
//     static constexpr kube::FieldInfo kFields[] = {
//         Field<&T::image>("image", {.doc = "Image of the workers.", .required = true, .min_length = 1}),
//         Field<&T::min_replicas>("minReplicas", {.minimum = 0}),
//     };
//     return kFields;
//   }
//
// Member types: bool, std::int32_t, std::int64_t, double, std::string, CompactString, Time, MicroTime, Quantity,
// IntOrString, Json (opaque), enums with an EnumNames(E) overload, structs with Fields(), and std::optional, Box,
// std::vector, std::map<std::string, ...>, StringMap, ResourceList of these. EnumNames(E) returns an array or span of
// string_view, name i for enumerator i; "" is a name for "unset". The table is type-erased: one TypeOps per leaf type,
// no template per struct, which keeps compile time and code size low.
//
// Reading: null counts as missing; unknown fields are skipped; a field given twice is an error; `required` is not
// checked, as the API server has done that. A Json of so many small values that it would take far more memory than text
// becomes a string that says so. Writing: an empty optional, string, vector, map, Time, enum named "" or
// null Json is omitted unless the field is required; numbers and booleans are always written unless `.omit_zero`. A
// struct that would be {} is omitted unless required. What an optional holds is always written. Two rows of the same
// name next to each other read the same JSON twice; one of them is `.read_only`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "clientlib/model/container_ops.h"
#include "clientlib/model/type_ops.h"

namespace kube {

struct CelRule {
  std::string_view rule;     // CEL over `self`.
  std::string_view message;  // What the user reads; names field and limit.
};

struct FieldRules {
  std::string_view doc = {};
  bool required = false;
  bool omit_zero = false;
  bool nullable = false;
  bool read_only = false;  // Read, but never written and not in the schema.
  std::int64_t minimum = INT64_MIN;
  std::int64_t maximum = INT64_MAX;
  std::int64_t min_length = -1;  // Of a string, or of each value of a map of strings.
  std::int64_t max_length = -1;
  std::int64_t min_items = -1;  // Of a list or a map.
  std::int64_t max_items = -1;
  std::string_view pattern = {};
  std::string_view format = {};
  std::string_view default_json = {};                  // `1`, `"Auto"`: the API server fills it in.
  std::string_view list_type = {};                     // atomic | set | map
  std::string_view list_map_key = {};                  // With list_type map.
  std::span<const std::string_view> enum_values = {};  // Of a string; enums bring their own names.
  std::span<const CelRule> cel = {};
  std::span<const CelRule> item_cel = {};  // Over each item of a list: the API server then says which one is wrong.
  std::string_view json_type = {};         // Of a Json: object (if not given) | array (of objects) | any
};

struct FieldInfo {
  std::string_view name;  // As in the API.
  const TypeOps* type;    // How to read, write and describe the member.
  void* (*get)(void*);    // The member of a struct.
  FieldRules rules;
};

namespace internal {
template <typename M>
struct MemberPointer;
template <typename T, typename M>
struct MemberPointer<M T::*> {
  using Struct = T;
  using Member = M;
};
}  // namespace internal

template <auto kMember>
constexpr FieldInfo Field(std::string_view name, FieldRules rules = {}) {
  using Pointer = internal::MemberPointer<decltype(kMember)>;
  return {.name = name,
          .type = &internal::TypeOpsOf<typename Pointer::Member>::kOps,
          .get = [](void* s) -> void* { return &(static_cast<typename Pointer::Struct*>(s)->*kMember); },
          .rules = rules};
}

}  // namespace kube
