// SPDX-License-Identifier: Apache-2.0
#include "bench/interference/replay/sharing_policies.h"

#include <gtest/gtest.h>

#include <set>

#include "bench/interference/public_co_runs.h"
#include "tests/kit/must.h"
#include "tests/kit/tree_file.h"

namespace grus {
namespace {

// Kinds a, b and c; only b and c do not run together.
MeasuredSpeeds Speeds() {
  const SharedJob a{"a", "", {}}, b{"b", "", {}}, c{"c", "", {}};
  return MeasuredSpeeds({"a", "b", "c"}, {{a, a, "", 0.9, 1},
                                          {a, b, "", 0.9, 1},
                                          {b, a, "", 0.9, 1},
                                          {a, c, "", 0.1, 1},
                                          {c, a, "", 0.1, 1},
                                          {b, b, "", 0.5, 1},
                                          {c, c, "", 0.5, 1}});
}

TEST(MemoryBestFit, TakesTheGpuWithTheLeastMemoryLeftWhateverTheSpeeds) {
  const MeasuredSpeeds speeds = Speeds();
  MemoryBestFit policy(speeds, {1, 2, 3}, false);
  EXPECT_EQ(policy.Choose(0, {{}, {1}, {2}, {0, 0}}, 1), 2u);
  EXPECT_EQ(policy.Choose(2, {{}, {1}}, 1), 0u);  // c does not fit beside b.
  EXPECT_EQ(policy.Choose(2, {{1}, {0, 0}}, 1), std::nullopt);
}

TEST(MemoryBestFit, TheOtherOneSharesOnlyWhenNoGpuIsFree) {
  const MeasuredSpeeds speeds = Speeds();
  MemoryBestFit policy(speeds, {1, 2, 3}, true);
  EXPECT_EQ(policy.Choose(0, {{2}, {}, {1}}, 1), 1u);
  EXPECT_EQ(policy.Choose(0, {{1}, {2}}, 1), 1u);
}

TEST(ExclusivePolicy, NeverShares) {
  ExclusivePolicy policy;
  EXPECT_EQ(policy.Choose(0, {{1}, {}}, 1), 1u);
  EXPECT_EQ(policy.Choose(0, {{1}, {2}}, 1000), std::nullopt);
}

TEST(GrusSharing, AvoidsThePairThatIsSlowAndAsksForNoneThatDoesNotFit) {
  const MeasuredSpeeds speeds = Speeds();
  std::vector<CoRunSample> samples;
  for (const auto& [job, partner, speed] :
       {std::tuple("a", "b", 0.9), {"b", "a", 0.9}, {"a", "a", 0.9}, {"a", "c", 0.1}, {"c", "a", 0.1}}) {
    samples.push_back({{job, "", {}}, {partner, "", {}}, "t", speed, 8});
  }
  GrusSharing policy(
      speeds, "t",
      std::make_shared<PairSpeedCache>(std::make_shared<const InterferenceModel>(*InterferenceModel::Fit(samples))));
  EXPECT_EQ(policy.Choose(0, {{2}, {1}}, 1000), 1u);
  EXPECT_EQ(policy.Choose(2, {{0}, {1}}, 1000), std::nullopt);
  EXPECT_EQ(policy.Choose(2, {{0}, {}}, 1000), 1u);
}

TEST(AssumedMemory, TellsWhichPairsOfGavelRan) {
  const auto all = kit::Must(LoadGavel(kit::TreePath("bench/data"), {"k80", "p100", "v100"}));
  std::set<std::string> names;
  for (const CoRunSample& sample : all) names.insert(sample.job.fingerprint);
  const std::vector<std::string> kinds(names.begin(), names.end());
  ASSERT_EQ(kinds.size(), 26u);
  const std::vector<double> memory = AssumedMemory(kinds);
  int pairs = 0, wrong = 0;
  for (const auto& [type, gibibytes] : {std::pair("k80", 12.0), {"p100", 16.0}, {"v100", 16.0}}) {
    const MeasuredSpeeds speeds(kinds, kit::Must(LoadGavel(kit::TreePath("bench/data"), {type})));
    for (std::size_t a = 0; a < kinds.size(); ++a) {
      for (std::size_t b = a; b < kinds.size(); ++b) {
        if (memory[a] > gibibytes || memory[b] > gibibytes) continue;
        ++pairs;
        wrong += speeds.CanShare(a, b) != (memory[a] + memory[b] <= gibibytes) ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(pairs, 1027);
  EXPECT_EQ(wrong, 25);
}

}  // namespace
}  // namespace grus
