// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/spawn_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace kube {
namespace {

TEST(SpawnWords, VariablesAreAddedAndReplaceOnlyThoseOfTheirName) {
  ASSERT_NE(std::getenv("PATH"), nullptr);
  const std::vector<std::string> all = EnvironmentWith({{"PATH", "/x"}, {"PAT", "y"}});
  EXPECT_EQ(std::ranges::count(all, "PATH=/x"), 1);
  EXPECT_EQ(std::ranges::count(all, "PAT=y"), 1);
  EXPECT_EQ(std::ranges::count_if(all, [](const std::string& one) { return one.starts_with("PATH="); }), 1);
}

TEST(SpawnWords, PointersEndWithNull) {
  std::vector<std::string> texts = {"a", "b"};
  const std::vector<char*> pointers = PointersTo(texts);
  ASSERT_EQ(pointers.size(), 3U);
  EXPECT_STREQ(pointers[1], "b");
  EXPECT_EQ(pointers[2], nullptr);
}

}  // namespace
}  // namespace kube
