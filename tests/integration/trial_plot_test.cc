// SPDX-License-Identifier: Apache-2.0
// kubectl grus trial plot against a real API server.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "controllers/kubectl/command_line.h"
#include "crds/types/trial_job.h"
#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kStatus[] =
    R"({"status":{"phase":"Succeeded","progress":"3/3","throughputUnit":"SamplesPerSecond","curve":[
  {"gpuType":"A100","gpus":1,"source":"Measured","throughput":"100","throughputLow":"98","throughputHigh":"102"},
  {"gpuType":"A100","gpus":4,"source":"Measured","throughput":"380","throughputLow":"370","throughputHigh":"390"},
  {"gpuType":"A100","gpus":8,"source":"Measured","throughput":"400","throughputLow":"390","throughputHigh":"410"}],
  "recommendation":[{"goal":"Knee","gpus":4,"gpuType":"A100","source":"Measured","message":"4 GPUs do 95 % of what 8 do"}]}})";

struct Outcome {
  int status = 0;
  std::string out, error;
};

Outcome Plot(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), {"kubectl-grus", "trial", "plot"});
  std::stringstream out, error;
  const int status = RunCommand(static_cast<int>(arguments.size()), arguments.data(), out, error);
  return {status, out.str(), error.str()};
}

// Without a manager, which would say itself what is known of a TrialJob.
class TrialPlot : public ElasticJob {
 protected:
  static void SetUpTestSuite() { StartWorld(); }

  void MakeTrial() {
    kube::Json manifest = FromText(R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"TrialJob",
        "metadata":{"name":"try"},"spec":{"workload":{"jobRef":{"name":"bert"}}}})");
    Must(client().Create(kube::KindOf<api::TrialJob>(), ns(), manifest));
  }
};

TEST_F(TrialPlot, ShowsTheKneeOfTheStatus) {
  MakeTrial();
  Must(client().Patch(kube::KindOf<api::TrialJob>(), {ns(), "try"}, kube::PatchType::kMerge, FromText(kStatus),
                      {.subresource = "status"}));

  const Outcome plot = Plot({"try", "-n", ns().c_str()});

  EXPECT_EQ(plot.status, 0) << plot.error;
  EXPECT_THAT(plot.out, HasSubstr("▲ knee: 4 GPUs"));
  EXPECT_THAT(plot.out, HasSubstr("Knee: 4 GPUs do 95 % of what 8 do\n"));

  const std::string path = ::testing::TempDir() + "/trial-plot-" + ns() + ".svg";
  const Outcome svg =
      Plot({"try", "--namespace", ns().c_str(), "--svg", path.c_str(), "--kubeconfig", std::getenv("KUBECONFIG")});
  EXPECT_EQ(svg.status, 0) << svg.error;
  std::stringstream image;
  image << std::ifstream(path).rdbuf();
  EXPECT_THAT(image.str(), HasSubstr(">knee: 4 GPUs<"));
}

TEST_F(TrialPlot, SaysWhyThereIsNothingToDraw) {
  MakeTrial();
  const Outcome plot = Plot({"try", "-n", ns().c_str()});
  EXPECT_EQ(plot.status, 1);
  EXPECT_THAT(plot.error, HasSubstr("has nothing to draw: phase Pending"));

  const Outcome none = Plot({"another", "-n", ns().c_str()});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.error, HasSubstr("there is no TrialJob " + ns() + "/another"));
}

}  // namespace
}  // namespace grus::testing
