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

TEST(StructuralSchema, AcceptsWhatFits) {
  struct Case {
    const char *schema, *value;
  };
  for (const Case& c : {
           Case{R"({"type": "integer", "format": "int64"})", "3000000000"},
           Case{R"({"type": "string", "maxLength": 2})", R"("äö")"},
           Case{R"({"type": "string", "pattern": "b"})", R"("abc")"},
           Case{R"({"type": "string", "format": "unheard-of"})", R"("?")"},
           Case{R"({"x-kubernetes-int-or-string": true, "pattern": "%$"})", "5"},
           Case{R"({"x-kubernetes-int-or-string": true, "pattern": "%$"})", R"("5%")"},
       }) {
    EXPECT_EQ(Errors(*SchemaOfX(c.schema), FromText(std::string(R"({"spec": {"x": )") + c.value + "}}")), "")
        << c.schema;
  }
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
