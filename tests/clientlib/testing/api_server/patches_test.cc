// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/patches.h"

#include <gtest/gtest.h>

#include "tests/kit/must.h"

namespace kube::testing {
namespace {

using kit::FromText;

std::shared_ptr<const StructuralSchema> PodSchema() {
  const auto schema = StructuralSchema::Parse(FromText(R"({"type": "object", "properties": {"spec": {"type": "object",
    "properties": {
      "containers": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
          "ports": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
            "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}},
      "args": {"type": "array", "items": {"type": "string"}}}}}})"));
  EXPECT_TRUE(schema);
  return *schema;
}

TEST(JsonPatch, CarriesOutOperationsInOrder) {
  struct Case {
    const char *document, *patch, *want;
  };
  for (const Case& c : {
           Case{R"({"a": 1})", R"([{"op": "add", "path": "/b", "value": 2}])", R"({"a": 1, "b": 2})"},
           Case{R"({"a": 1})", R"([{"op": "add", "path": "/a", "value": 2}])", R"({"a": 2})"},
           Case{R"({})", R"([{"op": "add", "path": "/a"}])", R"({"a": null})"},
           Case{R"([1, 3])", R"([{"op": "add", "path": "/1", "value": 2}])", "[1, 2, 3]"},
           Case{R"([1])", R"([{"op": "add", "path": "/-", "value": 2}])", "[1, 2]"},
           Case{R"([1, 2])", R"([{"op": "add", "path": "/2", "value": 3}])", "[1, 2, 3]"},
           Case{R"({"a": [1, 2]})", R"([{"op": "remove", "path": "/a/0"}])", R"({"a": [2]})"},
           Case{R"({"a": [1, 2]})", R"([{"op": "remove", "path": "/a/-1"}])", R"({"a": [1]})"},
           Case{R"({"a": {"b": 1}})", R"([{"op": "replace", "path": "/a/b", "value": null}])", R"({"a": {"b": null}})"},
           Case{R"({"a": 1, "b": {}})", R"([{"op": "move", "from": "/a", "path": "/b/c"}])", R"({"b": {"c": 1}})"},
           Case{R"({"a": [1]})", R"([{"op": "copy", "from": "/a", "path": "/b"}])", R"({"a": [1], "b": [1]})"},
           Case{R"({"x/y": 1, "m~n": 2, "~1": 3})",
                R"([{"op": "remove", "path": "/x~1y"}, {"op": "remove", "path": "/m~0n"}])", R"({"~1": 3})"},
           Case{R"({"~1": 3})", R"([{"op": "test", "path": "/~01", "value": 3}])", R"({"~1": 3})"},
           Case{R"({"a": {"b": 1, "c": 2}})", R"([{"op": "test", "path": "/a", "value": {"c": 2, "b": 1}}])",
                R"({"a": {"b": 1, "c": 2}})"},
           Case{R"({})", R"([{"op": "test", "path": "/a", "value": null}])", R"({})"},
       }) {
    Json document = FromText(c.document);
    EXPECT_TRUE(ApplyJsonPatch(document, FromText(c.patch))) << c.patch;
    EXPECT_EQ(document, FromText(c.want)) << c.patch << " gave " << ToText(document);
  }
}

TEST(JsonPatch, RefusesWhatItCannotCarryOut) {
  for (const char* patch :
       {R"([{"op": "test", "path": "/a", "value": 2}])", R"([{"op": "test", "path": "/b", "value": 2}])",
        R"([{"op": "remove", "path": "/b"}])", R"([{"op": "replace", "path": "/b", "value": 1}])",
        R"([{"op": "add", "path": "/b/c", "value": 1}])", R"([{"op": "add", "path": "/a/c", "value": 1}])",
        R"([{"op": "add", "path": "/list/4", "value": 1}])", R"([{"op": "remove", "path": "/list/x"}])",
        R"([{"op": "move", "from": "/b", "path": "/c"}])", R"([{"op": "copy", "from": "/b", "path": "/c"}])",
        R"([{"op": "add", "path": "b", "value": 1}])", R"([{"op": "shuffle", "path": "/a"}])", R"([{"path": "/a"}])",
        R"([{"op": "remove"}])", R"([{"op": "remove", "path": ""}])"}) {
    Json document = FromText(R"({"a": 1, "list": [1, 2]})");
    const Status status = ApplyJsonPatch(document, FromText(patch));
    ASSERT_FALSE(status) << patch;
    EXPECT_EQ(status.error().code(), ErrorCode::kInvalid);
    EXPECT_EQ(status.error().message(), "the server rejected our request due to an error in our request");
  }
}

