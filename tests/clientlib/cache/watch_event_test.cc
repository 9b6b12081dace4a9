// SPDX-License-Identifier: Apache-2.0
#include "clientlib/cache/watch_event.h"

#include <gtest/gtest.h>

#include <string>

namespace kube {
namespace {

TEST(WatchEvent, ReadsTypeAndObject) {
  struct Case {
    std::string_view type;
    WatchEventType want;
  };
  for (const Case& c : {Case{"ADDED", WatchEventType::kAdded}, Case{"MODIFIED", WatchEventType::kModified},
                        Case{"DELETED", WatchEventType::kDeleted}, Case{"BOOKMARK", WatchEventType::kBookmark},
                        Case{"ERROR", WatchEventType::kError}, Case{"RENAMED", WatchEventType::kUnknown},
                        Case{"", WatchEventType::kUnknown}, Case{"added", WatchEventType::kUnknown}}) {
    const std::string line = R"({"type":")" + std::string(c.type) + R"(","object":{"a":{"b":"}"}}})";
    const Result<WatchEvent> event = ReadWatchEvent(line);
    ASSERT_TRUE(event) << line;
    EXPECT_EQ(event->type, c.want) << line;
    EXPECT_EQ(event->object, R"({"a":{"b":"}"}})");
  }
}

TEST(WatchEvent, ReadsAnyOrderAndSpacing) {
  for (const std::string_view line : {
           R"({"object":{"a":"x\"}","b":[1,{}]},"type":"ADDED"})",
           R"(  { "type" : "ADDED" , "object" : {"a":"x\"}","b":[1,{}]} }  )",
           R"({"type":"ADDED","object":{"a":"x\"}","b":[1,{}]}}  )",
           R"({"extra":12,"type":"ADDED","more":null,"object":{"a":"x\"}","b":[1,{}]}})",
       }) {
    const Result<WatchEvent> event = ReadWatchEvent(line);
    ASSERT_TRUE(event) << line;
    EXPECT_EQ(event->type, WatchEventType::kAdded) << line;
    EXPECT_EQ(event->object, R"({"a":"x\"}","b":[1,{}]})") << line;
  }
}

TEST(WatchEvent, AnEventWithoutATypeIsUnknown) {
  for (const std::string_view line :
       {R"({"object":{}})", R"({"type":7,"object":{}})", R"({"type":null,"object":{}})"}) {
    const Result<WatchEvent> event = ReadWatchEvent(line);
    ASSERT_TRUE(event) << line;
    EXPECT_EQ(event->type, WatchEventType::kUnknown);
  }
}

TEST(WatchEvent, L12WhatIsNoEventIsAnError) {
  for (const std::string_view line : {"",
                                      " ",
                                      "x",
                                      "[]",
                                      "null",
                                      "{",
                                      "{}",
                                      R"({"type":"ADDED"})",
                                      R"({"type":"ADDED")",
                                      R"({"type")",
                                      R"({"type":)",
                                      R"({"type":"ADDED","object":)",
                                      R"({"object":{"a":1})",
                                      R"({"object":{"a":"\)",
                                      R"({"object":{}"type":1})",
                                      R"({:"x"})",
                                      R"({"a":})",
                                      R"({,})",
                                      "<html>",
                                      R"({ "object":{},"object":{"a":1}})",
                                      R"({ "object":{"a":1},"object":{}})",
                                      R"({ "object":{}} x)"}) {
    const Result<WatchEvent> event = ReadWatchEvent(line);
    ASSERT_FALSE(event) << line;
    EXPECT_EQ(event.error().code(), ErrorCode::kDecode) << line;
  }
}

}  // namespace
}  // namespace kube
