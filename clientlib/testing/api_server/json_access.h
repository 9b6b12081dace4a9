// SPDX-License-Identifier: Apache-2.0
// Reading fields of objects that may not have them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "clientlib/model/json.h"
#include "clientlib/model/meta.h"

namespace kube::testing {

// For texts that begin with a literal: g++ 12 falsely warns of overlap in "a" + std::string().
inline std::string Concat(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text.append(part);
  return text;
}

using JsonPath = std::initializer_list<std::string_view>;

// Empty if the value is missing or no string.
inline std::string_view TextAt(const Json& json, JsonPath path) {
  const Json* const found = json.At(path);
  const std::string* const text = found ? found->AsString() : nullptr;
  return text ? std::string_view(*text) : std::string_view();
}

inline std::int64_t IntAt(const Json& json, JsonPath path, std::int64_t otherwise = 0) {
  const Json* const found = json.At(path);
  const std::int64_t* const number = found ? found->AsInt() : nullptr;
  return number ? *number : otherwise;
}

// Empty if there is no array.
inline const Json::Array& ItemsAt(const Json& json, JsonPath path) {
  static const Json::Array kNone;
  const Json* const found = json.At(path);
  const Json::Array* const items = found ? found->AsArray() : nullptr;
  return items ? *items : kNone;
}

inline bool IsTrueAt(const Json& json, JsonPath path) {
  const Json* const found = json.At(path);
  return found && found->AsBool() && *found->AsBool();
}

// Missing, null, "", {} or [].
inline bool IsEmpty(const Json* json) {
  if (!json || json->is_null()) return true;
  if (const auto* object = json->AsObject()) return object->empty();
  if (const auto* array = json->AsArray()) return array->empty();
  return json->AsString() && json->AsString()->empty();
}
inline bool IsEmptyAt(const Json& json, JsonPath path) { return IsEmpty(json.At(path)); }

inline bool Same(const Json* a, const Json* b) { return a && b ? *a == *b : IsEmpty(a) && IsEmpty(b); }

// Copies `from[name]` to `to`, or erases it there if `from` has none.
inline void CopyMember(const Json& from, Json& to, std::string_view name) {
  if (const Json* const value = from.Find(name)) {
    to[name] = *value;
  } else {
    to.Erase(name);
  }
}

// Sets a member that is missing or null.
inline void SetIfMissing(Json& object, std::string_view name, Json value) {
  Json& member = object[name];
  if (member.is_null()) member = std::move(value);
}

// Returns the member `name`, which becomes an object if it is none.
inline Json& ObjectIn(Json& parent, std::string_view name) {
  Json& member = parent[name];
  if (!member.is_object()) member = Json::MakeObject();
  return member;
}

inline ObjectKey KeyOf(const Json& object) {
  return {std::string(TextAt(object, {"metadata", "namespace"})), std::string(TextAt(object, {"metadata", "name"}))};
}
inline std::string_view NameOf(const Json& object) { return TextAt(object, {"metadata", "name"}); }

}  // namespace kube::testing
