// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/pollux_job.h"

#include <gtest/gtest.h>

#include "bench/sim/pollux_replay.h"
#include "tests/kit/tree_file.h"

namespace grus {
namespace {

class ReplayJobTest : public ::testing::Test {
 protected:
  const kube::Result<Applications> applications_ = LoadApplications(kit::TreePath("bench/data/pollux/traces"));

  ReplayJob Job(const std::string& application, int batch, BatchSize batch_size) const {
    return {{.name = "job", .application = application, .gpus = 1, .batch = batch},
            applications_->at(application),
            batch_size};
  }

  // On GPUs of one node.
  static double SecondsUntilComplete(ReplayJob job, int gpus) {
    job.Move(GpuNodes(static_cast<std::size_t>(gpus), 0), {});
    job.Train(0, 1e8);
    return job.completed_s().value_or(-1);
  }
};

// The batch size is chosen among fifty: the best can lie between two of them.
TEST_F(ReplayJobTest, AnAdaptiveBatchIsCompleteNoLaterOnTheSameGpus) {
  ASSERT_TRUE(applications_);
  for (const auto& [name, application] : *applications_) {
    for (const int batch : {application.initial_batch(), application.max_batch()}) {
      for (const int gpus : {1, 2, 4}) {
        const double fixed = SecondsUntilComplete(Job(name, batch, BatchSize::kAsSubmitted), gpus);
        const double adaptive = SecondsUntilComplete(Job(name, batch, BatchSize::kAdaptive), gpus);
        ASSERT_GT(fixed, 0);
        ASSERT_GT(adaptive, 0);
        EXPECT_LE(adaptive, 1.01 * fixed) << name << ", " << gpus << " GPUs, batch " << batch;
      }
    }
  }
}

TEST_F(ReplayJobTest, AnAdaptiveBatchDoesNotDependOnTheOneSubmitted) {
  ASSERT_TRUE(applications_);
  const Application& bert = applications_->at("bert");
  EXPECT_EQ(SecondsUntilComplete(Job("bert", bert.initial_batch(), BatchSize::kAdaptive), 4),
            SecondsUntilComplete(Job("bert", bert.max_batch(), BatchSize::kAdaptive), 4));
  EXPECT_EQ(Job("bert", bert.initial_batch(), BatchSize::kAdaptive).max_gpus(),
            Job("bert", bert.max_batch(), BatchSize::kAsSubmitted).max_gpus());
}

}  // namespace
}  // namespace grus
