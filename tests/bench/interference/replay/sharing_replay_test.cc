// SPDX-License-Identifier: Apache-2.0
#include "bench/interference/replay/sharing_replay.h"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "bench/interference/replay/sharing_policies.h"

namespace grus {
namespace {

// Beside each other, a has 0.5 and b has 0.8 of its speed; c runs beside nobody.
MeasuredSpeeds Speeds() {
  const SharedJob a{"a", "", {}}, b{"b", "", {}};
  return MeasuredSpeeds({"a", "b", "c"}, {{a, b, "", 0.5, 1}, {b, a, "", 0.8, 1}, {a, a, "", 0.6, 1}});
}

TEST(Replay, JobsThatShareRunAtTheirMeasuredSpeeds) {
  const MeasuredSpeeds speeds = Speeds();
  MemoryBestFit policy(speeds, {1, 1, 1}, false);
  // b ends after 1 / 0.8 s; by then a has done 0.625 of 1, and does the rest alone.
  const SharingFigures figures = Replay({{0, 1, 0}, {0, 1, 1}}, 1, speeds, policy);
  EXPECT_NEAR(figures.makespan, 1.25 + 0.375, 1e-9);
  EXPECT_NEAR(figures.mean_jct, (1.25 + 1.625) / 2, 1e-9);
  EXPECT_NEAR(figures.work_a_busy_second, 2 / 1.625, 1e-9);
  EXPECT_NEAR(figures.work_a_gpu_second, 2 / 1.625, 1e-9);
  EXPECT_EQ(figures.longest_wait, 0);
}

TEST(Replay, AJobThatHasToWaitDoesNotHoldUpTheNext) {
  const MeasuredSpeeds speeds = Speeds();
  MemoryBestFit policy(speeds, {1, 1, 1}, false);
  // c waits for both; b joins a at once.
  const SharingFigures figures = Replay({{0, 1, 0}, {0, 1, 2}, {0, 1, 1}}, 1, speeds, policy);
  EXPECT_NEAR(figures.makespan, 2.625, 1e-9);
  EXPECT_NEAR(figures.longest_wait, 1.625, 1e-9);
}

TEST(Replay, WorkOfABusySecondLeavesOutGpusWithoutAJob) {
  const MeasuredSpeeds speeds = Speeds();
  ExclusivePolicy policy;
  const SharingFigures figures = Replay({{1, 1, 0}, {1.5, 1, 0}}, 4, speeds, policy);
  EXPECT_NEAR(figures.makespan, 1.5, 1e-9);  // From the first arrival.
  EXPECT_NEAR(figures.mean_jct, 1, 1e-9);
  EXPECT_NEAR(figures.work_a_busy_second, 1, 1e-9);
  EXPECT_NEAR(figures.work_a_gpu_second, 2 / (4 * 1.5), 1e-9);
}

class PutsAllOnTheFirst final : public SharingPolicy {
 public:
  std::optional<std::size_t> Choose(std::size_t, const std::vector<std::vector<std::size_t>>&, std::size_t) override {
    return 0;
  }
};

TEST(Replay, APolicyThatPutsJobsWhereTheyDoNotRunIsRefused) {
  const MeasuredSpeeds speeds = Speeds();
  PutsAllOnTheFirst policy;
  EXPECT_THROW(Replay({{0, 1, 0}, {0, 1, 2}}, 1, speeds, policy), std::logic_error);
  EXPECT_THROW(Replay({{0, 1, 0}, {0, 1, 1}, {0, 1, 1}}, 1, speeds, policy), std::logic_error);
}

TEST(DrawJobs, BringsWorkAtTheLoadThatWasAsked) {
  constexpr std::size_t kCount = 20000;
  for (const WorkLengths lengths : {WorkLengths::kUniform, WorkLengths::kExponential, WorkLengths::kGavel}) {
    const std::vector<ArrivingJob> jobs = DrawJobs(kCount, 26, 32, 1.5, lengths, 1);
    ASSERT_EQ(jobs.size(), kCount);
    double work = 0;
    std::vector<int> of_kind(26);
    for (const ArrivingJob& job : jobs) {
      work += job.work;
      ++of_kind.at(job.kind);
    }
    EXPECT_NEAR(work / kCount, 1, 0.05);
    EXPECT_NEAR(work / jobs.back().arrival / 32, 1.5, 0.1);
    for (const int count : of_kind) EXPECT_NEAR(count, kCount / 26, 120);
  }
}

}  // namespace
}  // namespace grus
