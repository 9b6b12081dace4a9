// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clientlib/model/json_writer.h"

namespace kube {
namespace {

enum class Mode { kUnset, kAuto, kOff };
std::span<const std::string_view> EnumNames(Mode) {
  static constexpr std::string_view kNames[] = {"", "Auto", "Off"};
  return kNames;
}

struct Inner {
  std::int32_t min_replicas = 1;
  std::string image;
  static std::span<const FieldInfo> Fields() {
    using T = Inner;
    static constexpr FieldInfo kFields[] = {
        Field<&T::min_replicas>("minReplicas"),
        Field<&T::image>("image"),
    };
    return kFields;
  }
};

struct Everything {
  bool flag = false;
  std::int32_t small = 0;
  std::int64_t large = 0;
  double number = 0;
  std::string text;
  CompactString compact;
  Time time;
  MicroTime micro_time;
  Quantity quantity;
  IntOrString port;
  Json opaque;
  std::vector<Json> jsons;
  Mode mode = Mode::kUnset;
  Inner inner;
  std::optional<Inner> maybe;
  Box<Inner> boxed;
  std::vector<Inner> list;
  std::vector<std::vector<std::string>> lists;
  std::map<std::string, Inner> map;
  std::map<std::string, std::vector<std::int32_t>> map_of_lists;
  StringMap strings;
  ResourceList resources;
  Json inner_json;
  static std::span<const FieldInfo> Fields() {
    using T = Everything;
    static constexpr FieldInfo kFields[] = {
        Field<&T::flag>("flag", {.omit_zero = true}),
        Field<&T::small>("small", {.omit_zero = true}),
        Field<&T::large>("large", {.omit_zero = true}),
        Field<&T::number>("number", {.omit_zero = true}),
        Field<&T::text>("text"),
        Field<&T::compact>("compact"),
        Field<&T::time>("time"),
        Field<&T::micro_time>("microTime"),
        Field<&T::quantity>("quantity", {.omit_zero = true}),
        Field<&T::port>("port", {.omit_zero = true}),
        Field<&T::opaque>("opaque"),
        Field<&T::jsons>("jsons"),
        Field<&T::mode>("mode"),
        Field<&T::inner>("inner"),
        Field<&T::inner_json>("inner", {.read_only = true}),
        Field<&T::maybe>("maybe"),
        Field<&T::boxed>("boxed"),
        Field<&T::list>("list"),
        Field<&T::lists>("lists"),
        Field<&T::map>("map"),
        Field<&T::map_of_lists>("mapOfLists"),
        Field<&T::strings>("strings"),
        Field<&T::resources>("resources"),
    };
    return kFields;
  }
};

TEST(JsonReader, EachMemberTypeSurvivesReadingAndWriting) {
  const std::string text =
      R"({"flag":true,"small":-2147483648,"large":9223372036854775807,"number":0.5,"text":"t","compact":"a longer text",)"
      R"("time":"2026-01-02T03:04:05Z","microTime":"2026-01-02T03:04:05.678901Z","quantity":"1500m","port":"http",)"
      R"("opaque":{"b":[1,{"c":null}],"a":2},"mode":"Off","inner":{"minReplicas":2,"image":"i"},)"
      R"("maybe":{"minReplicas":3},"boxed":{"minReplicas":4},"list":[{"minReplicas":5},{"minReplicas":6,"image":"j"}],)"
      R"("lists":[["a","b"],[]],"map":{"k":{"minReplicas":7}},"mapOfLists":{"x":[1,2]},"strings":{"a":"1","b":""},)"
      R"("resources":{"cpu":"1","memory":"1Gi"}})";
  const Result<Everything> value = ReadText<Everything>(text);
  ASSERT_TRUE(value) << value.error().message();
  EXPECT_EQ(WriteText(*value), text);
  EXPECT_EQ(ToText(ToJson(*value)), text);
  EXPECT_EQ(ToText(value->inner_json), R"({"minReplicas":2,"image":"i"})");
}

TEST(JsonReader, ErrorsNameTheField) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"inner":{"minReplicas":"1"}})", "inner.minReplicas: expected an integer, found a string"},
      {R"({"inner":[]})", "inner: expected an object, found a list"},
      {R"({"list":[{},{"minReplicas":true}]})", "list[1].minReplicas: expected an integer, found a boolean"},
      {R"({"lists":[["a"],["b",1]]})", "lists[1][1]: expected a string, found an integer"},
      {R"({"map":{"k":{"image":{}}}})", "map[k].image: expected a string, found an object"},
      {R"({"mapOfLists":{"x":[1,"2"]}})", "mapOfLists[x][1]: expected an integer, found a string"},
      {R"({"boxed":{"minReplicas":1.5}})",
       "boxed.minReplicas: expected an integer, found a number with a fraction or out of range"},
      {R"({"small":3.0})", "small: expected an integer, found a number with a fraction or out of range"},
      {R"({"small":2147483648})", "small: 2147483648 does not fit 32 bits"},
      {R"({"small":-2147483649})", "small: -2147483649 does not fit 32 bits"},
      {R"({"large":9223372036854775808})",
       "large: expected an integer, found a number with a fraction or out of range"},
      {R"({"flag":1})", "flag: expected a boolean, found an integer"},
      {R"({"flag":"true"})", "flag: expected a boolean, found a string"},
      {R"({"number":"1"})", "number: expected a number, found a string"},
      {R"({"text":1})", "text: expected a string, found an integer"},
      {R"({"time":"yesterday"})", "time: \"yesterday\" is not an RFC 3339 time"},
      {R"({"quantity":"1X"})", "quantity: \"1X\" is not a quantity"},
      {R"({"port":1.5})", "port: expected an integer or a string, found a number with a fraction or out of range"},
      {R"({"port":4294967296})", "port: 4294967296 does not fit 32 bits"},
      {R"({"mode":"On"})", "mode: \"On\" is none of Auto Off"},
      {R"({"list":{}})", "list: expected a list, found an object"},
      {R"({"strings":[]})", "strings: expected an object, found a list"},
      {R"({"text":"a","text":"b"})", "text: given twice"},
      {R"({"inner":{"image":"a","image":"b"}})", "inner.image: given twice"},
      {R"({"opaque":{"a":1,"a":2}})", "opaque: key \"a\" given twice"},
      {R"({"strings":{"a":"1","b":"2","a":"1"}})", "strings[a]: given twice"},
      {R"({"map":{"a":{},"a":{}}})", "map[a]: given twice"},
      {R"({"resources":{"cpu":"1","cpu":"2"}})", "resources[cpu]: given twice"},
      {R"([])", "expected an object, found a list"},
      {R"(null)", "expected an object, found null"},
  };
  for (const auto& [text, message] : kCases) {
    const Result<Everything> value = ReadText<Everything>(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().code(), ErrorCode::kDecode) << text;
    EXPECT_EQ(value.error().message(), message) << text;
  }
}

