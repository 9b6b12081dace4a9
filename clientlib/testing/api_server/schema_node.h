// SPDX-License-Identifier: Apache-2.0
// A StructuralSchema as parsed: one node for each field. Internal to structural_schema.h.
#pragma once

#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "clientlib/testing/api_server/structural_schema.h"

namespace kube::testing::internal {

// Bits: int-or-string fields have two.
enum JsonType : unsigned {
  kObject = 1,
  kArray = 2,
  kString = 4,
  kInteger = 8,
  kNumber = 16,
  kBoolean = 32,
};

struct SchemaNode final : StructuralSchema {
  using Child = std::unique_ptr<const SchemaNode>;

  unsigned types = 0;     // Of JsonType; none: any.
  std::string type_text;  // "integer,string", for messages.
  std::string format;
  bool is_nullable = false;
  bool is_embedded_resource = false;
  bool preserves_unknown = false;
  bool is_map_atomic = false;
  ListType list = ListType::kAtomic;
  std::vector<std::string> map_keys;
  std::optional<Json> default_json;

  std::vector<std::pair<std::string, Child>> properties;  // By name.
  Child additional;                                       // additionalProperties, if a schema.
  bool allows_additional = false;                         // additionalProperties: true
  Child items;
  std::vector<std::string> required;

  std::vector<Json> enum_values;
  std::optional<Json> minimum, maximum, multiple_of;
  bool is_minimum_exclusive = false, is_maximum_exclusive = false;
  std::optional<std::int64_t> min_length, max_length, min_items, max_items, min_properties, max_properties;
  bool has_unique_items = false;
  std::string pattern;
  std::optional<std::regex> regex;
  std::vector<Child> all_of, any_of, one_of;
  Child negated;  // not

  const SchemaNode* Declared(std::string_view name) const;  // Among `properties`.
  const SchemaNode* At(std::string_view name) const;        // There or `additional`.

  const StructuralSchema* Property(std::string_view name) const override { return At(name); }
  bool HasProperty(std::string_view name) const override { return Declared(name) != nullptr; }
  const StructuralSchema* Items() const override { return items.get(); }
  ListType list_type() const override { return list; }
  const std::vector<std::string>& list_map_keys() const override { return map_keys; }
  bool is_atomic_map() const override { return is_map_atomic; }
  bool preserves_unknown_fields() const override { return preserves_unknown; }
  const Json* default_value() const override { return default_json ? &*default_json : nullptr; }

  void Prune(Json& object) const override;
  void SetDefaults(Json& object) const override;
  std::vector<FieldError> Validate(const Json& object) const override;
};

}  // namespace kube::testing::internal
