// SPDX-License-Identifier: Apache-2.0
// A JSON value for what has no C++ type: pod templates, patches, objects to apply.
//
// A plain value: copied, compared, changed freely. Objects keep the order of their members; two objects are
// equal when their members are, in any order. Integers that fit std::int64_t stay exact, larger ones become
// double, as in Go.
// Parsing is bounded (JsonLimits), because such text comes from outside: depth, size and number of values.
// Duplicate keys, of which Go readers take the last and others the first, are refused.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "clientlib/base/result.h"
#include "clientlib/model/compact_string.h"

namespace kube {

struct JsonLimits {
  std::size_t max_bytes = 64UL << 20;
  int max_depth = 100;  // At most 500: values are built and destroyed recursively.
  // Values and keys together: the two bytes of "1," take 16 while they are read, and 40 more in a Json.
  std::size_t max_values = 4UL << 20;
};

class Json {
 public:
  using Member = std::pair<CompactString, Json>;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;

  Json() = default;                                       // null
  Json(std::same_as<bool> auto value) : value_(value) {}  // No pointer becomes a bool.
  Json(std::integral auto value) requires(!std::same_as<decltype(value), bool>)
      : value_(static_cast<std::int64_t>(value)) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(const CompactString& value) : Json(value.view()) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  static Json MakeObject(std::initializer_list<Member> members = {}) { return Json(Object(members)); }
  static Json MakeArray(std::initializer_list<Json> items = {}) { return Json(Array(items)); }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }

  // The value of that type, or null if it has another type.
  const bool* AsBool() const { return std::get_if<bool>(&value_); }
  const std::int64_t* AsInt() const { return std::get_if<std::int64_t>(&value_); }
  const double* AsDouble() const { return std::get_if<double>(&value_); }
  const std::string* AsString() const { return std::get_if<std::string>(&value_); }
  const Array* AsArray() const { return std::get_if<Array>(&value_); }
  Array* AsArray() { return std::get_if<Array>(&value_); }
  const Object* AsObject() const { return std::get_if<Object>(&value_); }
  Object* AsObject() { return std::get_if<Object>(&value_); }

  // The member of that name; null if there is none or this is no object.
  const Json* Find(std::string_view key) const;
  Json* Find(std::string_view key);
  // As Find(), but checks the member at `next` first, and sets `next` behind the one it found: two objects whose
  // members have the same order, as those of the API server, are compared in linear time.
  const Json* FindFrom(std::size_t& next, std::string_view key) const;
  // The value at a path of member names: At({"spec", "replicas"}); null if any step is missing.
  const Json* At(std::initializer_list<std::string_view> path) const;
  // The member of that name, added as null if missing. A null becomes an object. REQUIRES: object or null.
  Json& operator[](std::string_view key);
  // Adds to an array and returns the new item; a null becomes an array. REQUIRES: array or null.
  Json& Append(Json item);
  bool Erase(std::string_view key);  // True if it was there.

  friend bool operator==(const Json& a, const Json& b);

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

// Errors: kDecode with the byte offset; kTooLarge over a limit.
Result<Json> ParseJson(std::string_view text, const JsonLimits& limits = {});
std::string ToText(const Json& value);  // Compact, members in their order.

// RFC 7396: `patch` merged into `target`; a null member removes.
void MergePatch(Json& target, const Json& patch);

// True if `live` has every field of `wanted` with an equal value. Reconcilers compare a child with the wanted one this
// way, so as not to undo defaults and fields of other writers. Lists whose items are objects with a `name`, `key`,
// `containerPort`, `mountPath` or `port` member are matched by that member (the first of these that all wanted items
// have), others by position with equal length. Empty, null, false and 0 in `wanted` equal a missing field; quantities
// (below `requests`, `limits` and the like) are compared by value: "0.5" equals "500m". It does not notice a field that
// `wanted` no longer has; only server-side apply removes such a field.
bool IsCovered(const Json& wanted, const Json& live);

}  // namespace kube
