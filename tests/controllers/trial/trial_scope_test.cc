// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_scope.h"

#include <gmock/gmock.h>

#include <vector>

#include "controllers/measure/measured_work.h"
#include "controllers/policy/decimal.h"

namespace grus {
namespace {

using ::testing::HasSubstr;

struct Rate {
  int gpus;
  double rate, step_ms = 0;  // 0: the log does not say.
};

api::TrialJobStatus StatusOf(const std::vector<Rate>& rates) {
  api::TrialJobStatus status;
  status.throughput_unit = api::ThroughputUnit::kSamplesPerSecond;
  for (const Rate& rate : rates) {
    api::Trial& trial = status.trials.emplace_back();
    trial.config.gpus = rate.gpus;
    trial.phase = api::TrialPhase::kSucceeded;
    trial.message = "whose is it?";
    trial.measured.emplace();
    trial.measured->throughput = Decimal(rate.rate);
    trial.measured->step_milliseconds = Decimal(rate.step_ms);
    trial.measured->is_scope_unknown = rate.gpus > 1;
  }
  return status;
}

TEST(SettleScopes, TakesWhatTheSizesShowAndLeavesOpenWhatTheyDoNot) {
  constexpr auto kPerGpu = api::BatchSizeScope::kPerGpu, kPerJob = api::BatchSizeScope::kPerJob;
  struct Case {
    const char* what;
    api::BatchSizeScope scope;
    std::vector<Rate> rates;
    std::vector<double> want;  // Of the job; empty: open.
  };
  const Case cases[] = {
      {"step and rate stay: of one GPU", kPerGpu, {{1, 100, 500}, {2, 99, 505}, {4, 98, 510}}, {100, 198, 392}},
      {"the step stays and the rate grows: of all", kPerGpu, {{1, 100, 500}, {2, 198, 505}}, {100, 198}},
      {"one batch for all, and the step stays: of all", kPerJob, {{1, 100, 500}, {4, 104, 480}}, {100, 104}},
      {"one batch for all, a shorter step, the same rate: of one GPU",
       kPerJob,
       {{1, 100, 500}, {4, 98, 128}},
       {100, 392}},
      {"no step, and the rate grows", kPerGpu, {{1, 100}, {2, 150}}, {100, 150}},
      {"no step, and the rate stays: of one GPU, or more do not help", kPerGpu, {{1, 100}, {2, 99}}, {}},
      {"no step, and the rate falls", kPerGpu, {{1, 100}, {2, 60}}, {}},
      {"one size tells it of the others, too", kPerGpu, {{1, 100}, {2, 110}, {8, 500}}, {100, 110, 500}},
      {"sizes that contradict each other", kPerGpu, {{1, 100, 500}, {2, 99, 505}, {4, 390, 510}}, {}},
      {"no size is known", kPerGpu, {{2, 100, 500}, {4, 99, 505}}, {}},
      {"a step that explains neither", kPerGpu, {{1, 100, 500}, {4, 100, 1000}}, {}},
  };
  for (const Case& c : cases) {
    api::TrialSpace space;
    space.batch_size_scope = c.scope;
    api::TrialJobStatus status = StatusOf(c.rates);
    SettleScopes(space, status);
    const auto doubt = FindDoubt(space, status);
    ASSERT_EQ(doubt.has_value(), c.want.empty()) << c.what;
    if (doubt) {
      EXPECT_EQ(doubt->why, "whose is it?") << c.what;
      continue;
    }
    for (std::size_t i = 0; i < c.want.size(); ++i) {
      EXPECT_NEAR(*ParseDecimal(status.trials[i].measured->throughput), c.want[i], 1) << c.what << ", size " << i;
      EXPECT_FALSE(status.trials[i].measured->is_scope_unknown) << c.what;
    }
  }
}

TEST(FindDoubt, StepsThatBecomeShorterHaveNoBatchForEachGpu) {
  api::TrialJobStatus status = StatusOf({{1, 2, 500}, {2, 8, 250}});
  for (api::Trial& trial : status.trials) {
    trial.measured->is_scope_unknown = false;
    trial.measured->steps = 100;
  }
  api::TrialSpace space;
  const auto doubt = FindDoubt(space, status);
  ASSERT_TRUE(doubt);
  EXPECT_THAT(doubt->why, HasSubstr("a step takes 500 ms on 1 GPU and 250 ms on 2"));
  EXPECT_THAT(doubt->why, HasSubstr("set space.batchSizeScope: PerJob"));

  status.trials[1].measured->throughput = "4";
  space.batch_size_scope = api::BatchSizeScope::kPerJob;
  EXPECT_FALSE(FindDoubt(space, status));
  space.batch_size_scope = api::BatchSizeScope::kPerGpu;
  status.trials[1].measured->steps.reset();  // The speed is a rate that the log states.
  EXPECT_FALSE(FindDoubt(space, status));
}

TEST(FindDoubt, ASpeedThatGrowsFasterThanTheGpusIsNotBelieved) {
  const auto known = [](const std::vector<Rate>& rates) {
    api::TrialJobStatus status = StatusOf(rates);
    for (api::Trial& trial : status.trials) trial.measured->is_scope_unknown = false;
    return FindDoubt({}, status);
  };
  const auto doubt = known({{1, 100}, {2, 400}, {4, 1600}});
  ASSERT_TRUE(doubt);
  EXPECT_THAT(doubt->why, HasSubstr("its speed grows faster than its GPUs: 100 samples/s"));
  EXPECT_FALSE(known({{1, 100}, {2, 220}, {4, 450}})) << "caches may do that";
}

}  // namespace
}  // namespace grus
