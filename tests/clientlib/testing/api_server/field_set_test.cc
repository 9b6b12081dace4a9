// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/field_set.h"

#include <gtest/gtest.h>

namespace kube::testing {
namespace {

FieldSet Of(std::string_view text) {
  Result<Json> json = ParseJson(text);
  EXPECT_TRUE(json) << text;
  return json ? *std::move(json) : Json();
}

struct Case {
  const char *a, *b, *want;
};

TEST(FieldSet, Unites) {
  for (const Case& c : {Case{"null", "{}", "{}"}, Case{R"({"f:a":{}})", "null", R"({"f:a":{}})"},
                        Case{"{}", R"({"f:a":{}})", R"({".":{},"f:a":{}})"},
                        Case{R"({"f:b":{}})", R"({"f:a":{},"f:c":{}})", R"({"f:a":{},"f:b":{},"f:c":{}})"},
                        Case{R"({"f:a":{"f:x":{}}})", R"({"f:a":{}})", R"({"f:a":{".":{},"f:x":{}}})"}}) {
    FieldSet set = Of(c.a);
    Unite(set, Of(c.b));
    EXPECT_EQ(ToText(set), c.want) << c.a << " and " << c.b;
  }
}

TEST(FieldSet, SubtractsMembersButNotWhatIsBelow) {
  for (const Case& c : {Case{R"({"f:a":{}})", R"({"f:a":{}})", "null"}, Case{"{}", R"({"f:a":{}})", "{}"},
                        Case{R"({".":{},"f:a":{}})", "{}", R"({"f:a":{}})"},
                        Case{R"({".":{},"f:a":{}})", R"({"f:a":{}})", "{}"},
                        Case{R"({"f:a":{".":{},"f:x":{}}})", R"({"f:a":{}})", R"({"f:a":{"f:x":{}}})"},
                        Case{R"({"f:a":{"f:x":{}},"f:b":{}})", R"({"f:a":{"f:x":{}}})", R"({"f:b":{}})"}}) {
    FieldSet set = Of(c.a);
    Subtract(set, Of(c.b));
    EXPECT_EQ(ToText(set), c.want) << c.a << " without " << c.b;
  }
}

TEST(FieldSet, Intersects) {
  for (const Case& c : {Case{"{}", "{}", "{}"}, Case{"{}", R"({"f:a":{}})", "null"},
                        Case{R"({"f:a":{".":{},"f:x":{}},"f:b":{}})", R"({"f:a":{"f:x":{}},"f:c":{}})",
                             R"({"f:a":{"f:x":{}}})"}}) {
    EXPECT_EQ(ToText(Intersect(Of(c.a), Of(c.b))), c.want) << c.a << " and " << c.b;
  }
}

TEST(FieldSet, WritesPathsAsTheServer) {
  const FieldSet set = Of(R"({"f:metadata":{"f:finalizers":{"v:\"x\"":{}}},
    "f:spec":{"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:name":{}}}}})");

  EXPECT_EQ(PathsOf(set), (std::vector<std::string>{".metadata.finalizers[=\"x\"]", ".spec.ports",
                                                    ".spec.ports[port=80,protocol=\"TCP\"].name"}));
}

}  // namespace
}  // namespace kube::testing
