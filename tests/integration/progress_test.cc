// SPDX-License-Identifier: Apache-2.0
// status.progress: what the log of a launcher says, through the API server's own way to the kubelet's logs.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "tests/integration/elastic_job.h"
#include "tests/kit/local_cluster.h"

namespace grus::testing {
namespace {

using std::chrono::seconds;

class TrainingProgress : public ElasticJob {
 protected:
  // As if it had printed a step each ten seconds until now.
  void Print(const std::string& pod, int from, int to, int total) {
    std::ofstream log(kit::PodLogFile(ns(), pod), std::ios::app);
    const auto now = std::chrono::system_clock::now();
    for (int step = from; step <= to; ++step) {
      log << kube::ToMicroText({now - seconds(10 * (to - step))}) << " stdout F step " << step << "/" << total
          << " loss 2.3\n";
    }
  }
};

TEST_F(TrainingProgress, SaysHowFarTheTrainingIsAndWhenItIsDone) {
  AddNode(8);
  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":2}})");
  ASSERT_TRUE(AwaitTrains(2));
  const PodPtr launcher = LauncherPod();
  ASSERT_TRUE(launcher);
  Print(launcher->metadata.name, 1, 100, 400);
  ASSERT_TRUE(Await(
      "its progress", [&] { return TheJob()->status.progress.has_value(); }, seconds(60)));
  const api::Progress progress = *TheJob()->status.progress;
  EXPECT_EQ(progress.summary, "25%");
  EXPECT_EQ(progress.step, 100);
  ASSERT_TRUE(progress.eta && progress.time);
  EXPECT_NEAR(std::chrono::duration<double>(progress.eta->value - progress.time->value).count(), 3000, 100);
}

}  // namespace
}  // namespace grus::testing
