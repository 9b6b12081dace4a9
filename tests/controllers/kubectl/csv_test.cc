// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Csv, ReadsFieldsAndTheirLines) {
  const auto table = ParseCsv(
      "\xEF\xBB\xBF"
      "a, b ,c\r\n\n1,\"x, \"\"y\"\"\",\n  \n2,\"two\nlines\",z",
      "f.csv");
  ASSERT_TRUE(table) << table.error().message();
  EXPECT_THAT(table->header.fields, ElementsAre("a", "b", "c"));
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_EQ(table->rows[0].line, 3);
  EXPECT_THAT(table->rows[0].fields, ElementsAre("1", "x, \"y\"", ""));
  EXPECT_EQ(table->rows[1].line, 5);
  EXPECT_THAT(table->rows[1].fields, ElementsAre("2", "two\nlines", "z"));
}

TEST(Csv, SaysWhatIsWrongAndWhere) {
  struct Case {
    std::string text;
    const char* want;
  };
  const Case kCases[] = {
      {"", "f.csv:1: no header"},
      {"\n\n", "f.csv:1: no header"},
      {"a,b\n1,2\n3\n", "f.csv:3: 1 fields, but the header has 2"},
      {"a,b\n1,2,3\n", "f.csv:2: 3 fields, but the header has 2"},
      {"a,b\n1,\"2\n", "f.csv:2: a quote is not closed"},
      {"a,b\n1,2\"3\"\n", "f.csv:2: a quote in the middle"},
      {std::string("\xFF\xFE"
                   "a\0,\0b\0\n\0",
                   10),
       "f.csv:1: is no text, or UTF-16; save the file as UTF-8"},
      {std::string("a,b\n1,\0\n", 8), "f.csv:2: is no text"},
  };
  for (const Case& c : kCases) {
    const auto table = ParseCsv(c.text, "f.csv");
    ASSERT_FALSE(table) << c.want;
    EXPECT_THAT(table.error().message(), StartsWith(c.want));
  }
}

TEST(Csv, RefusesFilesThatAreTooLarge) { EXPECT_FALSE(ParseCsv(std::string(kMaxCsvBytes + 1, 'a'), "f.csv")); }

TEST(Csv, FindsColumnsByName) {
  const auto table = ParseCsv("a,b,b\n", "f.csv");
  EXPECT_EQ(*FindColumn(*table, "a", "a"), 0u);
  EXPECT_THAT(FindColumn(*table, "c", "a and c").error().message(),
              HasSubstr("f.csv:1: no column c; the header must name a and c"));
  EXPECT_THAT(FindColumn(*table, "b", "b").error().message(), HasSubstr("two columns b"));
}

TEST(Csv, MessagesStayShortAndOnOneLine) {
  const auto table = ParseCsv("a\n\"x\n" + std::string(1000, 'y') + "\"\n", "f.csv");
  const std::string message = BadField(*table, table->rows[0], 0, "is bad").message();
  EXPECT_LT(message.size(), 100u);
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace grus
