// SPDX-License-Identifier: Apache-2.0
// Jobs whose pods the API server refuses hold no GPUs, and keep none from others.
#include <gmock/gmock.h>

#include "tests/controllers/elastic/elastic_fixture.h"
#include "tests/kit/conditions.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using ::testing::HasSubstr;

using RefusedPodsTest = ElasticFixture;

TEST_F(RefusedPodsTest, AJobWhoseWorkersAreInvalidHoldsNoRoom) {
  AddJob([](api::ElasticHorovodJob& job) {
    job.spec.workers.min_replicas = job.spec.workers.max_replicas = 1;
    job.spec.workers.pod_template = *kube::ParseJson(R"({"metadata":{"labels":{"a":"no label!"}}})");
  });
  Start();

  for (int pass = 0; pass < 6; ++pass) {
    (void)Pass();
    clock_.Advance(1min);
  }

  const auto job = Live<api::ElasticHorovodJob>({"team-a", "bert"});
  EXPECT_EQ(kit::ReasonIn(job->status.conditions), "TemplateRefused");
  EXPECT_EQ(job->status.replicas.granted, 0);
  EXPECT_TRUE(account_.PlacesOf("team-a/bert").empty());
  EXPECT_TRUE(account_.PlacesOf("team-a/bert/launcher").empty());
}

// Admission refuses what is valid, and may take it later: a quota, Pod Security, a policy.
TEST_F(RefusedPodsTest, AJobWhosePodsAreRefusedEachTimeGetsNothingUntilTheyAreTaken) {
  const auto enforce = [&](const char* level) {
    Edit("namespaces", {"", "team-a"},
         [&](Json& ns) { ns["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = level; });
  };
  enforce("baseline");
  AddJob([](api::ElasticHorovodJob& job) {
    job.spec.workers.min_replicas = job.spec.workers.max_replicas = 1;
    job.spec.launcher.pod_template = *kube::ParseJson(R"({"spec":{"hostPID":true}})");
  });
  Start();
  for (int pass = 0; pass < 8; ++pass) {
    const auto action = Pass();
    ASSERT_TRUE(action && action->delay());
    EXPECT_LE(*action->delay(), 1min) << "nothing tells when the API server takes them";
    EXPECT_TRUE(account_.PlacesOf("team-a/bert").empty());
    clock_.Advance(5s);
  }
  const auto refused = Live<api::ElasticHorovodJob>({"team-a", "bert"});
  EXPECT_EQ(kit::ReasonIn(refused->status.conditions), "TemplateRefused");
  EXPECT_EQ(refused->status.replicas.granted, 0);
  EXPECT_THAT(Message(), HasSubstr("host namespaces"));

  enforce("privileged");
  clock_.Advance(1min);
  ASSERT_TRUE(Pass());
  EXPECT_EQ(Live<api::ElasticHorovodJob>({"team-a", "bert"})->status.replicas.granted, 1);
}

}  // namespace
}  // namespace grus
