// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/predicate.h"

#include <gtest/gtest.h>

#include "clientlib/model/apps_v1.h"

namespace kube {
namespace {

ConstObject Set(std::string uid, std::int64_t generation, std::string version = "1", bool is_ending = false) {
  auto set = std::make_shared<StatefulSet>();
  set->metadata.uid = std::move(uid);
  set->metadata.generation = generation;
  set->metadata.resource_version = std::move(version);
  if (is_ending) set->metadata.deletion_timestamp = Time{};
  return set;
}

TEST(IsSpecChange, Q9CreatesAndDeletesAlwaysPass) {
  EXPECT_TRUE(IsSpecChange({nullptr, Set("u-1", 1)}));
  EXPECT_TRUE(IsSpecChange({Set("u-1", 1), nullptr}));
}

TEST(IsSpecChange, Q9AnUpdatePassesWhenTheGenerationMoved) {
  EXPECT_FALSE(IsSpecChange({Set("u-1", 1, "1"), Set("u-1", 1, "2")}));
  EXPECT_TRUE(IsSpecChange({Set("u-1", 1, "1"), Set("u-1", 2, "2")}));
}

TEST(IsSpecChange, Q9ARecreatedObjectOfTheSameGenerationPasses) {
  EXPECT_TRUE(IsSpecChange({Set("u-1", 1), Set("u-2", 1)}));
}

TEST(IsSpecChange, Q9TheStartOfADeletionPasses) {
  EXPECT_TRUE(IsSpecChange({Set("u-1", 1, "1"), Set("u-1", 1, "2", true)}));
}

TEST(IsSpecChange, Q9KindsWithoutGenerationsPass) {
  EXPECT_TRUE(IsSpecChange({Set("u-1", 0, "1"), Set("u-1", 0, "2")}));
}

}  // namespace
}  // namespace kube
