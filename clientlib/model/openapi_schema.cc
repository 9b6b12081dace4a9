// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/openapi_schema.h"

#include <cassert>

namespace kube {
namespace {

Json IntOrStringSchema() {
  return Json::MakeObject(
      {{"anyOf", Json::MakeArray({Json::MakeObject({{"type", "integer"}}), Json::MakeObject({{"type", "string"}})})},
       {"x-kubernetes-int-or-string", true}});
}

Json OpaqueObject() { return Json::MakeObject({{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}}); }

Json OpaqueSchema(std::string_view json_type) {
  if (json_type == "any") return Json::MakeObject({{"x-kubernetes-preserve-unknown-fields", true}});
  if (json_type == "array") return Json::MakeObject({{"type", "array"}, {"items", OpaqueObject()}});
  assert(json_type.empty() || json_type == "object");
  return OpaqueObject();
}

Json StringsOf(std::span<const std::string_view> names) {
  Json list = Json::MakeArray();
  for (const std::string_view name : names) {
    if (!name.empty()) list.Append(name);
  }
  return list;
}

Json SchemaOfType(const TypeOps& type, const FieldRules& rules) {
  const auto typed = [](std::string_view name) { return Json::MakeObject({{"type", name}}); };
  const auto formatted = [](std::string_view name, std::string_view format) {
    return Json::MakeObject({{"type", name}, {"format", format}});
  };
  switch (type.shape) {
    case Shape::kBool: return typed("boolean");
    case Shape::kInt32: return formatted("integer", "int32");
    case Shape::kInt64: return formatted("integer", "int64");
    case Shape::kDouble: return formatted("number", "double");
    case Shape::kString:
    case Shape::kCompactString: return typed("string");
    case Shape::kTime:
    case Shape::kMicroTime: return formatted("string", "date-time");
    case Shape::kIntOrString: return IntOrStringSchema();
    case Shape::kQuantity: {
      Json schema = IntOrStringSchema();
      schema["pattern"] = R"(^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]+))?$)";
      return schema;
    }
    case Shape::kJson: return OpaqueSchema(rules.json_type);
    case Shape::kEnum: {
      Json schema = typed("string");
      schema["enum"] = StringsOf(type.enum_names());
      return schema;
    }
    case Shape::kStruct: return SchemaOf(type.fields());
    case Shape::kOptional: return SchemaOfType(*type.element, rules);
    case Shape::kList: {
      Json schema = typed("array");
      schema["items"] = SchemaOfType(*type.element, rules);
      return schema;
    }
    case Shape::kMap: {
      Json schema = typed("object");
      schema["additionalProperties"] = SchemaOfType(*type.element, rules);
      return schema;
    }
  }
  return {};
}

void AddCel(Json& schema, std::span<const CelRule> rules) {
  for (const CelRule& rule : rules) {
    Json entry = Json::MakeObject({{"rule", rule.rule}});
    if (!rule.message.empty()) entry["message"] = rule.message;
    schema["x-kubernetes-validations"].Append(std::move(entry));
  }
}

void AddLimit(Json& schema, std::string_view name, std::int64_t limit, std::int64_t none) {
  if (limit != none) schema[name] = limit;
}

}  // namespace

Json SchemaOf(const FieldInfo& field) {
  const FieldRules& rules = field.rules;
  const TypeOps* type = field.type;
  while (type->shape == Shape::kOptional) type = type->element;

  Json schema = Json::MakeObject();
  if (!rules.doc.empty()) schema["description"] = rules.doc;
  const Json of_type = SchemaOfType(*type, rules);
  for (const auto& [key, value] : *of_type.AsObject()) schema[key] = value;

  if (!rules.format.empty()) schema["format"] = rules.format;
  if (rules.nullable) schema["nullable"] = true;
  AddLimit(schema, "minimum", rules.minimum, INT64_MIN);
  AddLimit(schema, "maximum", rules.maximum, INT64_MAX);
  const bool is_map = type->shape == Shape::kMap;
  Json& text = is_map ? schema["additionalProperties"] : schema;
  AddLimit(text, "minLength", rules.min_length, -1);
  AddLimit(text, "maxLength", rules.max_length, -1);
  AddLimit(schema, is_map ? "minProperties" : "minItems", rules.min_items, -1);
  AddLimit(schema, is_map ? "maxProperties" : "maxItems", rules.max_items, -1);
  if (!rules.pattern.empty()) schema["pattern"] = rules.pattern;
  if (!rules.enum_values.empty()) schema["enum"] = StringsOf(rules.enum_values);
  if (!rules.default_json.empty()) {
    Result<Json> value = ParseJson(rules.default_json);
    assert(value && "a default is written as JSON");
    schema["default"] = *std::move(value);
  }
  if (!rules.list_type.empty()) schema["x-kubernetes-list-type"] = rules.list_type;
  if (!rules.list_map_key.empty()) schema["x-kubernetes-list-map-keys"] = Json::MakeArray({rules.list_map_key});
  AddCel(schema, rules.cel);
  if (!rules.item_cel.empty()) AddCel(schema["items"], rules.item_cel);
  return schema;
}

Json SchemaOf(std::span<const FieldInfo> fields, std::string_view doc, std::span<const CelRule> cel) {
  Json schema = Json::MakeObject();
  if (!doc.empty()) schema["description"] = doc;
  schema["type"] = "object";
  Json required;
  for (const FieldInfo& field : fields) {
    if (field.rules.read_only) continue;
    schema["properties"][field.name] = SchemaOf(field);
    if (field.rules.required) required.Append(field.name);
  }
  if (!required.is_null()) schema["required"] = std::move(required);
  AddCel(schema, cel);
  return schema;
}

}  // namespace kube
