// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/structural_schema.h"

#include <algorithm>
#include <array>

#include "clientlib/testing/api_server/schema_node.h"

namespace kube::testing {
namespace {

using internal::SchemaNode;

// Nodes that only restrict values (inside anyOf and the like) need no type.
enum class Role { kStructure, kRestriction };

Error NotStructural(const std::string& path, std::string_view why) {
  return Error(ErrorCode::kInvalidArgument, "schema at \"" + (path.empty() ? "." : path) + "\": " + std::string(why));
}

unsigned TypeBit(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, unsigned>, 6> kTypes = {{{"object", internal::kObject},
                                                                                   {"array", internal::kArray},
                                                                                   {"string", internal::kString},
                                                                                   {"integer", internal::kInteger},
                                                                                   {"number", internal::kNumber},
                                                                                   {"boolean", internal::kBoolean}}};
  for (const auto& [type, bit] : kTypes) {
    if (type == name) return bit;
  }
  return 0;
}

std::string TextAt(const Json& json, std::string_view name) {
  const Json* const value = json.Find(name);
  const std::string* const text = value ? value->AsString() : nullptr;
  return text ? *text : std::string();
}

bool FlagAt(const Json& json, std::string_view name) {
  const Json* const value = json.Find(name);
  const bool* const flag = value ? value->AsBool() : nullptr;
  return flag && *flag;
}

std::optional<std::int64_t> CountAt(const Json& json, std::string_view name) {
  const Json* const value = json.Find(name);
  const std::int64_t* const count = value ? value->AsInt() : nullptr;
  return count ? std::optional(*count) : std::nullopt;
}

std::optional<Json> NumberAt(const Json& json, std::string_view name) {
  const Json* const value = json.Find(name);
  return value && (value->AsInt() || value->AsDouble()) ? std::optional(*value) : std::nullopt;
}

std::vector<std::string> TextsAt(const Json& json, std::string_view name) {
  std::vector<std::string> texts;
  const Json* const value = json.Find(name);
  if (!value || !value->AsArray()) return texts;
  for (const Json& item : *value->AsArray()) {
    if (const std::string* const text = item.AsString()) texts.push_back(*text);
  }
  return texts;
}

class Parser {
 public:
  Result<SchemaNode::Child> Parse(const Json& json, const std::string& path, Role role);

