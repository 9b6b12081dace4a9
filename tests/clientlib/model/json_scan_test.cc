// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/json_scan.h"

#include <gtest/gtest.h>

#include <string>

namespace kube {
namespace {

// "name=value;" of each member or item, then the problem.
std::string Scanned(std::string_view text, char open) {
  std::string all;
  JsonScan scan(text, open);
  while (scan.Next()) all.append(scan.name()).append("=").append(scan.value()).append(";");
  return all.append(scan.problem());
}

TEST(JsonScan, FindsEachValueWithoutReadingIt) {
  struct Case {
    std::string_view text;
    char open;
    std::string_view want;
  };
  for (const Case& c : {
           Case{R"({})", '{', ""},
           Case{R"( [ ] )", '[', ""},
           Case{R"({"a":1,"b":"x"})", '{', R"(a=1;b="x";)"},
           Case{R"( { "a" : 1 , "b" : [1, {"c":2}] } )", '{', R"(a=1;b=[1, {"c":2}];)"},
           Case{R"([{"a":"}]\\\""},"\\", nonsense ,null])", '[', R"(={"a":"}]\\\""};="\\";=nonsense;=null;)"},
           Case{R"([[}]])", '[', "=[};text after the end"},
           Case{R"([1)", '[', "a value without an end"},
           Case{R"(["a)", '[', "a value without an end"},
           Case{R"(["a\)", '[', "a value without an end"},
           Case{R"([1,])", '[', "=1;a value without an end"},
           Case{R"([,])", '[', "a value without an end"},
           Case{R"({"a":1,})", '{', "a=1;a member without a name"},
           Case{R"({a:1})", '{', "a member without a name"},
           Case{R"({"a"})", '{', "a member without a value"},
           Case{R"({"a":})", '{', "a value without an end"},
           Case{R"({"a":1 "b":2})", '{', "a=1 \"b\";no end"},
           Case{R"({"a":{}"b":2})", '{', "a={};no end"},
           Case{R"({} x)", '{', "text after the end"},
           Case{R"([])", '{', "no JSON object"},
           Case{R"({})", '[', "no JSON array"},
           Case{"", '{', "no JSON object"},
       }) {
    EXPECT_EQ(Scanned(c.text, c.open), c.want) << c.text;
  }
}

TEST(JsonScan, AnyDepthIsFine) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_EQ(Scanned("[1," + deep + "]", '['), "=1;=" + deep + ";");
}

}  // namespace
}  // namespace kube
