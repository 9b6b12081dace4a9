// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/top.h"

#include <gmock/gmock.h>

namespace grus {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::shared_ptr<const api::WorkloadProfile> Profile() {
  auto profile = std::make_shared<api::WorkloadProfile>();
  api::WorkloadRun busy{.uid = "u1", .job = "ElasticHorovodJob/team-a/train", .gpu_type = "A100", .gpus = 8};
  busy.usage.gpu_utilization_percent = 90;
  busy.usage.max_gpu_memory_bytes = 30000LL << 20;
  busy.character = api::RunCharacter{.kind = "Training", .bottleneck = "Input"};
  api::WorkloadRun idle{.uid = "u2", .job = "Pod/team-b/notebook", .gpus = 1};
  idle.usage.gpu_utilization_percent = 2;
  api::WorkloadRun over{.uid = "u3", .job = "Job/team-a/old", .gpus = 4};
  over.end = *kube::ParseTime("2026-01-02T03:04:05Z");
  profile->spec.runs = {busy, idle, over};
  return profile;
}

TEST(TopText, NamesThoseFirstWhoseGpusIdleMost) {
  const std::string text = TopText({Profile()}, {}, {});
  EXPECT_LT(text.find("notebook"), text.find("train"));
  EXPECT_THAT(text, HasSubstr("team-a      ElasticHorovodJob   train      8      90%    -         29.3Gi"));
  EXPECT_THAT(text, Not(HasSubstr("old")));
}

TEST(TopText, SaysWhatAJobDoesAndWhatHoldsItBack) {
  auto profile = std::make_shared<api::WorkloadProfile>(*Profile());
  EXPECT_THAT(TopText({profile}, {}, {}), HasSubstr("A100   Training   Input        -"));
  profile->spec.runs[0].character = api::RunCharacter{.kind = "Unknown", .bottleneck = "Unknown"};
  EXPECT_THAT(TopText({profile}, {}, {}), Not(HasSubstr("Unknown")));
}

TEST(TopText, ShowsEndedRunsAndNamespacesOnDemand) {
  EXPECT_THAT(TopText({Profile()}, {}, {.shows_ended = true}), HasSubstr("ended 2026-01-02T03:04:05Z"));
  const std::string text = TopText({Profile()}, {}, {.ns = "team-b"});
  EXPECT_THAT(text, HasSubstr("notebook"));
  EXPECT_THAT(text, Not(HasSubstr("train")));
}

TEST(TopText, SaysWhyThereIsNothing) {
  EXPECT_THAT(TopText({}, {}, {}), HasSubstr("--usage-prometheus"));
  EXPECT_THAT(TopText({Profile()}, {}, {.ns = "other"}), HasSubstr("nothing is recorded in namespace other"));
}

TEST(TopText, KnowsTheEtaOfAJob) {
  auto job = std::make_shared<api::ElasticHorovodJob>();
  job->metadata.uid = "u1";
  job->status.progress = api::Progress();
  job->status.progress->eta = *kube::ParseTime("2026-02-02T03:04:05Z");
  EXPECT_THAT(TopText({Profile()}, {job}, {}), HasSubstr("2026-02-02T03:04:05Z"));
}

}  // namespace
}  // namespace grus
