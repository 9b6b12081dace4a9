// SPDX-License-Identifier: Apache-2.0
// What a CRD's schema does to its objects: pruning, defaults, validation.
#include "tests/contract/server.h"

namespace kube::contract {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class Schema : public Contract {
 protected:
  Answer Try(const std::string& spec, const std::string& query = "?dryRun=All") {
    return Post(Widgets() + query, Widget("w", spec));
  }
};

struct Broken {
  const char *spec, *reason, *field, *message;
};

class SchemaRule : public Contract, public ::testing::WithParamInterface<Broken> {};

TEST_P(SchemaRule, IsExplained) {
  const Answer answer = Post(Widgets(), Widget("w", GetParam().spec));

  const std::string field = GetParam().field, message = GetParam().message;
  EXPECT_TRUE(Refused(answer, 422, "Invalid", "Widget.contract.grus.dev \"w\" is invalid: " + field + ": " + message));
  EXPECT_EQ(answer["details.name"], "w");
  EXPECT_EQ(answer["details.group"], "contract.grus.dev");
  EXPECT_EQ(answer["details.kind"], "Widget");
  EXPECT_EQ(answer["details.causes.0.reason"], GetParam().reason);
  EXPECT_EQ(answer["details.causes.0.field"], field);
  EXPECT_EQ(answer["details.causes.0.message"], message);
  EXPECT_EQ(answer["details.causes.1"], "(none)");
}

INSTANTIATE_TEST_SUITE_P(
    Each, SchemaRule,
    ::testing::Values(
        Broken{R"({})", "FieldValueRequired", "spec.size", "Required value"},
        Broken{R"({"size":null})", "FieldValueRequired", "spec.size", "Required value"},
        Broken{R"({"size":101})", "FieldValueInvalid", "spec.size",
               "Invalid value: 101: spec.size in body should be less than or equal to 100"},
        Broken{R"({"size":-1})", "FieldValueInvalid", "spec.size",
               "Invalid value: -1: spec.size in body should be greater than or equal to 0"},
        Broken{R"({"size":"x"})", "FieldValueTypeInvalid", "spec.size",
               "Invalid value: \"string\": spec.size in body must be of type integer: \"string\""},
        Broken{R"({"size":1,"enabled":"yes"})", "FieldValueTypeInvalid", "spec.enabled",
               "Invalid value: \"string\": spec.enabled in body must be of type boolean: \"string\""},
        Broken{R"({"size":1,"color":"pink"})", "FieldValueNotSupported", "spec.color",
               "Unsupported value: \"pink\": supported values: \"red\", \"green\", \"blue\""},
        Broken{R"({"size":1,"code":"ABC"})", "FieldValueInvalid", "spec.code",
               "Invalid value: \"ABC\": spec.code in body should match '^[a-z]+$'"},
        Broken{R"({"size":1,"code":"a"})", "FieldValueInvalid", "spec.code",
               "Invalid value: \"a\": spec.code in body should be at least 2 chars long"},
        Broken{R"({"size":1,"code":"abcdefghij"})", "FieldValueTooLong", "spec.code",
               "Too long: may not be more than 8 bytes"},
        Broken{R"({"size":1,"ratio":0})", "FieldValueInvalid", "spec.ratio",
               "Invalid value: 0: spec.ratio in body should be greater than 0"},
        Broken{R"({"size":1,"even":3})", "FieldValueInvalid", "spec.even",
               "Invalid value: 3: spec.even in body should be a multiple of 2"},
        Broken{R"({"size":1,"when":"yesterday"})", "FieldValueTypeInvalid", "spec.when",
               "Invalid value: \"yesterday\": spec.when in body must be of type date-time: \"yesterday\""},
        Broken{R"({"size":1,"limit":true})", "FieldValueTypeInvalid", "spec.limit",
               "Invalid value: \"boolean\": spec.limit in body must be of type integer,string: \"boolean\""},
        Broken{R"({"size":1,"parts":[{"name":"a"},{"name":"a"}]})", "FieldValueDuplicate", "spec.parts[1]",
               "Duplicate value: {\"name\":\"a\"}"},
        Broken{R"({"size":1,"parts":[{"count":1}]})", "FieldValueRequired", "spec.parts[0].name", "Required value"},
        Broken{R"({"size":1,"tags":["a","a"]})", "FieldValueDuplicate", "spec.tags[1]", "Duplicate value: \"a\""},
        Broken{R"({"size":1,"tags":["a","b","c","d","e"]})", "FieldValueTooMany", "spec.tags",
               "Too many: 5: must have at most 4 items"},
        Broken{R"({"size":1,"steps":[]})", "FieldValueInvalid", "spec.steps",
               "Invalid value: 0: spec.steps in body should have at least 1 items"},
        Broken{R"({"size":1,"labels":{"a":"1","b":"1","c":"1","d":"1"}})", "FieldValueTooMany", "spec.labels",
               "Too many: 4: must have at most 3 items"},
        Broken{R"({"size":1,"labels":{"a":1}})", "FieldValueTypeInvalid", "spec.labels.a",
               "Invalid value: \"integer\": spec.labels.a in body must be of type string: \"integer\""},
        Broken{R"({"size":1,"extra":{"known":5}})", "FieldValueTypeInvalid", "spec.extra.known",
               "Invalid value: \"integer\": spec.extra.known in body must be of type string: \"integer\""}));

TEST_F(Schema, NeedsTheWholeSpec) {
  EXPECT_TRUE(Refused(Post(Widgets(), R"({"apiVersion":"contract.grus.dev/v1","kind":"Widget",
                                          "metadata":{"name":"w"}})"),
                      422, "Invalid", "Widget.contract.grus.dev \"w\" is invalid: spec: Required value"));
}

