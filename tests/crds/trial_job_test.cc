// SPDX-License-Identifier: Apache-2.0
#include "crds/types/trial_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <utility>

#include "tests/crds/schema_walk.h"

namespace api {
namespace {

using kube::Json;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const kube::Kind& TheKind() { return TrialJob::ResourceKind(); }
Json SchemaAt(std::initializer_list<std::string_view> fields) { return SchemaOf(TheKind(), fields); }
Json DefaultOf(std::initializer_list<std::string_view> field) { return At(SchemaAt(field), {"default"}); }

constexpr char kSmallest[] = R"({
  "apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"TrialJob","metadata":{"name":"bert","namespace":"team-a"},
  "spec":{"workload":{"jobRef":{"name":"bert"}}}})";

std::shared_ptr<TrialJob> Read(std::string_view text) {
  auto job = kube::Decode<TrialJob>(text);
  EXPECT_TRUE(job) << job.error().message();
  return job ? *job : std::make_shared<TrialJob>();
}

kube::Time Noon() { return *kube::ParseTime("2026-01-02T12:00:00Z"); }

Trial MeasuredTrial(std::string name) {
  Trial trial;
  trial.name = std::move(name);
  trial.config = {"NVIDIA-A100-SXM4-80GB", 8, 2, 64};
  trial.phase = TrialPhase::kSucceeded;
  trial.reason = TrialReason::kPrecisionReached;
  trial.message = "90 % interval is within 4.1 % after 31 s";
  trial.start_time = Noon();
  trial.end_time = Noon();
  trial.measured = Measurement{"812.4", "790.1", "835.0", "630.2", "613.0", "648.1", 120, 68719476736, 93};
  trial.gpu_seconds = 840;
  return trial;
}

TEST(TrialJob, TheSmallestManifestNamesAJobAndNothingElse) {
  const TrialJobSpec spec = Read(kSmallest)->spec;
  ASSERT_TRUE(spec.workload.job_ref);
  EXPECT_EQ(spec.workload.job_ref->name, "bert");
  EXPECT_FALSE(spec.workload.job_template);
  EXPECT_EQ(At(SchemaAt({"spec"}), {"required"}), Json::MakeArray({"workload"}));
  for (const char* part : {"space", "strategy", "measure", "budget", "extrapolate", "cache"}) {
    EXPECT_TRUE(At(SchemaAt({"spec", part}), {"required"}).is_null()) << part;
  }
}

TEST(TrialJob, TheSchemasDefaultsAreThoseOfTheTypes) {
  const TrialJobSpec spec;
  EXPECT_EQ(DefaultOf({"spec", "space", "batchSizeScope"}), Json("PerGpu"));
  EXPECT_EQ(DefaultOf({"spec", "strategy", "type"}), Json("Ladder"));
  EXPECT_EQ(DefaultOf({"spec", "strategy", "maxTrials"}), Json(spec.strategy.max_trials));
  EXPECT_EQ(DefaultOf({"spec", "strategy", "parallelism"}), Json(spec.strategy.parallelism));
  EXPECT_EQ(DefaultOf({"spec", "measure", "source"}), Json("Logs"));
  EXPECT_EQ(DefaultOf({"spec", "measure", "windowSeconds"}), Json(spec.measure.window_seconds));
  EXPECT_EQ(DefaultOf({"spec", "measure", "precisionPercent"}), Json(spec.measure.precision_percent));
  EXPECT_EQ(DefaultOf({"spec", "budget", "perTrialSeconds"}), Json(spec.budget.per_trial_seconds));
  EXPECT_EQ(DefaultOf({"spec", "earlyStop"}), Json(spec.early_stop));
  EXPECT_EQ(DefaultOf({"spec", "idleOnly"}), Json(spec.idle_only));
  EXPECT_EQ(DefaultOf({"spec", "extrapolate", "maxIntervalRatio"}), Json(spec.extrapolate.max_interval_ratio));
  EXPECT_EQ(DefaultOf({"spec", "cache", "policy"}), Json("Use"));
  EXPECT_EQ(DefaultOf({"spec", "cache", "maxAgeSeconds"}), Json(spec.cache.max_age_seconds));
  EXPECT_EQ(DefaultOf({"spec", "apply"}), Json("Recommend"));
  EXPECT_EQ(DefaultOf({"spec", "cleanup"}), Json("Always"));
  EXPECT_EQ(DefaultOf({"spec", "suspend"}), Json(spec.suspend));
  // Without these no default below them would ever be filled in.
  for (const char* part : {"space", "strategy", "budget", "extrapolate", "cache"}) {
    EXPECT_EQ(DefaultOf({"spec", part}), Json::MakeObject()) << part;
  }
  EXPECT_EQ(DefaultOf({"spec", "measure"}), Json::MakeObject({{"source", "Logs"}}));
}

TEST(TrialJob, ABudgetOfZeroIsLegalAndMeansThatNothingIsRun) {
  for (const char* budget : {"wallSeconds", "gpuSeconds"}) {
    const Json field = SchemaAt({"spec", "budget", budget});
    EXPECT_EQ(At(field, {"minimum"}), Json(0)) << budget;
    EXPECT_THAT(*At(field, {"description"}).AsString(), HasSubstr("With 0 no trial is run")) << budget;
    // No limit is not the same as 0.
    EXPECT_TRUE(At(field, {"default"}).is_null()) << budget;
  }
  EXPECT_EQ(At(SchemaAt({"spec", "budget", "perTrialSeconds"}), {"minimum"}), Json(1));
}

