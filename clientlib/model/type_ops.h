// SPDX-License-Identifier: Apache-2.0
// Describes a member type to code that does not know it: its shape, and for containers how to reach inside.
//
// Reader, writer and schema are plain functions that walk these tables (json_reader.cc, json_writer.cc,
// openapi_schema.cc). Only the accessors are templates, a few instructions each. Lists and maps:
// container_ops.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "clientlib/model/box.h"
#include "clientlib/model/compact_string.h"
#include "clientlib/model/int_or_string.h"
#include "clientlib/model/json.h"
#include "clientlib/model/quantity.h"
#include "clientlib/model/time.h"

namespace kube {

struct FieldInfo;

enum class Shape : std::uint8_t {
  kBool,
  kInt32,
  kInt64,
  kDouble,
  kString,
  kCompactString,
  kTime,
  kMicroTime,
  kQuantity,
  kIntOrString,
  kJson,
  kEnum,
  kStruct,
  kOptional,
  kList,
  kMap,
};

struct TypeOps {
  Shape shape;
  const TypeOps* element = nullptr;  // Of kOptional, kList, and the values of kMap.

  std::span<const FieldInfo> (*fields)() = nullptr;  // kStruct

  std::span<const std::string_view> (*enum_names)() = nullptr;  // kEnum: name i is that of enumerator i.
  std::size_t (*enum_index)(const void*) = nullptr;
  void (*set_enum)(void*, std::size_t) = nullptr;

  // Bytes on the heap: of kList and kMap for each item, of kOptional for its value.
  std::size_t item_bytes = 0;

  void* (*emplace)(void*) = nullptr;            // kOptional: a new value.
  const void* (*value)(const void*) = nullptr;  // kOptional: null if there is none.

  std::size_t (*size)(const void*) = nullptr;    // kList, kMap
  void (*resize)(void*, std::size_t) = nullptr;  // kList: to that many; kMap: empty, with room for that many.
  void* (*at)(void*, std::size_t) = nullptr;     // kList
  void (*drop)(void*) = nullptr;                 // kList, after reading: drops items by is_kept(); null: keeps all.

  using Visit = void (*)(void* context, std::string_view key, const void* value);
  void* (*append)(void*, std::string_view key) = nullptr;           // kMap: a new value. REQUIRES: a key above all.
  void (*visit)(const void*, void* context, Visit each) = nullptr;  // kMap: each entry in order.
};

namespace internal {

template <typename T>
struct TypeOpsOf;

template <Shape kShape>
struct Leaf {
  static constexpr TypeOps kOps{.shape = kShape};
};
template <>
struct TypeOpsOf<bool> : Leaf<Shape::kBool> {};
template <>
struct TypeOpsOf<std::int32_t> : Leaf<Shape::kInt32> {};
template <>
struct TypeOpsOf<std::int64_t> : Leaf<Shape::kInt64> {};
template <>
struct TypeOpsOf<double> : Leaf<Shape::kDouble> {};
template <>
struct TypeOpsOf<std::string> : Leaf<Shape::kString> {};
template <>
struct TypeOpsOf<CompactString> : Leaf<Shape::kCompactString> {};
template <>
struct TypeOpsOf<Time> : Leaf<Shape::kTime> {};
template <>
struct TypeOpsOf<MicroTime> : Leaf<Shape::kMicroTime> {};
template <>
struct TypeOpsOf<Quantity> : Leaf<Shape::kQuantity> {};
template <>
struct TypeOpsOf<IntOrString> : Leaf<Shape::kIntOrString> {};
template <>
struct TypeOpsOf<Json> : Leaf<Shape::kJson> {};

template <typename T>
requires requires { T::Fields(); }
struct TypeOpsOf<T> {
  static constexpr TypeOps kOps{.shape = Shape::kStruct, .fields = &T::Fields};
};

template <typename E>
requires std::is_enum_v<E>
struct TypeOpsOf<E> {
  static constexpr TypeOps kOps{
      .shape = Shape::kEnum,
      .enum_names = [] { return std::span<const std::string_view>(EnumNames(E{})); },
      .enum_index = [](const void* e) { return static_cast<std::size_t>(*static_cast<const E*>(e)); },
      .set_enum = [](void* e, std::size_t index) { *static_cast<E*>(e) = static_cast<E>(index); }};
};

template <typename O, typename T, std::size_t kItemBytes>
struct OptionalOps {
  static constexpr TypeOps kOps{.shape = Shape::kOptional,
                                .element = &TypeOpsOf<T>::kOps,
                                .item_bytes = kItemBytes,
                                .emplace = [](void* o) -> void* { return &static_cast<O*>(o)->emplace(); },
                                .value = [](const void* o) -> const void* {
                                  const O& optional = *static_cast<const O*>(o);
                                  return optional.has_value() ? &*optional : nullptr;
                                }};
};
template <typename T>
struct TypeOpsOf<std::optional<T>> : OptionalOps<std::optional<T>, T, 0> {};
template <typename T>
struct TypeOpsOf<Box<T>> : OptionalOps<Box<T>, T, sizeof(T)> {};

}  // namespace internal
}  // namespace kube
