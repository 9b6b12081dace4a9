// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/structural_schema.h"

#include <gtest/gtest.h>

#include "tests/kit/must.h"

namespace kube::testing {
namespace {

using kit::FromText;

std::shared_ptr<const StructuralSchema> SchemaOf(std::string_view text) {
  auto schema = StructuralSchema::Parse(FromText(text));
  EXPECT_TRUE(schema) << (schema ? "" : schema.error().message());
  return schema ? *schema : nullptr;
}

// The schema of an object whose `spec` has the field `x`.
std::shared_ptr<const StructuralSchema> SchemaOfX(const std::string& x) {
  return SchemaOf(R"({"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": )" + x + "}}}}");
}

// "field|reason|message" of each error, one a line.
std::string Errors(const StructuralSchema& schema, const Json& object) {
  std::string text;
  for (const FieldError& error : schema.Validate(object))
    text += (text.empty() ? "" : "\n") + error.field + "|" + error.reason + "|" + error.message;
  return text;
}

TEST(StructuralSchema, RefusesWhatIsNotStructural) {
  for (const char* text : {R"([])", R"({})", R"({"type": "thing"})", R"({"type": "object", "properties": {"a": {}}})",
                           R"({"type": "array", "items": {"minimum": 1}})", R"({"$ref": "#/a"})",
                           R"({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"})",
                           R"({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"})",
                           R"({"type": "string", "pattern": "("})"}) {
    const auto schema = StructuralSchema::Parse(FromText(text));
    ASSERT_FALSE(schema) << text;
    EXPECT_EQ(schema.error().code(), ErrorCode::kInvalidArgument) << text;
  }
}

TEST(StructuralSchema, KnowsFieldsListsAndMaps) {
  const auto schema = SchemaOf(R"({"type": "object", "properties": {
    "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
              "items": {"type": "object", "properties": {"port": {"type": "integer"},
                        "protocol": {"type": "string", "default": "TCP"}}}},
    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    "words": {"type": "array", "items": {"type": "string"}},
    "ref": {"type": "object", "x-kubernetes-map-type": "atomic"},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}}}})");

  const StructuralSchema& ports = *schema->Property("ports");
  EXPECT_EQ(ports.list_type(), StructuralSchema::ListType::kMap);
  EXPECT_EQ(ports.list_map_keys(), (std::vector<std::string>{"port", "protocol"}));
  EXPECT_EQ(*ports.Items()->Property("protocol")->default_value(), Json("TCP"));
  EXPECT_EQ(ports.Items()->Property("port")->default_value(), nullptr);
  EXPECT_EQ(schema->Property("tags")->list_type(), StructuralSchema::ListType::kSet);
  EXPECT_EQ(schema->Property("words")->list_type(), StructuralSchema::ListType::kAtomic);
  EXPECT_TRUE(schema->Property("ref")->is_atomic_map());
  EXPECT_NE(schema->Property("labels")->Property("any"), nullptr);
  EXPECT_FALSE(schema->Property("labels")->HasProperty("any"));
  EXPECT_TRUE(schema->HasProperty("labels"));
  EXPECT_EQ(schema->Property("unknown"), nullptr);
}

TEST(StructuralSchema, PrunesWhatItDoesNotKnow) {
  const auto schema = SchemaOf(R"({"type": "object", "properties": {
    "metadata": {"type": "object"},
    "spec": {"type": "object", "properties": {
      "a": {"type": "integer"},
      "list": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "integer"}}}},
      "map": {"type": "object", "additionalProperties": {"type": "object"}},
      "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
               "properties": {"closed": {"type": "object"}}},
      "embedded": {"type": "object", "x-kubernetes-embedded-resource": true}}}}})");
  Json object = FromText(R"({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "extra": 1, "spec": {
    "a": 1, "typo": 2, "list": [{"b": 1, "c": 2}], "map": {"k": {"gone": 1}},
    "open": {"any": {"thing": 1}, "closed": {"gone": 1}},
    "embedded": {"apiVersion": "v1", "kind": "P", "metadata": {"name": "p"}, "gone": 1}}})");

  schema->Prune(object);

  EXPECT_EQ(object, FromText(R"({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {
    "a": 1, "list": [{"b": 1}], "map": {"k": {}}, "open": {"any": {"thing": 1}, "closed": {}},
    "embedded": {"apiVersion": "v1", "kind": "P", "metadata": {"name": "p"}}}})"))
      << ToText(object);
}

