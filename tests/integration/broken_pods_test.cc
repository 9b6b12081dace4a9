// SPDX-License-Identifier: Apache-2.0
// Pods that cannot be made or cannot start: told on the job, and repaired with it.
#include <gmock/gmock.h>

#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using std::chrono::seconds;

TEST_F(ElasticJob, TellsInTheKubeletsWordsThatAWorkersImageCannotBePulled) {
  AddNode(2);
  Create(R"({"workersSpec":{"minReplicas":2,"template":{"metadata":{"annotations":
             {"grus.test/waiting":"CreateContainerConfigError: secret \"data\" not found"}}}}})");

  EXPECT_TRUE(Await(
      "it is told",
      [&] {
        return IsTrue("Stalled") &&
               Says("Ready", R"(does not start: CreateContainerConfigError: secret "data" not found)");
      },
      seconds(15)));
  EXPECT_EQ(ReasonOf("Ready"), "PodsBroken");
  EXPECT_EQ(Phase(), "Pending");

  for (const char* pod : {"train-workers-0", "train-workers-1"}) {
    Patch<kube::Pod>(pod, R"({"metadata":{"annotations":{"grus.test/waiting":null}}})");
  }
  EXPECT_TRUE(AwaitTrains(2));
  EXPECT_FALSE(IsTrue("Stalled"));
}

TEST_F(ElasticJob, TellsInTheControllersWordsThatPodSecurityRefusesItsPods) {
  AddNode(2);
  ASSERT_EQ(world()
                .Send("PATCH", "/api/v1/namespaces/" + ns(), "application/merge-patch+json",
                      R"({"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}})")
                .status,
            200);
  Create(R"({"workersSpec":{"minReplicas":2,"template":{"spec":{"hostPID":true}}}})");

  EXPECT_TRUE(Await(
      "it is told",
      [&] { return IsTrue("Stalled") && Says("Ready", "violates PodSecurity \"restricted:latest\": host namespaces"); },
      seconds(20)));
  EXPECT_FALSE(Says("Ready", "runAsNonRoot")) << "what the template leaves open is no fault of it";
  EXPECT_EQ(ReasonOf("Ready"), "TemplateRefused");
}

// Otherwise it would keep all GPUs from others for pods that are never made.
TEST_F(ElasticJob, AJobWhosePodsTheApiServerRefusesKeepsNoRoomFromOthers) {
  AddNode(8);
  Create(R"({"workersSpec":{"minReplicas":8,"maxReplicas":8,"template":{"spec":{"serviceAccountName":"nobody"}}}})",
         "doomed");
  ASSERT_TRUE(Await("it says so", [&] { return ReasonOf("Stalled", "doomed") == "TemplateRefused"; }));
  EXPECT_THAT(MessageOf("Stalled", "doomed"), ::testing::HasSubstr("serviceaccount \"nobody\" not found"));
  EXPECT_EQ(TheJob("doomed")->status.replicas.granted, 0);
  Create(R"({"workersSpec":{"minReplicas":8,"maxReplicas":8}})");
  EXPECT_TRUE(AwaitTrains(8));
}

}  // namespace
}  // namespace grus::testing
