// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_holdings.h"

#include <gtest/gtest.h>

#include "clientlib/testing/fake_clock.h"

namespace grus {
namespace {

using std::chrono::seconds;

class Holdings : public ::testing::Test {
 protected:
  kube::Time In(int s) const { return kube::Time{start_ + seconds(s)}; }
  TrialRun Running() const {
    TrialRun run;
    run.child.emplace();
    run.child->uid = "u";
    run.child->is_ours = true;
    run.pods.holding = 2;
    run.pods.first_bound = In(0);
    return run;
  }
  // A worker that was bound at 0 and has ended at `s`, as its pod says; none: it does not.
  kube::Pod Worker(std::optional<int> s) const {
    kube::Pod pod;
    pod.metadata.creation_timestamp = In(0);
    if (!s) return pod;
    pod.status.phase = "Failed";
    kube::ContainerStatus status;
    status.state.terminated.emplace();
    status.state.terminated->finished_at = In(*s);
    pod.status.container_statuses.push_back(status);
    return pod;
  }
  TrialRun Look(TrialRun run, bool is_active = true) {
    api::TrialJobStatus status;
    status.spent.time = counted_at_;
    api::Trial& trial = status.trials.emplace_back();
    trial.name = "t";
    trial.phase = is_active ? api::TrialPhase::kMeasuring : api::TrialPhase::kSucceeded;
    trial.config.gpus = 2;
    trial.gpu_seconds = counted_;
    holdings_.SetHeld("t", status, std::nullopt, clock_, run);
    return run;
  }
  TrialRun Freed() const {
    TrialRun run = Running();
    run.pods = {};
    return run;
  }

  kube::testing::FakeClock clock_;
  const kube::WallTime start_ = clock_.WallNow();
  TrialHoldings holdings_;
  std::int64_t counted_ = 0;                // By the status,
  std::optional<kube::Time> counted_at_{};  // at this time.
};

TEST_F(Holdings, AProcessThatBeginsWithAClockThatIsBehindCountsOnFromTheStatus) {
  clock_.Advance(seconds(60));
  counted_ = 100;  // Of 2 GPUs.
  TrialRun run = Running();
  run.pods.first_bound = In(3600);
  EXPECT_EQ(Look(run).held_since->value, In(10).value);

  clock_.Advance(seconds(20));
  run.pods.holding = 0;
  run.pods.last_end = In(3690);
  EXPECT_EQ(Look(run).held_for, kube::Duration(seconds(91)));
}

// It was bound at 0 and counted 10 s ago, after the jump.
TEST_F(Holdings, AProcessThatBeginsAfterTheClockHasJumpedAlsoCountsTheTimeSinceTheStatus) {
  for (const int jump : {-3600, -70, 3600}) {
    holdings_ = {};
    clock_.SetWall(In(60 + jump).value);
    counted_ = 100;
    counted_at_ = In(50 + jump);
    EXPECT_EQ(Look(Running()).held_since, In(jump)) << jump;
  }
}

TEST_F(Holdings, AProcessThatBeginsCountsByThePodsIfTheStatusAgrees) {
  clock_.Advance(seconds(60));
  counted_ = 100;
  counted_at_ = In(45);
  EXPECT_EQ(Look(Running()).held_since, In(0));
}

// The status of before may not have known that it was bound.
TEST_F(Holdings, AStatusThatHasCountedNothingSaysNothingOfTheClock) {
  clock_.Advance(seconds(60));
  counted_at_ = In(50);
  EXPECT_EQ(Look(Running()).held_since, In(0));
}

TEST_F(Holdings, NewsThatComeLateCostNothing) {
  Look(Running());
  clock_.Advance(seconds(60));
  holdings_.NoteGone("t", Worker(9));
  holdings_.NoteGone("t", Worker(10));
  EXPECT_EQ(Look(Freed()).held_for, kube::Duration(seconds(11)));  // And the second that times do not tell.
}

TEST_F(Holdings, APodThatWentWithoutAWordHeldUntilItsAbsenceWasSeen) {
  Look(Running());
  clock_.Advance(seconds(60));
  holdings_.NoteGone("t", Worker(10));
  holdings_.NoteGone("t", Worker(std::nullopt));
  const TrialRun run = Look(Freed());
  EXPECT_EQ(run.held_since, In(0));
  EXPECT_FALSE(run.held_for);
}

TEST_F(Holdings, ATryThatHasEndedBeforeAnybodySawItHasHeldItsGpus) {
  clock_.Advance(seconds(60));
  holdings_.NoteGone("t", Worker(10));
  EXPECT_EQ(Look(Freed()).held_for, kube::Duration(seconds(11)));
}

TEST_F(Holdings, AnEndThatIsTakenFromAClockThatHasJumpedIsNone) {
  Look(Running());
  clock_.Advance(seconds(60));
  clock_.SetWall(clock_.WallNow() - std::chrono::hours(1));
  holdings_.NoteGone("t", Worker(10));
  EXPECT_FALSE(Look(Freed()).held_for);
}

}  // namespace
}  // namespace grus
