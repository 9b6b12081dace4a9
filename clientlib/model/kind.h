// SPDX-License-Identifier: Apache-2.0
// What the API server calls a kind, and how objects of it look in memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/field.h"
#include "clientlib/model/meta.h"

namespace kube {

// The base of every cached type. Not polymorphic: a shared_ptr<const Object> made from a shared_ptr<const Pod> destroys
// a Pod, and the Kind that it was made with tells its type.
struct Object {
  ObjectMeta metadata;
};

struct Kind {
  std::string_view group = {};  // "" for the core group.
  std::string_view version = {};
  std::string_view kind = {};
  std::string_view plural = {};
  bool is_namespaced = true;

  std::span<const FieldInfo> fields = {};       // Of the C++ type, without apiVersion, kind and metadata.
  std::shared_ptr<Object> (*make)() = nullptr;  // A new, empty object of the C++ type.
  void* (*body)(Object&) = nullptr;             // The struct that `fields` describes (the derived object itself).

  std::string ApiVersion() const;  // "apps/v1", "v1"
};

// `kind` with what the C++ type T : Object adds to it:
//   static const Kind kKind = MakeKind<Pod>({.version = "v1", .kind = "Pod", .plural = "pods", .fields =
//   kFields});
template <typename T>
Kind MakeKind(Kind kind) {
  kind.make = []() -> std::shared_ptr<Object> { return std::make_shared<T>(); };
  kind.body = [](Object& object) -> void* { return static_cast<T*>(&object); };
  return kind;
}

// Each API type T : Object has `static const Kind& ResourceKind();` with static storage.
template <typename T>
const Kind& KindOf() {
  return T::ResourceKind();
}

// Reads one object. metadata is read by ObjectMeta's own table; unknown fields are skipped. A text of another kind is
// refused, but PartialObjectMetadata is accepted for every kind. Errors: kDecode with the path of the field:
// "spec.workersSpec.minReplicas: expected an integer, found a string". Blocking CPU work only; thread-safe.
Result<std::shared_ptr<Object>> DecodeObject(const Kind& kind, std::string_view text);

// One page of a list, read in one go.
struct DecodedList {
  std::vector<std::shared_ptr<Object>> items;
  std::string resource_version;
  std::string continue_token;  // Empty: the last page.
  std::int64_t remaining_item_count = 0;
};

// A list is as large as the cluster: 100,000 pods without paging are 500 MB and 30 million values.
inline constexpr JsonLimits kListLimits{.max_bytes = 1UL << 30, .max_values = 1UL << 27};

// Reads a list of objects of `kind`. Errors: kDecode: "items[3].spec.nodeName: expected a string, found a
// list".
Result<DecodedList> DecodeObjectList(const Kind& kind, std::string_view text, const JsonLimits& limits = kListLimits);

// The whole object with apiVersion and kind, compact JSON. What the C++ type does not hold is missing, so
// never send it as an update; tests and new objects use it.
std::string EncodeObject(const Kind& kind, const Object& object);

template <typename T>
Result<std::shared_ptr<T>> Decode(std::string_view text) {
  Result<std::shared_ptr<Object>> object = DecodeObject(KindOf<T>(), text);
  if (!object) return std::move(object).error();
  return std::static_pointer_cast<T>(*std::move(object));
}

}  // namespace kube