TEST(StructuralSchema, DefaultsInObjectsThatAreThere) {
  const auto schema = SchemaOf(R"({"type": "object", "properties": {
    "policy": {"type": "object", "default": {}, "properties": {"limit": {"type": "integer", "default": 1}}},
    "absent": {"type": "object", "properties": {"x": {"type": "integer", "default": 1}}},
    "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string", "default": "y"}}}},
    "map": {"type": "object", "additionalProperties": {"type": "object",
            "properties": {"x": {"type": "boolean", "default": false}}}}}})");
  Json object = FromText(R"({"list": [{}, {"x": "z"}], "map": {"k": {}}})");

  schema->SetDefaults(object);

  EXPECT_EQ(object,
            FromText(R"({"list": [{"x": "y"}, {"x": "z"}], "map": {"k": {"x": false}}, "policy": {"limit": 1}})"))
      << ToText(object);
}

TEST(StructuralSchema, TreatsForbiddenNullsAsMissing) {
  const auto schema = SchemaOf(R"({"type": "object", "properties": {
    "defaulted": {"type": "integer", "default": 1}, "plain": {"type": "integer"},
    "nullable": {"type": "integer", "nullable": true}, "both": {"type": "integer", "nullable": true, "default": 1}}})");
  Json object = FromText(R"({"defaulted": null, "plain": null, "nullable": null, "both": null, "unknown": null})");

  schema->SetDefaults(object);

  EXPECT_EQ(object, FromText(R"({"defaulted": 1, "nullable": null, "both": null, "unknown": null})")) << ToText(object);
}

// The more usual rules are those of tests/contract/schema_test.cc (SchemaRule).
TEST(StructuralSchema, ReportsEachRuleInTheServersWords) {
  struct Case {
    const char *schema, *value, *want;
  };
  for (const Case& c : {
           Case{R"({"type": "number", "maximum": 1.5, "exclusiveMaximum": true})", "1.5",
                "spec.x|FieldValueInvalid|Invalid value: 1.5: spec.x in body should be less than 1.5"},
           Case{R"({"type": "integer", "enum": [1, 2]})", "3",
                "spec.x|FieldValueNotSupported|Unsupported value: 3: supported values: \"1\", \"2\""},
           Case{R"({"type": "array", "items": {"type": "integer"}, "uniqueItems": true})", "[1, 2, 1]",
                "spec.x|FieldValueInvalid|Invalid value: \"\": spec.x in body shouldn't contain duplicates"},
           Case{R"({"type": "object", "minProperties": 1})", "{}",
                "spec.x|FieldValueInvalid|Invalid value: 0: spec.x in body should have at least 1 properties"},
           Case{R"({"type": "array", "items": {"type": "string", "minLength": 1}})", R"(["a", ""])",
                "spec.x[1]|FieldValueInvalid|Invalid value: \"\": spec.x[1] in body should be at least 1 "
                "chars long"},
           Case{R"({"type": "integer", "format": "int32"})", "1.5",
                "spec.x|FieldValueTypeInvalid|Invalid value: \"float64\": spec.x in body must be of type "
                "int32: "
                "\"float64\"\n"
                "<nil>|FieldValueInvalid|Invalid value: \"\": Checked value must be of type integer with "
                "format int32 "
                "in spec.x"},
           Case{R"({"type": "integer"})", "1.5",
                "spec.x|FieldValueTypeInvalid|Invalid value: \"number\": spec.x in body must be of type "
                "integer: "
                "\"number\"\n"
                "<nil>|FieldValueInvalid|Invalid value: \"\": Checked value must be of type integer (default "
                "format) "
                "in spec.x"},
           Case{R"({"type": "integer", "format": "int32"})", "3000000000",
                "<nil>|FieldValueInvalid|Invalid value: \"\": Checked value must be of type integer with "
                "format int32 "
                "in spec.x"},
       }) {
    EXPECT_EQ(Errors(*SchemaOfX(c.schema), FromText(std::string(R"({"spec": {"x": )") + c.value + "}}")), c.want);
  }
}

TEST(StructuralSchema, ReportsWrongTypes) {
  struct Case {
    const char *schema, *value, *want, *got;
  };
  for (const Case& c : {
           Case{R"({"type": "integer"})", R"("a")", "integer", "string"},
           Case{R"({"type": "integer", "format": "int32"})", R"("a")", "integer", "string"},
           Case{R"({"type": "integer", "format": "int32"})", "true", "int32", ""},
           Case{R"({"type": "string"})", "1", "string", "integer"},
           Case{R"({"type": "string"})", "null", "string", "null"},
           Case{R"({"type": "boolean"})", R"("true")", "boolean", "string"},
           Case{R"({"type": "object"})", "[]", "object", "array"},
           Case{R"({"type": "array", "items": {"type": "string"}})", "{}", "array", "object"},
           Case{R"({"x-kubernetes-int-or-string": true})", "true", "integer,string", "boolean"},
       }) {
    const std::string got = "\"" + std::string(c.got) + "\"";
    EXPECT_EQ(Errors(*SchemaOfX(c.schema), FromText(std::string(R"({"spec": {"x": )") + c.value + "}}")),
              "spec.x|FieldValueTypeInvalid|Invalid value: " + got + ": spec.x in body must be of type " + c.want +
                  ": " + got);
  }
}

