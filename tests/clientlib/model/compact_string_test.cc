// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/compact_string.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "clientlib/model/box.h"
#include "clientlib/model/string_map.h"

namespace kube {
namespace {

static_assert(sizeof(CompactString) == 8);
static_assert(sizeof(Box<std::string>) == 8);

TEST(CompactString, HoldsAnyBytes) {
  for (std::size_t size : {0u, 1u, 6u, 7u, 8u, 9u, 100u, 100000u}) {
    std::string text(size, 'x');
    if (size > 2) text[1] = '\0';
    if (size > 0) text.back() = '\xFF';
    const CompactString made(text);
    const CompactString shared = CompactString::Shared(text);
    EXPECT_EQ(made.view(), text);
    EXPECT_EQ(shared.view(), text);
    EXPECT_EQ(made, shared);
    EXPECT_EQ(std::string(made), text);
    EXPECT_EQ(made.HeapBytes() > 0, size > 7) << size;
  }
}

TEST(CompactString, CopiesLiveOnTheirOwn) {
  CompactString a("a text that is not inline");
  CompactString b = a;
  CompactString c = std::move(a);
  b = CompactString("short");
  EXPECT_EQ(c, "a text that is not inline");
  c = *&c;
  EXPECT_EQ(c, "a text that is not inline");
  EXPECT_EQ(b, "short");
}

TEST(CompactString, EqualStringsShareOneBlock) {
  const CompactString a = CompactString::Shared("node-1.example.internal");
  const CompactString b = CompactString::Shared(std::string("node-1.example.internal"));
  EXPECT_EQ(a.view().data(), b.view().data());
  EXPECT_NE(a.view().data(), CompactString("node-1.example.internal").view().data());
}

TEST(CompactString, IsSharedByThreads) {
  std::vector<CompactString> strings;
  for (int i = 0; i < 100; ++i) strings.push_back(CompactString::Shared("a string of many " + std::to_string(i % 10)));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([copies = strings] {
      for (int round = 0; round < 100; ++round) {
        const std::vector<CompactString> more = copies;
        EXPECT_EQ(more.back(), "a string of many 9");
      }
    });
  }
  strings.clear();
  for (std::thread& thread : threads) thread.join();
}

TEST(StringMap, IsAMap) {
  StringMap map = {{"b", "2"}, {"a", "1"}, {"b", "ignored"}};
  map["c"] = "3";
  map["a"] = "one";
  EXPECT_FALSE(map.emplace("c", "4"));
  map.insert_or_assign("d", "4");
  EXPECT_EQ(map.erase("d"), 1u);
  EXPECT_EQ(map.erase("d"), 0u);

  std::string seen;
  for (const auto& [key, value] : map) seen += key + "=" + value.str() + " ";
  EXPECT_EQ(seen, "a=one b=2 c=3 ");
  EXPECT_EQ(map.find("b")->second, "2");
  EXPECT_EQ(map.find("bb"), map.end());
  EXPECT_EQ(map.Get("zz"), "");
  EXPECT_TRUE(map.contains("c"));

  const std::map<std::string, std::string> plain = map;
  EXPECT_EQ(plain.at("a"), "one");
  EXPECT_EQ(StringMap(plain), map);
}

TEST(Box, CopiesWhatIsInside) {
  Box<std::string> a(std::string("x"));
  Box<std::string> b = a;
  *b = "y";
  EXPECT_EQ(*a, "x");
  EXPECT_FALSE(a == b);
  b.reset();
  EXPECT_FALSE(b.has_value());
  a = b;
  EXPECT_EQ(a, b);
}

}  // namespace
}  // namespace kube
