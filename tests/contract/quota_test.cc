// SPDX-License-Identifier: Apache-2.0
// Pods that a ResourceQuota does not admit. The status of each is set by the test: as its controller would set it,
// which only a real cluster has.
#include <chrono>

#include "tests/contract/pods.h"

namespace kube::contract {
namespace {

class Quota : public PodContract {
 protected:
  std::string Quotas() const { return Collection("/api/v1", "resourcequotas"); }

  // In force when this returns. `hard` is one resource that a pod with `too_much` asks more of.
  void Limit(const std::string& resource, const std::string& hard, const std::string& too_much,
             const std::string& more = "{}") {
    Json quota = J(R"({"metadata":{"name":"team"},"spec":{}})");
    quota["spec"] = J(more);
    quota["spec"]["hard"][resource] = hard;
    const Answer made = Post(Quotas(), ToText(quota));
    ASSERT_EQ(made.status, 201) << made.http.body;
    Json status = Json::MakeObject();
    status["status"]["hard"][resource] = hard;
    status["status"]["used"][resource] = "0";
    ASSERT_EQ(Merge(Quotas() + "/team/status", ToText(status)).status, 200);
    // Admission reads a cache.
    const TimePoint end = clock().Now() + kLimit;
    while (TryPod("probe", too_much, "?dryRun=All").status != 403) ASSERT_LT(clock().Now(), end);
  }
  static std::string With(const std::string& requests, const std::string& limits = "{}") {
    return R"({"containers":[{"name":"c","image":"i","resources":{"requests":)" + requests + R"(,"limits":)" + limits +
           "}}]}";
  }
  static std::string Gpus(int count) {
    const std::string amounts = R"({"nvidia.com/gpu":")" + std::to_string(count) + R"("})";
    return With(amounts, amounts);
  }
  Json Used() { return *Get(Quotas() + "/team").body.At({"status", "used"}); }
};

TEST_F(Quota, AdmitsWhatIsLeftAndCountsIt) {
  Limit("requests.nvidia.com/gpu", "3", Gpus(4));

  EXPECT_EQ(TryPod("a", Gpus(2)).status, 201);
  EXPECT_EQ(Used(), J(R"({"requests.nvidia.com/gpu":"2"})"));
  EXPECT_TRUE(Refused(TryPod("b", Gpus(2)), 403, "Forbidden",
                      R"(pods "b" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=2, )"
                      R"(used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=3)"));
  EXPECT_EQ(Get(Pods() + "/b").status, 404);
  EXPECT_EQ(TryPod("c", Gpus(1)).status, 201);
  EXPECT_EQ(Used(), J(R"({"requests.nvidia.com/gpu":"3"})"));
  EXPECT_EQ(TryPod("d", "{}").status, 201) << "it asks for none";
}

TEST_F(Quota, ADryRunIsAskedAndNotCounted) {
  Limit("requests.nvidia.com/gpu", "3", Gpus(4));

  EXPECT_EQ(TryPod("a", Gpus(3), "?dryRun=All").status, 201);

  EXPECT_EQ(Used(), J(R"({"requests.nvidia.com/gpu":"0"})"));
}

TEST_F(Quota, ContainersMustStateCpuAndMemory) {
  Limit("limits.cpu", "1", With("{}", R"({"cpu":"2"})"));

  EXPECT_TRUE(Refused(TryPod("a", R"({"initContainers":[{"name":"init","image":"i"}]})"), 403, "Forbidden",
                      R"(pods "a" is forbidden: failed quota: team: must specify limits.cpu for: c,init)"));
}

TEST_F(Quota, ContainersNeedNotStateOtherResources) {
  Limit("requests.ephemeral-storage", "1Gi", With(R"({"ephemeral-storage":"2Gi"})"));

  EXPECT_EQ(TryPod("a", "{}").status, 201);
}

TEST_F(Quota, InitContainersCountBesideTheOthersOnlyIfTheyNeedMore) {
  Limit("requests.cpu", "4", With(R"({"cpu":"5"})"));
  const auto pod = [](const char* init) {
    return std::string(R"({"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}],
        "initContainers":[{"name":"init","image":"i","resources":{"requests":{"cpu":")") +
           init + R"("}}}]})";
  };

  EXPECT_EQ(TryPod("a", pod("500m")).status, 201);
  EXPECT_EQ(Used(), J(R"({"requests.cpu":"1"})"));
  EXPECT_EQ(TryPod("b", pod("2")).status, 201);
  EXPECT_EQ(Used(), J(R"({"requests.cpu":"3"})"));
}

TEST_F(Quota, OfAScopeCountsItsPodsAlone) {
  Limit("pods", "0", "{}", R"({"scopes":["BestEffort"]})");

  EXPECT_EQ(TryPod("a", With(R"({"cpu":"1"})")).status, 201);
  EXPECT_EQ(TryPod("b", Gpus(1)).status, 403) << "neither cpu nor memory";
}

TEST_F(Quota, OfPodsWithADeadline) {
  Limit("pods", "0", R"({"activeDeadlineSeconds":60})", R"({"scopes":["Terminating"]})");

  EXPECT_EQ(TryPod("a", "{}").status, 201);
}

TEST_F(Quota, OfAPriorityClass) {
  Limit("pods", "0", R"({"priorityClassName":"system-cluster-critical"})",
        R"({"scopeSelector":{"matchExpressions":[
            {"scopeName":"PriorityClass","operator":"In","values":["system-cluster-critical"]}]}})");

  EXPECT_EQ(TryPod("a", "{}").status, 201);
}

TEST_F(Quota, IsAskedBeforeTheName) {
  Limit("requests.nvidia.com/gpu", "1", Gpus(2));
  ASSERT_EQ(TryPod("a", Gpus(1)).status, 201);

  EXPECT_EQ(TryPod("a", Gpus(1)).status, 403);
}

}  // namespace
}  // namespace kube::contract
