// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_view.h"

#include <gmock/gmock.h>

#include "tests/controllers/gang/gang_builder.h"

namespace grus::testing {
namespace {

using ::testing::ElementsAre;

Member Gated(const std::string& owner) {
  Member member;
  member.owner_uid = owner;
  return member;
}
Member Bound(const std::string& owner, int bound_at) {
  Member member = Gated(owner);
  member.state = MemberState::kBound;
  member.bound_at = At(bound_at);
  return member;
}
Member Ended(const std::string& owner, int bound_at, int ended_at, MemberState state = MemberState::kSucceeded) {
  Member member = Bound(owner, bound_at);
  member.state = state;
  member.ended_at = At(ended_at);
  return member;
}

// In the order in which they changed last.
std::vector<bool> ArePast(std::vector<Member> members) {
  for (std::size_t i = 0; i < members.size(); ++i) members[i].resource_version = std::to_string(i + 1);
  MarkEarlierRuns(members, At(0));
  std::vector<bool> past;
  for (const Member& member : members) past.push_back(member.state == MemberState::kPast);
  return past;
}

TEST(GangRuns, WhatAnEarlierJobLeftIsPastForTheNext) {
  EXPECT_THAT(ArePast({Ended("first", -90, -10), Ended("first", -90, -9, MemberState::kFailed), Gated("second")}),
              ElementsAre(true, true, false));
  EXPECT_THAT(ArePast({Ended("first", -90, -10), Bound("second", -10)}), ElementsAre(true, false))
      << "it waited for the room of the first";
}

TEST(GangRuns, WhatAJobsOtherPodsDidCountsForThoseThatItMakesAgain) {
  EXPECT_THAT(ArePast({Ended("job", -90, -50), Ended("job", -90, -40, MemberState::kFailed), Gated("job")}),
              ElementsAre(false, false, false));
}

TEST(GangRuns, WhoEndedWhileAnotherOfItRanIsOfTheSameRun) {
  EXPECT_THAT(ArePast({Ended("driver", -90, -20), Bound("workers", -89), Gated("workers")}),
              ElementsAre(false, false, false));
  EXPECT_THAT(ArePast({Ended("", -90, -20), Bound("", -20), Gated("")}), ElementsAre(false, false, false))
      << "bare pods";
}

TEST(GangRuns, WhatEndedBeforeTheClockWasSetBackIsPastForAnotherOwner) {
  EXPECT_THAT(ArePast({Ended("first", 3000, 3600), Bound("second", -10)}), ElementsAre(true, false));
  EXPECT_THAT(ArePast({Ended("first", 3000, 3600), Ended("first", 3000, 3601)}), ElementsAre(false, false));
}

TEST(GangRuns, WhereAllHaveEndedTheLastSaysWhichRunItWas) {
  EXPECT_THAT(ArePast({Ended("first", -90, -60), Ended("driver", -50, -30), Ended("second", -50, -20),
                       Ended("second", -50, -10)}),
              ElementsAre(true, false, false, false));
  EXPECT_THAT(ArePast({Ended("first", 3000, 3600), Ended("second", -50, -10)}), ElementsAre(true, false))
      << "whatever the clock said";
  EXPECT_THAT(ArePast({Ended("", -3600, -3500), Ended("", -90, -60)}), ElementsAre(false, false)) << "bare pods";
  EXPECT_THAT(ArePast({}), ElementsAre());
}

kube::Pod PodOfJob() {
  kube::Pod pod;
  pod.metadata.name = "train-0";
  pod.metadata.finalizers = {kJobTracking};
  kube::OwnerReference& job = pod.metadata.owner_references.emplace_back();
  job.name = "train";
  job.uid = "uid-9";
  job.controller = true;
  pod.spec.node_name = "node-0";
  return pod;
}

TEST(GangRuns, AMemberSaysWhenItWasBoundAndWhenItsLastContainerEnded) {
  kube::Pod pod = PodOfJob();
  pod.status.phase = "Succeeded";
  kube::CoreCondition& scheduled = pod.status.conditions.emplace_back();
  scheduled.type = "PodScheduled";
  scheduled.status = "True";
  scheduled.last_transition_time = At(-90);
  for (const int ended_at : {-20, -10}) {
    kube::ContainerStateTerminated end;
    end.finished_at = At(ended_at);
    pod.status.container_statuses.emplace_back().state.terminated = end;
  }
  const Member member = ReadMember(pod, nullptr, false);
  EXPECT_EQ(member.bound_at, At(-90));
  EXPECT_EQ(member.ended_at, At(-10));
  EXPECT_EQ(member.owner_uid, "uid-9");
  EXPECT_TRUE(member.is_tracked_by_job);
}

TEST(ReadMember, APodThatWasGivenUpIsEndingUnlessItsJobCountsItOrItHasEnded) {
  kube::Pod pod;
  pod.metadata.name = "job-x";
  pod.spec.node_name = "node-0";
  pod.metadata.annotations.emplace(kGangGivenUpAnnotation, "true");
  const Member given_up = ReadMember(pod, nullptr, false);
  EXPECT_TRUE(given_up.is_given_up);
  EXPECT_EQ(given_up.state, MemberState::kEnding);
  kube::Pod ended = pod;
  ended.status.phase = "Succeeded";
  EXPECT_FALSE(ReadMember(ended, nullptr, false).is_given_up);
  pod.metadata.finalizers.emplace_back(kJobTracking);
  EXPECT_FALSE(ReadMember(pod, nullptr, false).is_given_up);
}

}  // namespace
}  // namespace grus::testing