TEST(TrialJob, ATemplateIsTheSpecOfAnElasticHorovodJob) {
  const Json ours = SchemaAt({"spec", "workload", "template", "spec"});
  const Json theirs = SchemaOf(ElasticHorovodJob::ResourceKind(), {"spec"});
  EXPECT_EQ(At(ours, {"properties"}), At(theirs, {"properties"}));
  EXPECT_EQ(At(ours, {"required"}), At(theirs, {"required"}));
}

TEST(TrialJob, WhatIsNotKnownIsNotWritten) {
  TrialJob job;
  job.status.trials = {Trial{.name = "bert-8g", .config = {"", 8, 0, 0}}};
  job.status.recommendation = {{.goal = Goal::kKnee, .message = "not known"}};

  const Json status = At(*kube::ParseJson(kube::EncodeObject(TheKind(), job)), {"status"});
  const Json trial = At(status, {"trials"}).AsArray()->front();
  EXPECT_EQ(At(trial, {"config"}), Json::MakeObject({{"gpus", 8}}));
  for (const char* field : {"reason", "message", "startTime", "measured", "log"}) {
    EXPECT_EQ(trial.Find(field), nullptr) << field;
  }
  EXPECT_EQ(At(status, {"recommendation"}).AsArray()->front().Find("gpus"), nullptr);
  for (const char* field : {"model", "throughputUnit", "fingerprint"}) EXPECT_EQ(status.Find(field), nullptr) << field;
}

TEST(TrialJob, AFullStatusFitsIntoAnObject) {
  // etcd takes requests of at most 1.5 MB; the spec and managedFields come on top.
  constexpr std::size_t kRoom = 1'000'000;
  TrialJob job;
  const std::string name(44, 'a');
  Trial trial = MeasuredTrial(name);
  trial.message = std::string(1024, 'm');
  trial.config.gpu_type = std::string(63, 'g');
  job.status.trials.assign(kMaxTrials, trial);
  const std::string number = "123456789012345.123";
  job.status.curve.assign(kMaxCurvePoints, {std::string(63, 'g'), 65536, 65536, CurveSource::kExtrapolated, number,
                                            number, number, number, number});
  job.status.conditions.assign(8, {"Reconciling", "False", "SourceUnreachable", std::string(1024, 'm'), Noon(), 3});

  EXPECT_LT(kube::EncodeObject(TheKind(), job).size(), kRoom);
}

TEST(TrialJob, ReasonsAreLegalInACondition) {
  const std::regex pascal("[A-Z][A-Za-z]+");
  for (const std::string_view name : EnumNames(TrialJobReason::kPending)) {
    EXPECT_TRUE(std::regex_match(std::string(name), pascal)) << name;
  }
  EXPECT_EQ(ToString(TrialJobReason::kPending), "Pending");
  EXPECT_EQ(ToString(TrialJobReason::kNotPermitted), "NotPermitted");
  EXPECT_EQ(EnumNames(TrialJobReason::kPending).size(), static_cast<std::size_t>(TrialJobReason::kNotPermitted) + 1);
  EXPECT_EQ(EnumNames(TrialReason::kNone).size(), static_cast<std::size_t>(TrialReason::kOverMaxTrials) + 1);
}

TEST(TrialJobCrd, ANewOneIsUnderWayToKstatus) {
  const Json status = DefaultOf({"status"});
  EXPECT_EQ(At(status, {"phase"}), Json("Pending"));
  const Json condition = At(status, {"conditions"}).AsArray()->front();
  EXPECT_EQ(At(condition, {"type"}), Json("Reconciling"));
  EXPECT_EQ(At(condition, {"status"}), Json("True"));
  EXPECT_EQ(At(condition, {"reason"}), Json(ToString(TrialJobReason::kPending)));
}

TEST(TrialJobCrd, EveryListOfOurOwnHasALimit) {
  // Those of an ElasticHorovodJob have none.
  EXPECT_THAT(FieldsThat(TheKind(), IsListWithoutLimit), Each(StartsWith(".spec.workload.template.spec.")));
}

TEST(TrialJobCrd, TheLongestNameLeavesRoomForThatOfATrial) {
  constexpr std::size_t kLongestElasticHorovodJob = 44;
  EXPECT_LE(kMaxTrialJobName + 1 + kMaxTrialSuffix, kLongestElasticHorovodJob);
}

TEST(TrialJobCrd, PatternsTakeWhatTheyShould) {
  struct Case {
    std::initializer_list<std::string_view> field;
    std::vector<std::string> legal, refused;
  };
  const Case cases[] = {
      {{"spec", "extrapolate", "maxIntervalRatio"}, {"1", "2.0", "999.999"}, {"0.9", "-1", "1e3", "2.", "NaN", ""}},
      {{"spec", "space", "batchSizeEnv"}, {"BATCH_SIZE", "_b1"}, {"1B", "A-B", "A=B"}},
      {{"spec", "space", "batchSizeOption"}, {"--batch-size", "-b", "--bs="}, {"batch", "--a b", "--a;rm", "$(x)"}},
      {{"spec", "measure", "prometheus", "url"},
       {"http://p:9090", "https://p/x"},
       {"p:9090", "file:///etc", "http://"}},
  };
  for (const Case& c : cases) {
    const std::regex pattern(*At(SchemaAt(c.field), {"pattern"}).AsString());
    for (const std::string& text : c.legal) EXPECT_TRUE(std::regex_search(text, pattern)) << text;
    for (const std::string& text : c.refused) EXPECT_FALSE(std::regex_search(text, pattern)) << text;
  }
}

}  // namespace
}  // namespace api