TEST(JsonReader, NullIsAsGoodAsMissing) {
  const Result<Everything> value = ReadText<Everything>(
      R"({"flag":null,"small":null,"text":null,"time":null,"mode":null,"inner":{"minReplicas":null},"maybe":null,)"
      R"("boxed":null,"list":[null],"map":null,"strings":{"a":null},"quantity":null,"port":null,"opaque":null})");
  ASSERT_TRUE(value) << value.error().message();
  EXPECT_EQ(value->inner.min_replicas, 1);
  EXPECT_FALSE(value->maybe.has_value());
  EXPECT_FALSE(value->boxed.has_value());
  EXPECT_EQ(value->list.size(), 1u);
  EXPECT_TRUE(value->strings.empty());
}

TEST(JsonReader, UnknownFieldsAreSkippedWhateverTheyHold) {
  const Result<Everything> value =
      ReadText<Everything>(R"({"x":{"text":"no","y":[{"z":[[]]}]},"text":"yes","w":[],"v":"text"})");
  ASSERT_TRUE(value) << value.error().message();
  EXPECT_EQ(value->text, "yes");
}

TEST(JsonReader, NamesDifferByCase) {
  const Result<Everything> value = ReadText<Everything>(R"({"Text":"no","TEXT":"no"})");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->text, "");
}

TEST(JsonReader, QuantitiesMayBeNumbers) {
  const Result<Everything> value = ReadText<Everything>(R"({"quantity":2,"resources":{"a":1.5,"b":"3"}})");
  ASSERT_TRUE(value) << value.error().message();
  EXPECT_EQ(value->quantity, Quantity(2));
  EXPECT_EQ(FindResource(value->resources, "a")->MilliValue(), 1500);
}

TEST(JsonReader, ManagedFieldsOfPlainTextsStay) {
  const Result<Everything> value = ReadText<Everything>(R"({"opaque":{"metadata":{"managedFields":[1]}}})");
  ASSERT_TRUE(value);
  EXPECT_EQ(ToText(value->opaque), R"({"metadata":{"managedFields":[1]}})");
}

std::size_t BytesOf(const Json& value);
std::size_t HeapOf(const std::string& text) { return text.size() > 15 ? text.capacity() + 17 : 0; }
// What a Json takes, with 16 bytes of the allocator for each block.
std::size_t BytesOf(const Json& value) {
  std::size_t bytes = sizeof(Json);
  if (const std::string* text = value.AsString()) bytes += HeapOf(*text);
  if (const Json::Array* items = value.AsArray()) {
    bytes += items->empty() ? 0 : 16 + (items->capacity() - items->size()) * sizeof(Json);
    for (const Json& item : *items) bytes += BytesOf(item);
  }
  if (const Json::Object* members = value.AsObject()) {
    bytes += members->empty() ? 0 : 16;
    for (const auto& [name, member] : *members)
      bytes += sizeof(name) + (name.HeapBytes() > 0 ? name.HeapBytes() + 16 : 0) + BytesOf(member);
  }
  return bytes;
}

std::string Repeated(const std::string& part, std::size_t bytes) {
  std::string text = "[";
  while (text.size() < bytes) text.append(text.size() > 1 ? "," : "").append(part);
  return text + "]";
}