TEST(JsonPatch, MustBeAListOfObjects) {
  for (const char* patch : {"{}", "[1]", "\"text\""}) {
    Json document = FromText("{}");
    const Status status = ApplyJsonPatch(document, FromText(patch));
    ASSERT_FALSE(status) << patch;
    EXPECT_EQ(status.error().code(), ErrorCode::kInvalidArgument);
  }
}

// The more usual patches are those of tests/contract/patch_test.cc.
TEST(StrategicMergePatch, MergesAsTheServerDoes) {
  const auto schema = PodSchema();
  struct Case {
    const char *name, *document, *patch, *want;
  };
  for (
      const Case& c : {
          Case{"maps merge, nulls remove", R"({"spec": {"a": 1, "b": {"c": 1}}})",
               R"({"spec": {"a": null, "b": {"d": 2}, "e": null}})", R"({"spec": {"b": {"c": 1, "d": 2}}})"},
          Case{"the first of several keys counts",
               R"({"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 1, "protocol": "TCP"}]}]}})",
               R"({"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 1, "name": "x"}]}]}})",
               R"({"spec": {"containers": [{"name": "a",
                    "ports": [{"containerPort": 1, "protocol": "TCP", "name": "x"}]}]}})"},
          Case{"a map is replaced", R"({"spec": {"a": 1}})", R"({"spec": {"$patch": "replace", "b": 2}})",
               R"({"spec": {"b": 2}})"},
          Case{"a map is emptied", R"({"spec": {"a": 1}})", R"({"spec": {"$patch": "delete"}})", R"({"spec": {}})"},
          Case{"other keys go", R"({"spec": {"v": {"emptyDir": {}, "name": "x"}}})",
               R"({"spec": {"v": {"$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}}})",
               R"({"spec": {"v": {"name": "x", "hostPath": {"path": "/"}}}})"},
          Case{"an order is set", R"({"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}})",
               R"({"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}, {"name": "d"}],
                             "containers": [{"name": "d"}]}})",
               R"({"spec": {"containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}, {"name": "d"}]}})"},
          Case{
              "directives leave no trace", R"({})",
              R"({"spec": {"b": {"c": null, "d": 1}, "containers": [{"name": "a", "$patch": "delete"}, {"name": "b"}]}})",
              R"({"spec": {"b": {"d": 1}, "containers": [{"name": "b"}]}})"},
      }) {
    Json document = FromText(c.document);
    EXPECT_TRUE(ApplyStrategicMergePatch(schema.get(), document, FromText(c.patch))) << c.name;
    EXPECT_EQ(document, FromText(c.want)) << c.name << " gave " << ToText(document);
  }
}

TEST(StrategicMergePatch, RefusesWhatItDoesNotUnderstand) {
  const auto schema = PodSchema();
  struct Case {
    const char* patch;
    ErrorCode want;
  };
  for (const Case& c :
       {Case{"[]", ErrorCode::kInvalidArgument}, Case{R"({"spec": {"$patch": "turn"}})", ErrorCode::kInternal},
        Case{R"({"spec": {"containers": [{"image": "x"}]}})", ErrorCode::kInternal},
        Case{R"({"spec": {"containers": [{"$patch": "delete"}]}})", ErrorCode::kInternal},
        Case{R"({"spec": {"containers": [1]}})", ErrorCode::kInvalidArgument},
        Case{R"({"spec": {"containers": [{"name": "a", "$patch": "turn"}]}})", ErrorCode::kInternal},
        Case{R"({"spec": {"$retainKeys": ["a"], "b": 1}})", ErrorCode::kInvalidArgument}}) {
    Json document = FromText("{}");
    const Status status = ApplyStrategicMergePatch(schema.get(), document, FromText(c.patch));
    ASSERT_FALSE(status) << c.patch;
    EXPECT_EQ(status.error().code(), c.want) << c.patch;
  }
}

}  // namespace
}  // namespace kube::testing