TEST(StructuralSchema, AcceptsWhatFits) {
  struct Case {
    const char *schema, *value;
  };
  for (const Case& c : {
           Case{R"({"type": "number"})", "1"},
           Case{R"({"type": "integer"})", "2.0"},
           Case{R"({"type": "integer", "format": "int64"})", "3000000000"},
           Case{R"({"type": "number", "format": "double"})", "1.5"},
           Case{R"({"type": "string", "nullable": true})", "null"},
           Case{R"({"type": "string", "maxLength": 2})", R"("äö")"},
           Case{R"({"type": "string", "pattern": "b"})", R"("abc")"},
           Case{R"({"type": "string", "format": "date-time"})", R"("2026-01-02T03:04:05Z")"},
           Case{R"({"type": "string", "format": "unheard-of"})", R"("?")"},
           Case{R"({"x-kubernetes-int-or-string": true, "pattern": "%$"})", "5"},
           Case{R"({"x-kubernetes-int-or-string": true, "pattern": "%$"})", R"("5%")"},
           Case{R"({"x-kubernetes-preserve-unknown-fields": true})", R"([{"any": null}])"},
       }) {
    EXPECT_EQ(Errors(*SchemaOfX(c.schema), FromText(std::string(R"({"spec": {"x": )") + c.value + "}}")), "")
        << c.schema;
  }
}

TEST(StructuralSchema, ReportsAlternativesWithoutAField) {
  struct Case {
    const char *schema, *value, *want;
  };
  const std::string any = "<nil>|FieldValueInvalid|Invalid value: \"\": \"spec.x\" ";
  const char* const one_of =
      R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                                 "oneOf": [{"required": ["a"]}, {"required": ["b"]}]})";
  for (const Case& c : {
           Case{R"({"type": "integer", "anyOf": [{"minimum": 5}, {"enum": [1]}]})", "2",
                "must validate at least one schema (anyOf)\n"
                "spec.x|FieldValueInvalid|Invalid value: 2: spec.x in body should be greater than or equal "
                "to 5"},
           Case{one_of, "{}",
                "must validate one and only one schema (oneOf). Found none valid\n"
                "spec.x.a|FieldValueRequired|Required value"},
           Case{one_of, R"({"a": 1, "b": 1})",
                "must validate one and only one schema (oneOf). Found 2 valid alternatives"},
           Case{R"({"type": "integer", "not": {"enum": [3]}})", "3", "must not validate the schema (not)"},
       }) {
    EXPECT_EQ(Errors(*SchemaOfX(c.schema), FromText(std::string(R"({"spec": {"x": )") + c.value + "}}")), any + c.want);
  }
  EXPECT_EQ(Errors(*SchemaOfX(one_of), FromText(R"({"spec": {"x": {"a": 1}}})")), "");
  EXPECT_EQ(Errors(*SchemaOfX(R"({"type": "integer", "allOf": [{"minimum": 1}, {"maximum": 3}]})"),
                   FromText(R"({"spec": {"x": 4}})")),
            "spec.x|FieldValueInvalid|Invalid value: 4: spec.x in body should be less than or equal to 3\n" + any +
                "must validate all the schemas (allOf)");
}

TEST(StructuralSchema, ReportsEqualKeysOfListsOnce) {
  struct Case {
    const char *schema, *value, *want;
  };
  const char* const by_name = R"({"type": "array", "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "properties": {"name": {"type": "string"}}}})";
  const char* const by_two = R"({"type": "array", "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["a", "b"], "items": {"type": "object", "properties": {
      "a": {"type": "integer"}, "b": {"type": "integer"}}}})";
  const char* const set = R"({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}})";
  for (const Case& c :
       {Case{by_name, R"([{"name": "a"}, {"name": "a"}, {"name": "a"}, {"name": "b"}])",
             "spec.x[1]|FieldValueDuplicate|Duplicate value: {\"name\":\"a\"}"},
        Case{by_two, R"([{"a": 1, "b": 1}, {"a": 1, "b": 2}])", ""},
        Case{by_two, R"([{"a": 1}, {"a": 1}])", "spec.x[1]|FieldValueDuplicate|Duplicate value: {\"a\":1}"},
        Case{set, R"(["a", "b", "a"])", "spec.x[2]|FieldValueDuplicate|Duplicate value: \"a\""}}) {
    EXPECT_EQ(Errors(*SchemaOfX(c.schema), FromText(std::string(R"({"spec": {"x": )") + c.value + "}}")), c.want);
  }
}

}  // namespace
}  // namespace kube::testing
