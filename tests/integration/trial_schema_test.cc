// SPDX-License-Identifier: Apache-2.0
// What the CRDs of TrialJob and WorkloadProfile refuse: the user hears it from `kubectl apply`, with the
// field and the limit.
#include <gmock/gmock.h>

#include "crds/types/trial_job.h"
#include "crds/types/workload_profile.h"
#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using kube::KindOf;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Without a manager, which would say itself which trials there are.
class TrialSchema : public ElasticJob {
 protected:
  static void SetUpTestSuite() { StartWorld(); }

  kube::Result<std::shared_ptr<kube::Object>> Try(std::string_view spec, const std::string& name = "bert") {
    const std::string text = R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"TrialJob","metadata":{"name":")" +
                             name + R"(","namespace":")" + ns() + R"("},"spec":)" + std::string(spec) + "}";
    return client().Create(KindOf<api::TrialJob>(), ns(), Must(kube::ParseJson(text)), {.dry_run = true});
  }
};

// `part`, a member of the spec, beside a workload.
std::string WithJob(std::string_view part) {
  return R"({"workload":{"jobRef":{"name":"bert"}},)" + std::string(part) + "}";
}
std::string WithTemplate(int gpus_per_worker, std::string_view part) {
  return R"({"workload":{"template":{"spec":{"launcherSpec":{"image":"a","pythonCommand":["p"]},)"
         R"("workersSpec":{"image":"a","gpusPerWorker":)" +
         std::to_string(gpus_per_worker) + "}}}}," + std::string(part) + "}";
}
std::string Numbers(int count) {
  std::string list;
  for (int n = 1; n <= count; ++n) list += (n == 1 ? "" : ",") + std::to_string(n);
  return "[" + list + "]";
}

TEST_F(TrialSchema, SpecsThatMakeNoSenseAreRefused) {
  struct Case {
    std::string spec;
    const char *field, *limit;
  };
  const std::string query = R"("prometheus":{"url":"http://p:9090","queries":[{"query":"x","kind":"Step"}]})";
  const Case cases[] = {
      {"{}", "spec.workload", "Required value"},
      {R"({"workload":{}})", "spec.workload", "exactly one of jobRef, template and podTemplate"},
      {R"({"workload":{"jobRef":{"name":"bert"},"podTemplate":{"spec":{"containers":[]}}}})", "spec.workload",
       "exactly one of jobRef, template and podTemplate"},
      {R"({"workload":{"jobRef":{"name":"bert"},"template":{"spec":{"launcherSpec":{"image":"a",)"
       R"("pythonCommand":["p"]},"workersSpec":{"image":"a"}}}}})",
       "spec.workload", "exactly one of jobRef, template and podTemplate"},
      {WithJob(R"("space":{"gpuCounts":[0]})"), "spec.space.gpuCounts", "numbers from 1 to 65536"},
      {WithJob(R"("space":{"gpuCounts":[65537]})"), "spec.space.gpuCounts", "numbers from 1 to 65536"},
      {WithJob(R"("space":{"gpuCounts":[2,2]})"), "spec.space.gpuCounts", "Duplicate value"},
      {WithJob(R"("space":{"gpuTypes":[{"name":"a"},{"name":"a"}]})"), "spec.space.gpuTypes", "Duplicate value"},
      {WithJob(R"("space":{"gpuTypes":[{"name":"a","pricePerHour":"2"},{"name":"b"}]})"), "spec.space.gpuTypes",
       "all have a pricePerHour, or none"},
      {WithJob(R"("space":{"gpuTypes":[{"name":"a","pricePerHour":"0"}]})"), "spec.space.gpuTypes", "more than 0"},
      {WithJob(R"("space":{"gpuTypes":[{"name":"a","pricePerHour":"$2"}]})"), "pricePerHour", "should match"},
      {WithJob(R"("space":{"nodeCounts":[0]})"), "spec.space.nodeCounts", "numbers from 1 to 1024"},
      {WithJob(R"("space":{"placements":["Wide"]})"), "spec.space.placements", "Unsupported value"},
      {WithJob(R"("space":{"batchSizes":[0]})"), "spec.space.batchSizes", "numbers of at least 1"},
      {WithJob(R"("space":{"batchSizes":[32,64]})"), "spec.space", "needs space.batchSizeEnv or space.batchSizeOption"},
      {WithJob(R"("space":{"gpuTypes":[{"name":"a"},{"name":"b"}],"batchSizeEnv":"B","gpuCounts":)" + Numbers(128) +
               R"(,"batchSizes":)" + Numbers(64) + "}"),
       "spec.space", "at most 10000 configurations"},
      {WithJob(R"("space":{"batchSizeEnv":"A-B"})"), "spec.space.batchSizeEnv", "should match"},
      {WithJob(R"("measure":{"source":"Prometheus"})"), "spec.measure", "needs measure.prometheus"},
      {WithJob(R"("measure":{)" + query + "}"), "spec.measure", "needs measure.source Prometheus"},
      {WithJob(R"("measure":{"source":"Push","patterns":[{"name":"a","regex":"b","kind":"Step"}]})"), "spec.measure",
       "measure.patterns needs measure.source Logs"},
      {WithTemplate(0, R"("space":{})"), "gpusPerWorker", "at least 1"},
      {WithTemplate(2, R"("space":{"gpuCounts":[2,3]})"), "space.gpuCounts", "multiples of"},
      {WithTemplate(1, R"("apply":"Apply")"), "apply", "needs workload.jobRef"},
      {WithJob(R"("budget":{"gpuSeconds":-1})"), "spec.budget.gpuSeconds", "greater than or equal to 0"},
      {WithJob(R"("budget":{"perTrialSeconds":0})"), "spec.budget.perTrialSeconds", "greater than or equal to 1"},
      {WithJob(R"("extrapolate":{"maxIntervalRatio":"0.5"})"), "spec.extrapolate.maxIntervalRatio", "should match"},
  };
  for (const Case& c : cases) {
    const auto made = Try(c.spec);
    ASSERT_FALSE(made) << c.spec;
    EXPECT_EQ(made.error().code(), kube::ErrorCode::kInvalid) << c.spec;
    EXPECT_THAT(made.error().message(), AllOf(HasSubstr(c.field), HasSubstr(c.limit))) << c.spec;
  }
}

