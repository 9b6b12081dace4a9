// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sample_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grus {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

kube::TimePoint At(int second) { return kube::TimePoint(std::chrono::hours(1) + seconds(second)); }

SampleRing Filled(int first, int last) {
  SampleRing ring;
  for (int second = first; second <= last; ++second) {
    ring.Add(At(second), {.utilization_percent = static_cast<std::uint32_t>(second)});
  }
  return ring;
}

std::vector<std::uint32_t> Since(const SampleRing& ring, kube::TimePoint since) {
  std::vector<std::uint32_t> found;
  ring.ForEach(since, [&](const GpuSample& sample) { found.push_back(*sample.utilization_percent); });
  return found;
}

TEST(SampleRing, AnEmptyOneHasNothing) {
  const SampleRing ring;
  EXPECT_EQ(ring.newest(), nullptr);
  EXPECT_THAT(Since(ring, kube::TimePoint::min()), IsEmpty());
}

TEST(SampleRing, VisitsTheSamplesAfterATimeOldestFirst) {
  EXPECT_THAT(Since(Filled(1, 10), At(7)), ElementsAre(8, 9, 10));
}

TEST(SampleRing, KeepsTheLastTenMinutesAndNoMore) {
  const SampleRing ring = Filled(1, 1500);

  const std::vector<std::uint32_t> all = Since(ring, At(0));

  EXPECT_EQ(ring.size(), 600u);
  ASSERT_THAT(all, SizeIs(600));
  EXPECT_EQ(all.front(), 901u);
  EXPECT_EQ(all.back(), 1500u);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_EQ(ring.newest()->utilization_percent, 1500u);
}

TEST(SampleRing, ASampleFromBeforeAGapIsNotOfTheLastTenMinutes) {
  SampleRing ring = Filled(1, 3);
  ring.Add(At(602), {.utilization_percent = 602});

  EXPECT_THAT(Since(ring, At(0)), ElementsAre(3, 602));
}

}  // namespace
}  // namespace grus