 private:
  Status ParseType(const Json& json, const std::string& path, Role role, SchemaNode& node);
  Status ParseListType(const Json& json, const std::string& path, SchemaNode& node);
  Status ParseValueRules(const Json& json, const std::string& path, SchemaNode& node);
  Status ParseChildren(const Json& json, const std::string& path, Role role, SchemaNode& node);
  Status ParseChild(const Json* json, const std::string& path, Role role, SchemaNode::Child& to);
  Status ParseAlternatives(const Json& json, std::string_view name, const std::string& path,
                           std::vector<SchemaNode::Child>& to);
};

Result<SchemaNode::Child> Parser::Parse(const Json& json, const std::string& path, Role role) {
  if (!json.is_object()) return NotStructural(path, "must be an object");
  if (json.Find("$ref")) return NotStructural(path, "$ref is not supported");
  auto node = std::make_unique<SchemaNode>();
  if (Status parsed = ParseType(json, path, role, *node); !parsed) return std::move(parsed).error();
  if (Status parsed = ParseListType(json, path, *node); !parsed) return std::move(parsed).error();
  if (Status parsed = ParseValueRules(json, path, *node); !parsed) return std::move(parsed).error();
  if (Status parsed = ParseChildren(json, path, role, *node); !parsed) return std::move(parsed).error();
  return SchemaNode::Child(std::move(node));
}

Status Parser::ParseType(const Json& json, const std::string& path, Role role, SchemaNode& node) {
  node.format = TextAt(json, "format");
  node.is_nullable = FlagAt(json, "nullable");
  node.is_embedded_resource = FlagAt(json, "x-kubernetes-embedded-resource");
  node.preserves_unknown = FlagAt(json, "x-kubernetes-preserve-unknown-fields");
  node.type_text = TextAt(json, "type");
  if (FlagAt(json, "x-kubernetes-int-or-string")) {
    node.types = internal::kInteger | internal::kString;
    node.type_text = "integer,string";
    return {};
  }
  if (!node.type_text.empty() && (node.types = TypeBit(node.type_text)) == 0)
    return NotStructural(path, "unknown type \"" + node.type_text + "\"");
  if (role == Role::kStructure && node.types == 0 && !node.preserves_unknown)
    return NotStructural(path, "must not be without a type");
  return {};
}

Status Parser::ParseListType(const Json& json, const std::string& path, SchemaNode& node) {
  node.is_map_atomic = TextAt(json, "x-kubernetes-map-type") == "atomic";
  node.map_keys = TextsAt(json, "x-kubernetes-list-map-keys");
  const std::string type = TextAt(json, "x-kubernetes-list-type");
  if (type == "map") {
    if (node.map_keys.empty()) return NotStructural(path, "a list of type map needs x-kubernetes-list-map-keys");
    node.list = StructuralSchema::ListType::kMap;
  } else if (type == "set") {
    node.list = StructuralSchema::ListType::kSet;
  } else if (!type.empty() && type != "atomic") {
    return NotStructural(path, "unknown list type \"" + type + "\"");
  }
  return {};
}

Status Parser::ParseValueRules(const Json& json, const std::string& path, SchemaNode& node) {
  if (const Json* const value = json.Find("default")) node.default_json = *value;
  if (const Json* const values = json.Find("enum"); values && values->AsArray()) node.enum_values = *values->AsArray();
  node.required = TextsAt(json, "required");
  node.minimum = NumberAt(json, "minimum");
  node.maximum = NumberAt(json, "maximum");
  node.multiple_of = NumberAt(json, "multipleOf");
  node.is_minimum_exclusive = FlagAt(json, "exclusiveMinimum");
  node.is_maximum_exclusive = FlagAt(json, "exclusiveMaximum");
  node.min_length = CountAt(json, "minLength");
  node.max_length = CountAt(json, "maxLength");
  node.min_items = CountAt(json, "minItems");
  node.max_items = CountAt(json, "maxItems");
  node.min_properties = CountAt(json, "minProperties");
  node.max_properties = CountAt(json, "maxProperties");
  node.has_unique_items = FlagAt(json, "uniqueItems");
  node.pattern = TextAt(json, "pattern");
  if (node.pattern.empty()) return {};
  try {
    node.regex.emplace(node.pattern, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error&) {
    return NotStructural(path, "pattern \"" + node.pattern + "\" is not understood");
  }
  return {};
}

Status Parser::ParseChildren(const Json& json, const std::string& path, Role role, SchemaNode& node) {
  if (const Json* const properties = json.Find("properties"); properties && properties->AsObject()) {
    for (const auto& [name, schema] : *properties->AsObject()) {
      Result<SchemaNode::Child> child = Parse(schema, path.empty() ? name.str() : path + "." + name, role);
      if (!child) return std::move(child).error();
      node.properties.emplace_back(name, std::move(*child));
    }
    std::sort(node.properties.begin(), node.properties.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  const Json* additional = json.Find("additionalProperties");
  if (additional && additional->AsBool()) {
    node.allows_additional = *additional->AsBool();
    additional = nullptr;
  }
  if (Status parsed = ParseChild(additional, path + ".*", role, node.additional); !parsed) return parsed;
  if (Status parsed = ParseChild(json.Find("items"), path + "[]", role, node.items); !parsed) return parsed;
  if (Status parsed = ParseChild(json.Find("not"), path, Role::kRestriction, node.negated); !parsed) return parsed;
  if (Status parsed = ParseAlternatives(json, "allOf", path, node.all_of); !parsed) return parsed;
  if (Status parsed = ParseAlternatives(json, "anyOf", path, node.any_of); !parsed) return parsed;
  return ParseAlternatives(json, "oneOf", path, node.one_of);
}

Status Parser::ParseChild(const Json* json, const std::string& path, Role role, SchemaNode::Child& to) {
  if (!json) return {};
  Result<SchemaNode::Child> child = Parse(*json, path, role);
  if (!child) return std::move(child).error();
  to = std::move(*child);
  return {};
}

Status Parser::ParseAlternatives(const Json& json, std::string_view name, const std::string& path,
                                 std::vector<SchemaNode::Child>& to) {
  const Json* const schemas = json.Find(name);
  if (!schemas || !schemas->AsArray()) return {};
  for (const Json& schema : *schemas->AsArray()) {
    if (Status parsed = ParseChild(&schema, path, Role::kRestriction, to.emplace_back()); !parsed) return parsed;
  }
  return {};
}

}  // namespace

const internal::SchemaNode* internal::SchemaNode::Declared(std::string_view name) const {
  const auto at =
      std::lower_bound(properties.begin(), properties.end(), name,
                       [](const auto& property, std::string_view wanted) { return property.first < wanted; });
  return at != properties.end() && at->first == name ? at->second.get() : nullptr;
}

const internal::SchemaNode* internal::SchemaNode::At(std::string_view name) const {
  const SchemaNode* const declared = Declared(name);
  return declared ? declared : additional.get();
}

Result<std::shared_ptr<const StructuralSchema>> StructuralSchema::Parse(const Json& open_api) {
  Result<SchemaNode::Child> root = Parser().Parse(open_api, "", Role::kStructure);
  if (!root) return std::move(root).error();
  return std::shared_ptr<const StructuralSchema>(std::move(*root));
}

}  // namespace kube::testing