// One tenant's objects must not fill the memory that all share.
TEST(JsonReader, NoOpaqueFieldTakesMuchMoreMemoryThanText) {
  for (const char* part : {"1", "[]", "{}", "null", "[1]", "[[[[1]]]]", R"({"a":1})", R"({"a":{"b":[1,{}]}})", R"("a")",
                           R"({"name":"A","value":"b"})", R"({"containerPort":80})", R"("sixteen bytes ..")"}) {
    for (const std::size_t bytes : {100UL, 4096UL, 16UL << 10, 1UL << 20, 3UL << 20}) {
      const std::string list = Repeated(part, bytes), text = R"({"opaque":)" + list + R"(,"jsons":)" + list + "}";
      const auto read = ReadText<Everything>(text);
      ASSERT_TRUE(read) << part;
      EXPECT_LE(BytesOf(read->opaque), 8 * list.size() + 4096) << part << " " << bytes;
      std::size_t sum = 0;
      for (const Json& item : read->jsons) sum += BytesOf(item);
      EXPECT_LE(sum, 8 * list.size() + 4096) << part << " " << bytes;
    }
  }
}

// A list that would take far more memory than its text is left empty, and hides nothing else.
TEST(JsonReader, AListOfNothingDoesNotFillTheMemory) {
  const auto read = [](const std::string& text) {
    const auto all = ReadText<Everything>(text);
    EXPECT_TRUE(all) << all.error().message();
    return all ? *all : Everything();
  };
  EXPECT_EQ(read(R"({"list":)" + Repeated("{}", 300) + "}").list.size(), 100U);
  const Everything wide = read(R"({"list":)" + Repeated("{}", 100'000) + R"(,"text":"behind it","small":7})");
  EXPECT_TRUE(wide.list.empty());
  EXPECT_EQ(wide.text, "behind it");
  EXPECT_EQ(wide.small, 7);
  EXPECT_FALSE(read(R"({"list":)" + Repeated(R"({"minReplicas":5,"image":"a"})", 100'000) + "}").list.empty());
  std::string map, resources;
  for (int i = 0; i < 10'000; ++i) {
    map += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":{}";
    resources += (i > 0 ? ",\"a/" : "\"a/") + std::to_string(100'000 + i) + "\":1";
  }
  EXPECT_TRUE(read(R"({"map":{)" + map + "}}").map.empty());
  EXPECT_EQ(read(R"({"resources":{)" + resources + "}}").resources.size(), 10'000U);
}

TEST(JsonReader, KeysInAnyOrderAreSortedAndToldApart) {
  const auto read = ReadText<Everything>(R"({"resources":{"b":"1","d":"2","a":"3","c":"4"}})");
  ASSERT_TRUE(read);
  EXPECT_THAT(WriteText(*read), ::testing::HasSubstr(R"("resources":{"a":"3","b":"1","c":"4","d":"2"})"));
  for (const char* text : {R"({"resources":{"a":"1","b":"2","b":"3"}})", R"({"resources":{"b":"1","a":"2","b":"3"}})",
                           R"({"resources":{"b":"1","a":"2","c":"3","c":"4"}})"}) {
    const auto twice = ReadText<Everything>(text);
    ASSERT_FALSE(twice) << text;
    EXPECT_THAT(twice.error().message(), ::testing::HasSubstr("given twice")) << text;
  }
}

TEST(JsonReader, WhatUsersWriteIsKeptHoweverLong) {
  for (const char* part : {R"({"name":"A","value":"b"})", R"({"containerPort":80,"protocol":"TCP"})", R"("--lr=0.1")",
                           R"({"name":"c","resources":{"limits":{"cpu":"4"}},"command":["a","b"]})"}) {
    const std::string list = Repeated(part, 1 << 20);
    const auto read = ReadText<Everything>(R"({"opaque":)" + list + "}");
    ASSERT_TRUE(read);
    EXPECT_EQ(ToText(read->opaque), list) << part;
  }
}

TEST(JsonReader, WhatIsLeftOutSaysWhy) {
  const auto read = ReadText<Everything>(R"({"opaque":)" + Repeated("1", 20'000) + "}");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->opaque, Json("too many small values: 19 KiB of text would take 390 KiB of memory"));
}

// Json values are built and destroyed recursively; what is not read may nest much deeper.
TEST(JsonReader, LimitsTheDepthOfAJsonField) {
  const auto nested = [](std::string_view field, std::size_t depth) {
    return "{\"" + std::string(field) + "\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  constexpr JsonLimits kDeep{.max_depth = 10'000};
  EXPECT_TRUE(ReadText<Everything>(nested("unknown", 9'999), kDeep));
  EXPECT_TRUE(ReadText<Everything>(nested("opaque", 80), kDeep));
  const Result<Everything> deep = ReadText<Everything>(nested("opaque", 81), kDeep);
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().message(), "opaque: nested too deep");
  const Result<Everything> deepest = ReadText<Everything>(nested("opaque", 9'999), kDeep);
  ASSERT_TRUE(deepest);
  EXPECT_NE(deepest->opaque.AsString(), nullptr) << "it is left out";
}

}  // namespace
}  // namespace kube
