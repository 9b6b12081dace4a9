// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/speed_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/controllers/profile/profile_builders.h"

namespace grus {
namespace {

using ::testing::IsEmpty;
using testing::MakePoint;
using testing::MakeProfile;
using ::testing::SizeIs;

// Measured at that many sizes, which double from 1 on.
api::WorkloadProfile Profile(const std::string& name, const std::string& resource_version, int sizes = 2) {
  std::vector<api::ProfilePoint> points;
  for (int i = 0; i < sizes; ++i) points.push_back(MakePoint({"A100", 1 << i, 1, 32}, 100));
  api::WorkloadProfile profile = MakeProfile(points);
  profile.metadata.name = name;
  profile.metadata.resource_version = resource_version;
  return profile;
}

SpeedTables::Table Ask(SpeedTables& tables, const api::WorkloadProfile& profile, int most_workers = 2) {
  return tables.Of(profile, "A100", 1, most_workers, 8);
}

TEST(SpeedTables, AQuestionIsAnsweredOnce) {
  SpeedTables tables;
  const SpeedTables::Table first = Ask(tables, Profile("bert", "1"));
  EXPECT_THAT(*first, SizeIs(2));
  EXPECT_EQ(Ask(tables, Profile("bert", "1")), first);
  EXPECT_NE(Ask(tables, Profile("bert", "1"), 1), first);
  EXPECT_NE(Ask(tables, Profile("resnet", "1")), first);
  EXPECT_EQ(Ask(tables, Profile("bert", "1")), first);
}

TEST(SpeedTables, AnEmptyTableIsKeptToo) {
  SpeedTables tables;
  const SpeedTables::Table first = Ask(tables, Profile("bert", "1", 1));
  ASSERT_TRUE(first);
  EXPECT_THAT(*first, IsEmpty());
  EXPECT_EQ(Ask(tables, Profile("bert", "1", 1)), first);
}

TEST(SpeedTables, AnotherVersionReplacesAllTables) {
  SpeedTables tables;
  const SpeedTables::Table before = Ask(tables, Profile("bert", "9")), other = Ask(tables, Profile("bert", "9"), 1);
  EXPECT_THAT(*Ask(tables, Profile("bert", "10", 4)), SizeIs(4));
  EXPECT_NE(Ask(tables, Profile("bert", "10", 4), 1), other);
  EXPECT_THAT(*before, SizeIs(2));  // Who holds it keeps it.
}

TEST(SpeedTables, AForgottenProfileIsFittedAgain) {
  SpeedTables tables;
  const SpeedTables::Table bert = Ask(tables, Profile("bert", "1")), resnet = Ask(tables, Profile("resnet", "1"));
  tables.Forget("bert");
  tables.Forget("unknown");
  EXPECT_NE(Ask(tables, Profile("bert", "1")), bert);
  EXPECT_EQ(Ask(tables, Profile("resnet", "1")), resnet);
}

TEST(SpeedTables, TheProfilesThatWereAskedForLastAreKept) {
  SpeedTables tables;
  const SpeedTables::Table asked_again = Ask(tables, Profile("a", "1")), not_asked = Ask(tables, Profile("b", "1"));
  for (std::size_t i = 2; i < SpeedTables::kMostProfiles; ++i) Ask(tables, Profile(std::to_string(i), "1", 0));
  EXPECT_EQ(Ask(tables, Profile("a", "1")), asked_again);

  Ask(tables, Profile("one more", "1", 0));

  EXPECT_EQ(Ask(tables, Profile("a", "1")), asked_again);
  EXPECT_NE(Ask(tables, Profile("b", "1")), not_asked);
}

TEST(SpeedTables, TheQuestionsThatWereAskedLastAreKept) {
  SpeedTables tables;
  const api::WorkloadProfile profile = Profile("bert", "1");
  const SpeedTables::Table asked_again = Ask(tables, profile, 1), not_asked = Ask(tables, profile, 2);
  for (int i = 3; i <= int(SpeedTables::kMostQuestions); ++i) Ask(tables, profile, i);
  EXPECT_EQ(Ask(tables, profile, 1), asked_again);

  Ask(tables, profile, 100);

  EXPECT_EQ(Ask(tables, profile, 1), asked_again);
  EXPECT_NE(Ask(tables, profile, 2), not_asked);
}

TEST(SpeedTables, ThreadsGetTheTableOfTheVersionThatTheyAskFor) {
  SpeedTables tables;
  const auto ask = [&tables](int sizes) {
    const api::WorkloadProfile profile = Profile("bert", std::to_string(sizes), sizes);
    for (int i = 0; i < 50; ++i) {
      EXPECT_THAT(*Ask(tables, profile, 1), SizeIs(sizes));
      if (i % 10 == 0) tables.Forget("bert");
    }
  };
  const std::jthread other(ask, 2);
  ask(3);
}

}  // namespace
}  // namespace grus