TEST_F(TrialSchema, SpecsAtTheLimitsAreTaken) {
  for (const std::string& spec :
       {WithJob(R"("space":{"gpuTypes":[{"name":"a","pricePerHour":"2.50"},{"name":"b","pricePerHour":"1"}]})"),
        WithJob(R"("space":{"placements":["Packed","Spread"],"nodeCounts":[1,2,4]})"),
        std::string(R"({"workload":{"podTemplate":{"spec":{"containers":[]}}},"space":{"nodeCounts":[1,2]}})"),
        WithJob(R"("budget":{"wallSeconds":0,"gpuSeconds":0})"),
        WithJob(R"("space":{"gpuTypes":[],"gpuCounts":[],"batchSizes":[]})"), WithJob(R"("space":{"batchSizes":[64]})"),
        WithJob(R"("apply":"Apply")"), WithTemplate(2, R"("space":{"gpuCounts":[2,4]})"),
        std::string(R"({"workload":{"podTemplate":{"spec":{"containers":[]}}}})")}) {
    const auto made = Try(spec);
    EXPECT_TRUE(made) << spec << ": " << made.error().message();
  }
}

TEST_F(TrialSchema, NamesThatTrialsCouldNotBearAreRefused) {
  for (const std::string& name : {std::string(api::kMaxTrialJobName + 1, 'a'), std::string("1st")}) {
    const auto made = Try(R"({"workload":{"jobRef":{"name":"bert"}}})", name);
    ASSERT_FALSE(made) << name;
    EXPECT_THAT(made.error().message(), HasSubstr("metadata.name must")) << name;
  }
}

TEST_F(TrialSchema, TheWorkloadIsFixedOnceTrialsHaveBegun) {
  const kube::ObjectKey key{ns(), "bert"};
  const auto patch = [&](std::string_view text, const std::string& subresource = "") {
    return client().Patch(KindOf<api::TrialJob>(), key, kube::PatchType::kMerge, Must(kube::ParseJson(text)),
                          {.subresource = subresource});
  };
  const kube::Json manifest = Must(
      kube::ParseJson(R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"TrialJob","metadata":{"name":"bert"},)"
                      R"("spec":{"workload":{"jobRef":{"name":"a"}}}})"));
  Must(client().Create(KindOf<api::TrialJob>(), ns(), manifest));
  EXPECT_TRUE(patch(R"({"spec":{"workload":{"jobRef":{"name":"b"}}}})"));

  Must(patch(R"({"status":{"trials":[{"name":"bert-1g","config":{"gpus":1},"phase":"Starting"}]}})", "status"));

  const auto changed = patch(R"({"spec":{"workload":{"jobRef":{"name":"c"}}}})");
  ASSERT_FALSE(changed);
  EXPECT_THAT(changed.error().message(), HasSubstr("spec.workload must not change"));
  EXPECT_TRUE(patch(R"({"spec":{"suspend":true,"space":{"gpuCounts":[1,2]}}})"));
  EXPECT_TRUE(patch(R"({"status":{"progress":"1/2"}})", "status"));
}

TEST_F(TrialSchema, AProfileBearsItsFingerprintAsItsName) {
  const kube::Json profile = Must(kube::ParseJson(
      R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"WorkloadProfile","metadata":{"name":"a"},)"
      R"("spec":{"fingerprint":"b"}})"));
  const auto made = client().Create(KindOf<api::WorkloadProfile>(), "", profile, {.dry_run = true});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message(), HasSubstr("metadata.name must be spec.fingerprint"));
}

}  // namespace
}  // namespace grus::testing
