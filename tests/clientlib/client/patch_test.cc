// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/patch.h"

#include <gtest/gtest.h>

#include "tests/kit/must.h"

namespace kube {
namespace {

using kit::FromText;

TEST(JsonPatch, IsAListOfOperationsInOrder) {
  const std::string text = ToText(JsonPatch()
                                      .Test({"metadata", "uid"}, "u-1")
                                      .Add({"spec", "replicas"}, 5)
                                      .Remove({"metadata", "finalizers", "0"})
                                      .operations());
  EXPECT_EQ(text, R"([{"op":"test","path":"/metadata/uid","value":"u-1"},)"
                  R"({"op":"add","path":"/spec/replicas","value":5},)"
                  R"({"op":"remove","path":"/metadata/finalizers/0"}])");
}

TEST(JsonPatch, EscapesSlashesAndTildesOfAPart) {
  const JsonPatch patch =
      JsonPatch().Add({"metadata", "annotations", "grus.io/a~b"}, "x").Remove({"metadata", "labels", "~1"});
  EXPECT_EQ(*patch.operations().AsArray()->at(0).Find("path")->AsString(), "/metadata/annotations/grus.io~1a~0b");
  EXPECT_EQ(*patch.operations().AsArray()->at(1).Find("path")->AsString(), "/metadata/labels/~01");
}

TEST(JsonPatch, AnEmptyPathIsTheWholeObject) {
  EXPECT_EQ(ToText(JsonPatch().Test({}, Json()).operations()), R"([{"op":"test","path":"","value":null}])");
}

TEST(JsonPatch, WithoutOperationsIsAnEmptyList) { EXPECT_EQ(ToText(JsonPatch().operations()), "[]"); }

struct MergeCase {
  std::string_view from, to, want;
};

TEST(MergePatch, HoldsOnlyWhatDiffers) {
  for (const MergeCase& c : {
           MergeCase{R"({})", R"({})", R"({})"},
           MergeCase{R"({"a":1})", R"({"a":1})", R"({})"},
           MergeCase{R"({"a":1})", R"({"a":2})", R"({"a":2})"},
           MergeCase{R"({})", R"({"a":{"b":1}})", R"({"a":{"b":1}})"},
           MergeCase{R"({"a":1,"b":2})", R"({"b":2})", R"({"a":null})"},
           MergeCase{R"({"a":{"b":1,"c":2}})", R"({"a":{"b":1,"c":3}})", R"({"a":{"c":3}})"},
           MergeCase{R"({"a":{"b":1}})", R"({"a":{}})", R"({"a":{"b":null}})"},
           MergeCase{R"({"a":[1,2]})", R"({"a":[1,2,3]})", R"({"a":[1,2,3]})"},
           MergeCase{R"({"a":{"b":1}})", R"({"a":"x"})", R"({"a":"x"})"},
           MergeCase{R"({"a":"x"})", R"({"a":{"b":1}})", R"({"a":{"b":1}})"},
           MergeCase{R"({"a":{"b":1,"c":2}})", R"({"a":{"c":2,"b":1}})", R"({})"},
       }) {
    EXPECT_EQ(ToText(MergePatchBetween(FromText(c.from), FromText(c.to))), c.want) << c.from << " to " << c.to;
  }
}

TEST(MergePatch, AppliedToTheOldGivesTheNew) {
  for (const MergeCase& c :
       {MergeCase{R"({"a":{"b":{"c":1,"d":2}},"e":[1]})", R"({"a":{"b":{"d":3}},"f":{"g":true}})", ""},
        MergeCase{R"({"a":1})", R"({})", ""}, MergeCase{R"({})", R"({"x":{"y":{}}})", ""}}) {
    Json value = FromText(c.from);
    MergePatch(value, MergePatchBetween(FromText(c.from), FromText(c.to)));
    EXPECT_EQ(value, FromText(c.to)) << c.from << " to " << c.to;
  }
}

}  // namespace
}  // namespace kube