TEST_F(Schema, ExplainsAllThatIsWrong) {
  const Answer answer = Try(R"({"size":101,"color":"pink"})");

  const std::string color = "spec.color: Unsupported value: \"pink\": supported values: \"red\", \"green\", \"blue\"";
  const std::string size = "spec.size: Invalid value: 101: spec.size in body should be less than or equal to 100";
  const std::string start = "Widget.contract.grus.dev \"w\" is invalid: [";
  EXPECT_THAT(answer["message"], AnyOf(start + color + ", " + size + "]", start + size + ", " + color + "]"));
  const std::vector<std::string> fields = {answer["details.causes.0.field"], answer["details.causes.1.field"]};
  EXPECT_THAT(fields, UnorderedElementsAre("spec.color", "spec.size"));
}

TEST_F(Schema, FillsInDefaults) {
  EXPECT_EQ(*Try(R"({"size":1})").body.At({"spec"}),
            J(R"({"size":1,"color":"red","replicas":1,"made":{"by":"default"}})"));
}

TEST_F(Schema, FillsInDefaultsOnlyInObjectsThatAreThere) {
  const Answer answer = Try(R"({"size":1,"nested":{},"parts":[{"name":"a"},{"name":"b","count":2}]})");

  EXPECT_EQ(answer["spec.nested"], R"({"depth":3})");
  EXPECT_EQ(*answer.body.At({"spec", "parts"}), J(R"([{"name":"a","count":1},{"name":"b","count":2}])"));
}

TEST_F(Schema, TakesNullForAFieldWithADefaultAsMissing) {
  EXPECT_EQ(Try(R"({"size":1,"color":null})")["spec.color"], "red");
}

TEST_F(Schema, KeepsNullOnlyWhereItIsAllowed) {
  const Answer answer = Try(R"({"size":1,"maybe":null})");

  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer["spec.maybe"], "null");
}

TEST_F(Schema, TakesNumbersAndTextsForIntOrString) {
  EXPECT_EQ(Try(R"({"size":1,"limit":"5%"})")["spec.limit"], "5%");
  EXPECT_EQ(Try(R"({"size":1,"limit":5})")["spec.limit"], "5");
}

TEST_F(Schema, TakesAWholeNumberWithAFractionOfZero) {
  EXPECT_EQ(Try(R"({"size":1.0})").status, 201);
  EXPECT_EQ(Try(R"({"size":1.5})").status, 422);
}

TEST_F(Schema, PrunesAndWarnsByDefault) {
  for (const std::string query : {"?dryRun=All", "?dryRun=All&fieldValidation=Warn"}) {
    const Answer answer = Try(R"({"size":1,"nested":{"x":1}})", query);
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(answer["spec.nested"], R"({"depth":3})");
    EXPECT_THAT(answer.Warnings(), ElementsAre(R"(299 - "unknown field \"spec.nested.x\"")")) << query;
  }
}

TEST_F(Schema, RefusesUnknownFieldsIfStrict) {
  const Answer answer = Post(Widgets() + "?fieldValidation=Strict",
                             R"({"apiVersion":"contract.grus.dev/v1","kind":"Widget","metadata":{"name":"w"},
                                 "spec":{"size":1,"foo":1,"nested":{"x":1}},"bar":1})");

  EXPECT_TRUE(Refused(answer, 400, "BadRequest",
                      "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field "
                      "\"bar\", unknown field \"spec.foo\", unknown field \"spec.nested.x\""));
  EXPECT_EQ(Get(Widgets() + "/w").status, 404);
}

TEST_F(Schema, PreservesUnknownFieldsWhereItSaysSo) {
  const Answer answer = Try(R"({"size":1,"extra":{"known":"a","foo":{"bar":[1,{"x":null}]}}})");

  EXPECT_EQ(*answer.body.At({"spec", "extra"}), J(R"({"known":"a","foo":{"bar":[1,{"x":null}]}})"));
  EXPECT_THAT(answer.Warnings(), IsEmpty());
}

TEST_F(Schema, PrunesMetadata) {
  const Answer answer =
      Post(Widgets() + "?dryRun=All", Widget("w", R"({"size":1})", R"({"foo":1,"annotations":{"a":"b"}})"));

  EXPECT_EQ(answer["metadata.foo"], "(none)");
  EXPECT_EQ(answer["metadata.annotations.a"], "b");
  EXPECT_THAT(answer.Warnings(), ElementsAre(R"(299 - "unknown field \"metadata.foo\"")"));
}

TEST_F(Schema, ChecksMetadataToo) {
  const Answer answer = Post(Widgets(), Widget("w", R"({"size":1})", R"({"labels":{"a":1}})"));

  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer["message"], StartsWith("Widget in version \"v1\" cannot be handled as a Widget: json: cannot "
                                            "unmarshal number into Go struct field"));
}

}  // namespace
}  // namespace kube::contract
