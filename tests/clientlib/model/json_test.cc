// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/kit/must.h"

namespace kube {
namespace {

using kit::FromText;

TEST(Json, NumbersOfAnyLengthAreRead) {
  const std::string zeros(400, '0'), nines(900, '9');
  const std::pair<std::string, double> kCases[] = {
      {"0." + zeros + "1", 0},
      {"-0." + zeros + "1", 0},
      {"1e-400", 0},
      {"12.5e-99999999999999999999", 0},
      {"0." + nines, 1},
      {"0." + zeros + "1e401", 1},
      {"4.9e-324", 4.9e-324},
      {"1.7976931348623157e308", 1.7976931348623157e308},
      {"2.2250738585072011e-308", 2.2250738585072011e-308},
  };
  for (const auto& [text, number] : kCases) {
    const Result<Json> json = ParseJson(text);
    ASSERT_TRUE(json) << text << ": " << json.error().message();
    ASSERT_TRUE(json->AsDouble()) << text;
    EXPECT_EQ(*json->AsDouble(), number) << text;
  }
  for (const std::string& text :
       {std::string("1e400"), "1" + zeros, nines + ".5", "-1" + zeros + "e-5", std::string("1.8e308")}) {
    EXPECT_FALSE(ParseJson(text)) << text;
  }
}

TEST(Json, TextSurvivesReadingAndWriting) {
  for (const char* text :
       {"null", "true", "false", "0", "-1", "1.5", "\"\"", "\"a\\\"b\\\\c\\n\"", "[]", "{}", "[1,[2,[]],{}]",
        R"({"b":1,"a":[null,{"c":"d"}]})", "9223372036854775807", "-9223372036854775808", "\"\xE2\x82\xAC\""}) {
    EXPECT_EQ(ToText(FromText(text)), text);
  }
}

TEST(Json, OddInputsAreReadAsGoReadsThem) {
  EXPECT_EQ(FromText(" \n\t{ \"a\" : 1 } \r\n"), Json::MakeObject({{"a", 1}}));
  EXPECT_EQ(*FromText("-0").AsInt(), 0);
  EXPECT_EQ(*FromText("1e3").AsDouble(), 1000.0);
  EXPECT_EQ(*FromText("3.0").AsDouble(), 3.0);
  EXPECT_EQ(*FromText("18446744073709551615").AsDouble(), 18446744073709551615.0);
  EXPECT_EQ(*FromText("123456789012345678901234567890").AsDouble(), 123456789012345678901234567890.0);
  EXPECT_EQ(*FromText("0.1").AsDouble(), 0.1);
  EXPECT_EQ(*FromText("\"\\u20ac\\ud83d\\ude00\"").AsString(), "\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(FromText("\"a\\u0000b\"").AsString()->size(), 3u);
}

TEST(Json, RefusesWhatIsNoJson) {
  const std::string_view kBad[] = {"",
                                   " ",
                                   "{",
                                   "[",
                                   "{\"a\"",
                                   "{\"a\":",
                                   "{\"a\":1",
                                   "{\"a\":1,}",
                                   "[1,]",
                                   "[1 2]",
                                   "{a:1}",
                                   "'a'",
                                   "nul",
                                   "truefalse",
                                   "1 2",
                                   "{}{}",
                                   "{} x",
                                   "01",
                                   "1.",
                                   ".5",
                                   "+1",
                                   "--1",
                                   "1e",
                                   "NaN",
                                   "Infinity",
                                   "0x10",
                                   "1e400",
                                   "\"",
                                   "\"\\x\"",
                                   "\"\\u12\"",
                                   "\"\n\"",
                                   "// c\n1",
                                   "\"\\ud800\"",
                                   "\"\\ud800\\u0041\"",
                                   "\"\\udc00\"",
                                   "\"\xE2\x82\"",
                                   "\"\xFF\"",
                                   "\"\xC0\x80\"",
                                   "\"\xED\xA0\x80\"",
                                   "{\"\xFF\":1}",
                                   std::string_view("{}\0", 3),
                                   std::string_view("{}\0{}", 5),
                                   std::string_view("\0", 1),
                                   std::string_view("[1\0]", 4),
                                   "\xEF\xBB\xBF{}"};
  for (const std::string_view text : kBad) {
    const Result<Json> json = ParseJson(text);
    ASSERT_FALSE(json) << text;
    EXPECT_EQ(json.error().code(), ErrorCode::kDecode) << text;
    EXPECT_NE(json.error().message().find("JSON at byte "), std::string::npos) << json.error().message();
  }
}

TEST(Json, RefusesAKeyGivenTwice) {
  for (const char* text :
       {R"({"a":1,"a":1})", R"([{"x":{"a":1,"b":2,"a":3}}])", R"({"a":1,"\u0061":2})", R"({"":1,"":2})"}) {
    const Result<Json> json = ParseJson(text);
    ASSERT_FALSE(json) << text;
    EXPECT_NE(json.error().message().find("given twice"), std::string::npos) << json.error().message();
  }
}

TEST(Json, RefusesNestingOverTheLimit) {
  const auto nested = [](int depth, const char* open, const char* close) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += open;
    text += "1";
    for (int i = 0; i < depth; ++i) text += close;
    return text;
  };
  EXPECT_TRUE(ParseJson(nested(100, "[", "]")));
  EXPECT_TRUE(ParseJson(nested(500, "{\"a\":", "}"), {.max_depth = 1'000'000}));
  for (const int depth : {101, 10'000, 1'000'000}) {
    const Result<Json> json = ParseJson(nested(depth, "[", "]"));
    ASSERT_FALSE(json);
    EXPECT_EQ(json.error().code(), ErrorCode::kTooLarge);
  }
  EXPECT_FALSE(ParseJson(nested(10'000, "{\"a\":", "}"), {.max_depth = 1'000'000}));
  EXPECT_FALSE(ParseJson(std::string(1'000'000, '[')));
}

TEST(Json, RefusesTextOverTheLimit) {
  const Result<Json> json = ParseJson("[1,2,3]", {.max_bytes = 6});
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().code(), ErrorCode::kTooLarge);
  EXPECT_TRUE(ParseJson("[1,2,3]", {.max_bytes = 7}));
}

TEST(Json, RefusesMoreValuesThanTheLimit) {
  for (const char* text : {"[1,2,3]", "{\"a\":[null]}", "[[[[]]]]"}) {
    const Result<Json> json = ParseJson(text, {.max_values = 3});
    ASSERT_FALSE(json) << text;
    EXPECT_EQ(json.error().code(), ErrorCode::kTooLarge) << text;
    EXPECT_TRUE(ParseJson(text, {.max_values = 4})) << text;
  }
  std::string text = "[1";
  while (text.size() < 20UL << 20) text += ",1";
  EXPECT_EQ(ParseJson(text + "]").error().code(), ErrorCode::kTooLarge);
}

// As many as an object of the largest size that etcd takes can have. Quadratic, it takes a minute.
TEST(Json, ObjectsOfManyMembersAreComparedInLinearTime) {
  Json::Object members;
  for (int i = 0; i < 200'000; ++i) members.emplace_back("key-" + std::to_string(i), i);
  const Json one{members}, same{members};
  EXPECT_TRUE(one == same);
  EXPECT_TRUE(IsCovered(one, same));

  Json::Array items;
  for (const Json::Member& member : members) items.push_back(Json::MakeObject({{"name", member.first}}));
  const Json list{items};
  EXPECT_TRUE(IsCovered(list, Json{items}));
}

TEST(Json, MembersAreFoundFromAnyPlace) {
  const Json object = Json::MakeObject({{"a", 1}, {"b", 2}, {"c", 3}});
  for (const std::size_t start : {0, 1, 2, 3}) {
    for (const auto& [key, value] : *object.AsObject()) {
      std::size_t next = start;
      const Json* const found = object.FindFrom(next, key);
      ASSERT_NE(found, nullptr) << key << " from " << start;
      EXPECT_EQ(*found, value);
      EXPECT_EQ(&(*object.AsObject())[next - 1].second, found);
    }
    std::size_t next = start;
    EXPECT_EQ(object.FindFrom(next, "d"), nullptr);
    EXPECT_EQ(next, start);
  }
}

// RapidJSON with SSE2 takes 0x1A to 0x1F for plain characters wherever it looks at 16 bytes at once. Go
// refuses them, so an escape sequence of a terminal in a condition's message would make the whole status
// unwritable.
TEST(Json, ControlCharactersAreEscapedWhereverTheyStand) {
  for (char control = 1; control < ' '; ++control) {
    for (std::size_t before = 0; before < 40; ++before) {
      const std::string text = std::string(before, 'x') + control + std::string(40, 'x');
      const std::string written = ToText(Json(text));
      EXPECT_TRUE(std::ranges::none_of(written, [](char c) { return c < ' '; })) << int{control} << " at " << before;
      const Result<Json> again = ParseJson(written);
      EXPECT_TRUE(again && *again == Json(text)) << int{control} << " at " << before;

      const Result<Json> raw = ParseJson("[\"" + text + "\"]");
      ASSERT_FALSE(raw) << int{control} << " at " << before;
      EXPECT_EQ(raw.error().code(), ErrorCode::kDecode);
    }
  }
}

TEST(Json, WritesOnlyValidJson) {
  EXPECT_EQ(ToText(Json(std::numeric_limits<double>::infinity())), "null");
  EXPECT_EQ(ToText(Json(std::numeric_limits<double>::quiet_NaN())), "null");
  EXPECT_EQ(ToText(Json("cut \xE2\x82")), "\"cut \xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(ToText(Json(std::string("\x01\x1f\"/", 4))), "\"\\u0001\\u001F\\\"/\"");
  EXPECT_EQ(ToText(Json::MakeObject({{"", ""}})), R"({"":""})");
}

TEST(Json, MembersAreFoundAddedAndErased) {
  Json json;
  json["spec"]["replicas"] = 3;
  json["spec"]["names"].Append("a");
  json["spec"]["names"].Append(Json())["x"] = 1;
  json["flag"] = true;
  EXPECT_EQ(ToText(json), R"({"spec":{"replicas":3,"names":["a",{"x":1}]},"flag":true})");
  EXPECT_EQ(*json.At({"spec", "replicas"})->AsInt(), 3);
  EXPECT_EQ(json.At({"spec", "missing", "deep"}), nullptr);
  EXPECT_EQ(json.At({"flag", "deep"}), nullptr);
  EXPECT_TRUE(json.Erase("flag"));
  EXPECT_FALSE(json.Erase("flag"));
  EXPECT_EQ(Json(1).Find("a"), nullptr);
  EXPECT_FALSE(Json(1).Erase("a"));
}

TEST(Json, ObjectsAreEqualInAnyOrderAndListsAreNot) {
  EXPECT_EQ(FromText(R"({"a":1,"b":{"c":2,"d":3}})"), FromText(R"({"b":{"d":3,"c":2},"a":1})"));
  EXPECT_FALSE(FromText("[1,2]") == FromText("[2,1]"));
  EXPECT_FALSE(FromText(R"({"a":1})") == FromText(R"({"a":1,"b":null})"));
  EXPECT_FALSE(FromText("{}") == FromText("[]"));
}

TEST(MergePatch, FollowsRfc7396) {
  struct Case {
    const char *target, *patch, *merged;
  };
  const Case kCases[] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", R"({})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
      {R"({"a":"b"})", R"(["c"])", R"(["c"])"},
      {R"({"a":"foo"})", "null", "null"},
      {R"({"a":"foo"})", R"("bar")", R"("bar")"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
      {R"([1,2])", R"({"a":"b","c":null})", R"({"a":"b"})"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
  };
  for (const Case& c : kCases) {
    Json target = FromText(c.target);
    MergePatch(target, FromText(c.patch));
    EXPECT_EQ(ToText(target), ToText(FromText(c.merged))) << c.target << " + " << c.patch;
  }
}

}  // namespace
}  // namespace kube
