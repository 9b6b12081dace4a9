// SPDX-License-Identifier: Apache-2.0
// Jobs in a namespace with a ResourceQuota, of which the real API server and its controller keep the account.
#include <gmock/gmock.h>

#include "clientlib/model/resource_quota.h"
#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using ::testing::HasSubstr;

class ElasticJobWithQuota : public ElasticJob {
 protected:
  // Until it is in force.
  void CreateQuota(const std::string& resource, const std::string& hard) {
    kube::Json quota = FromText(R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"team"}})");
    quota["metadata"]["namespace"] = ns();
    quota["spec"]["hard"][resource] = hard;
    Must(client().Create(kube::KindOf<kube::ResourceQuota>(), ns(), quota));
    AwaitInForce(resource, hard);
  }
  void SetQuota(const std::string& resource, const std::string& hard) {
    kube::Json patch = kube::Json::MakeObject();
    patch["spec"]["hard"][resource] = hard;
    Must(client().Patch(kube::KindOf<kube::ResourceQuota>(), {ns(), "team"}, kube::PatchType::kMerge, patch));
  }
  void AwaitInForce(const std::string& resource, const std::string& hard) {
    const kube::SystemClock clock;
    const kube::TimePoint end = clock.Now() + World::kLimit;
    for (;;) {
      const auto quota = Must(client().Get<kube::ResourceQuota>({ns(), "team"}));
      const kube::Quantity* now = kube::FindResource(quota->status.hard, resource);
      if (now && ToText(*now) == hard && kube::FindResource(quota->status.used, resource)) return;
      ASSERT_LT(clock.Now(), end) << "the quota does not come into force";
    }
  }
};

TEST_F(ElasticJobWithQuota, RunsOnWhatIsAdmittedAndTheNextJobWaitsWithoutHoldingGpus) {
  AddNodes(2, 4);
  CreateQuota("requests.nvidia.com/gpu", "2");

  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":4}})", "first");

  ASSERT_TRUE(AwaitTrains(2, "first"));
  EXPECT_TRUE(Await("it says why", [&] {
    return Says("Ready", "4 are wanted, quota \"team\" of namespace " + ns() + " admits no more", "first");
  }));
  EXPECT_EQ(ReasonOf("Ready", "first"), "Training");

  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":2}})", "second");

  ASSERT_TRUE(Await("the second one waits", [&] { return ReasonOf("Ready", "second") == "WaitingForQuota"; }));
  EXPECT_THAT(MessageOf("Ready", "second"), HasSubstr("requests.nvidia.com/gpu: 2 of 2 used"));
  EXPECT_EQ(Phase("second"), "Waiting");
  EXPECT_TRUE(Stays(
      "it holds nothing", [&] { return HoldsNothing("second"); }, std::chrono::seconds(2)));

  SetQuota("requests.nvidia.com/gpu", "6");

  EXPECT_TRUE(AwaitTrains(4, "first"));
  EXPECT_TRUE(AwaitTrains(2, "second"));
}

}  // namespace
}  // namespace grus::testing
