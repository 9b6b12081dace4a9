// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/trial_export.h"

#include <gmock/gmock.h>

#include "clientlib/model/json_reader.h"
#include "controllers/kubectl/trial_fit.h"

namespace grus {
namespace {

using ::testing::HasSubstr;

constexpr char kStatus[] = R"({"throughputUnit":"SamplesPerSecond","trials":[
  {"name":"a","phase":"Succeeded","config":{"gpuType":"A100","gpus":1,"nodes":1,"batchSize":32},
   "measured":{"throughput":"320","throughputLow":"310","throughputHigh":"330","stepMilliseconds":"100"}},
  {"name":"b","phase":"Succeeded","config":{"gpuType":"A100","gpus":8,"nodes":2,"minNodes":2,"batchSize":32},
   "measured":{"throughput":"2048","stepMilliseconds":"125"}},
  {"name":"c","phase":"Succeeded","config":{"gpuType":"T4","gpus":1,"nodes":1},"measured":{"throughput":"50"}},
  {"name":"d","phase":"Succeeded","config":{"gpuType":"A100","gpus":4,"nodes":1},
   "measured":{"throughput":"50","scopeUnknown":true}},
  {"name":"e","phase":"Failed","config":{"gpuType":"A100","gpus":4,"nodes":1},"measured":{"throughput":"50"}}]})";

api::WorkloadProfileSpec Points(std::string_view status = kStatus) {
  api::TrialJob trial;
  const auto read = kube::ReadText<api::TrialJobStatus>(status);
  EXPECT_TRUE(read) << read.error().message();
  trial.status = *read;
  return MeasuredBy(trial);
}

std::string Exported(const ExportOptions& options, std::string_view status = kStatus) {
  const auto text = ExportPoints(Points(status), "TrialJob x", options);
  return text ? *text : "failed: " + text.error().message();
}

TEST(TrialExport, HasARowForEachSpeedThatIsSureToBeOfTheJob) {
  EXPECT_EQ(Exported({}),
            "gpu_type,num_nodes,num_replicas,local_bsz,step_time,batch_size,throughput,low,high,unit\n"
            "A100,1,1,32,0.1,32,320,310,330,samples/s\n"
            "A100,2,8,32,0.125,32,2048,2048,2048,samples/s\n"
            "T4,1,1,1,0.02,0,50,50,50,samples/s\n");
}

TEST(TrialExport, AsJsonNumbersAreNumbers) {
  const auto json = kube::ParseJson(Exported({true, "T4"}));
  ASSERT_TRUE(json);
  ASSERT_EQ(json->AsArray()->size(), 1U);
  const kube::Json& row = json->AsArray()->front();
  EXPECT_EQ(*row.Find("throughput"), kube::Json(50));
  EXPECT_EQ(*row.Find("step_time"), kube::Json(0.02));
  EXPECT_EQ(*row.Find("gpu_type"), kube::Json("T4"));
}

TEST(TrialExport, SaysThatThereIsNothingYet) {
  EXPECT_EQ(Exported({false, "H100"}), "failed: TrialJob x: nothing was measured on H100 yet");
  EXPECT_EQ(Exported({}, "{}"), "failed: TrialJob x: nothing was measured yet");
}

TEST(TrialExport, IsWhatTrialFitReads) {
  const auto answer =
      PredictFromCsv({"x", Exported({false, "A100"})}, {"wanted", "num_nodes,num_replicas,local_bsz\n1,1,32\n"}, {});
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_THAT(*answer, HasSubstr("1,1,32,0.1,"));
}

TEST(ChooseType, IsTheOnlyOneOrTheOneAskedFor) {
  EXPECT_EQ(*ChooseType(Points(), "x", "T4"), "T4");
  const auto several = ChooseType(Points(), "x", "");
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().message(), "x has several GPU types; choose one with --gpu-type: A100, T4");
  api::WorkloadProfileSpec untyped = Points();
  untyped.points.back().config.gpu_type = "";
  EXPECT_FALSE(ChooseType(untyped, "x", "")) << "two kinds of GPUs are not one";
  EXPECT_THAT(ChooseType(Points(), "x", "H100").error().message(), HasSubstr("was not measured on H100"));
}

}  // namespace
}  // namespace grus
