// SPDX-License-Identifier: Apache-2.0
// status.progress: what the log of a launcher says, through the API server's own way to the kubelet's logs, and what a
// training pushes by annotations.
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

// The total stands on the job, where a user wrote it; the training writes its steps on its own pod.
TEST_F(TrainingProgress, WhatATrainingPushesIsInTheColumnsAtOnceAndGoesBeforeItsLog) {
  AddNode(8);
  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":2}})");
  ASSERT_TRUE(AwaitTrains(2));
  const PodPtr launcher = LauncherPod();
  ASSERT_TRUE(launcher);
  Print(launcher->metadata.name, 1, 1, 1000);
  Edit(R"({"metadata":{"annotations":{"ai.centauruscloud.io/total-steps":"400"}}})");
  const auto push = [&](const std::string& step) {
    Patch<kube::Pod>(launcher->metadata.name,
                     R"({"metadata":{"annotations":{"ai.centauruscloud.io/step":")" + step + R"("}}})");
  };
  const std::string path = "/apis/ai.centauruscloud.io/v1alpha1/namespaces/" + ns() + "/elastichorovodjobs/train";
  const auto columns = [&] { return world().Columns(path); };
  const auto is_at = [&](int percent) {
    const auto& progress = TheJob()->status.progress;
    return progress && progress->percent == percent;
  };
  for (int percent = 10; percent <= 14; ++percent) {  // A percent each seven seconds.
    push(std::to_string(4 * percent));
    ASSERT_TRUE(Await(
        "what was pushed", [&] { return is_at(percent); }, seconds(5)));
    EXPECT_EQ(columns().at("Progress"), std::to_string(percent) + "%");
    if (percent == 10) {
      EXPECT_EQ(columns().at("ETA"), "") << "nobody knows yet how fast it is";
    }
    ASSERT_TRUE(Stays(
        "what was pushed", [&] { return is_at(percent); }, seconds(7)));
  }
  push("60");
  ASSERT_TRUE(Await(
      "its end", [&] { return TheJob()->status.progress->eta.has_value() && is_at(15); }, seconds(5)));
  const api::Progress progress = *TheJob()->status.progress;
  EXPECT_NEAR(std::chrono::duration<double>(progress.eta->value - progress.time->value).count(), 85 * 7, 60);
  EXPECT_EQ(columns().at("ETA"), kube::ToText(*progress.eta));

  push("-1");
  const auto is_refused = [&] {
    return std::ranges::any_of(world().List<kube::Event>(ns()), [](const auto& event) {
      return event->reason == "ProgressRefused" && event->note.view().find("step is \"-1\"") != std::string::npos;
    });
  };
  EXPECT_TRUE(Await("its refusal", is_refused, seconds(10)));
  EXPECT_EQ(columns().at("Progress"), "15%");
}

}  // namespace
}  // namespace grus::testing
