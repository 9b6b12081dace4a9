// SPDX-License-Identifier: Apache-2.0
// What LimitRanges and RuntimeClasses change of new pods, and which pods they refuse.
//
// Each test makes them before its first pod: the real server then reads what its caches lack. After a pod it would
// remember for 30 s that the namespace had none.
#include "tests/contract/pods.h"

namespace kube::contract {
namespace {

class Limits : public PodContract {
 protected:
  std::string Ranges() const { return Collection("/api/v1", "limitranges"); }
  Answer Range(const std::string& items) {
    Answer made = Post(Ranges(), R"({"metadata":{"name":"range"},"spec":{"limits":[)" + items + "]}}");
    EXPECT_EQ(made.status, 201) << made.http.body;
    return made;
  }
  static std::string With(const std::string& resources) {
    return R"({"containers":[{"name":"c","image":"i","resources":)" + resources + "}]}";
  }
  static Json ResourcesOf(const Answer& pod, const char* list = "containers") {
    return J(pod["spec." + std::string(list) + ".0.resources"]);
  }
};

constexpr char kDefaults[] =
    R"({"type":"Container","defaultRequest":{"cpu":"100m","memory":"64Mi"},"default":{"cpu":"1","memory":"128Mi"}})";

TEST_F(Limits, FillInWhatAContainerDoesNotState) {
  Range(kDefaults);

  const Answer pod = MakePod("p");

  EXPECT_EQ(ResourcesOf(pod),
            J(R"({"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"cpu":"1","memory":"128Mi"}})"));
  EXPECT_EQ(pod["status.qosClass"], "Burstable");
}

TEST_F(Limits, LeaveWhatAContainerStates) {
  Range(kDefaults);

  EXPECT_EQ(ResourcesOf(MakePod("limit", With(R"({"limits":{"cpu":"2"}})"))),
            J(R"({"requests":{"cpu":"2","memory":"64Mi"},"limits":{"cpu":"2","memory":"128Mi"}})"));
  EXPECT_EQ(ResourcesOf(MakePod("request", With(R"({"requests":{"cpu":"500m"}})"))),
            J(R"({"requests":{"cpu":"500m","memory":"64Mi"},"limits":{"cpu":"1","memory":"128Mi"}})"));
  EXPECT_EQ(ResourcesOf(MakePod("both", With(R"({"requests":{"cpu":"2"},"limits":{"cpu":"3"}})"))),
            J(R"({"requests":{"cpu":"2","memory":"64Mi"},"limits":{"cpu":"3","memory":"128Mi"}})"));
}

TEST_F(Limits, FillInInitContainersToo) {
  Range(R"({"type":"Container","defaultRequest":{"cpu":"100m"}})");

  EXPECT_EQ(ResourcesOf(MakePod("p", R"({"initContainers":[{"name":"init","image":"i"}]})"), "initContainers"),
            J(R"({"requests":{"cpu":"100m"}})"));
}

TEST_F(Limits, DefaultsFollowFromEachOther) {
  EXPECT_EQ(J(Range(R"({"type":"Container","max":{"cpu":"2"},"min":{"cpu":"100m","memory":"16Mi"}})")["spec.limits.0"]),
            J(R"({"type":"Container","max":{"cpu":"2"},"min":{"cpu":"100m","memory":"16Mi"},
                  "default":{"cpu":"2"},"defaultRequest":{"cpu":"2","memory":"16Mi"}})"));

  EXPECT_EQ(ResourcesOf(MakePod("p")), J(R"({"requests":{"cpu":"2","memory":"16Mi"},"limits":{"cpu":"2"}})"));
}

TEST_F(Limits, ADefaultLimitBelowTheRequestMakesAPodInvalid) {
  Range(kDefaults);

  EXPECT_TRUE(Refused(TryPod("p", With(R"({"requests":{"cpu":"2"}})")), 422, "Invalid",
                      R"(Pod "p" is invalid: spec.containers[0].resources.requests: Invalid value: "2": )"
                      R"(must be less than or equal to cpu limit of 1)"));
}

TEST_F(Limits, RefuseWhatIsBelowTheMinimum) {
  Range(R"({"type":"Container","min":{"cpu":"100m"}})");

  EXPECT_TRUE(Refused(TryPod("p", With(R"({"requests":{"cpu":"50m"}})")), 403, "Forbidden",
                      R"(pods "p" is forbidden: minimum cpu usage per Container is 100m, but request is 50m)"));
  EXPECT_EQ(Get(Pods() + "/p").status, 404);
  EXPECT_EQ(TryPod("q", With(R"({"requests":{"cpu":"100m"}})")).status, 201);
  EXPECT_EQ(TryPod("r", "{}").status, 201) << "the minimum is the default";
}

TEST_F(Limits, RefuseWhatIsAboveTheMaximum) {
  Range(R"({"type":"Container","max":{"memory":"1Gi"}})");

  EXPECT_TRUE(Refused(TryPod("p", With(R"({"limits":{"memory":"1536Mi"}})")), 403, "Forbidden",
                      R"(pods "p" is forbidden: maximum memory usage per Container is 1Gi, but limit is 1536Mi)"));
  EXPECT_TRUE(Refused(TryPod("p", R"({"initContainers":[
                                      {"name":"init","image":"i","resources":{"limits":{"memory":"2Gi"}}}]})"),
                      403, "Forbidden",
                      R"(pods "p" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi)"));
}

TEST_F(Limits, TellAllThatIsWrong) {
  Range(R"({"type":"Container","min":{"cpu":"100m"}})");

  EXPECT_TRUE(Refused(TryPod("p", R"({"containers":[
                          {"name":"a","image":"i","resources":{"requests":{"cpu":"50m"}}},
                          {"name":"b","image":"i","resources":{"requests":{"cpu":"60m"}}},
                          {"name":"c","image":"i","resources":{"requests":{"cpu":"50m"}}}]})"),
                      403, "Forbidden",
                      R"(pods "p" is forbidden: [minimum cpu usage per Container is 100m, but request is 50m, )"
                      R"(minimum cpu usage per Container is 100m, but request is 60m])"));
}

TEST_F(Limits, OfPodsBoundWhatTheContainersStateTogether) {
  Range(R"({"type":"Pod","max":{"cpu":"2"}})");

  EXPECT_TRUE(Refused(TryPod("p", "{}"), 403, "Forbidden",
                      R"(pods "p" is forbidden: maximum cpu usage per Pod is 2.  No limit is specified)"));
  EXPECT_TRUE(Refused(TryPod("p", R"({"containers":[
                          {"name":"a","image":"i","resources":{"limits":{"cpu":"1"}}},
                          {"name":"b","image":"i","resources":{"limits":{"cpu":"1500m"}}}]})"),
                      403, "Forbidden",
                      R"(pods "p" is forbidden: maximum cpu usage per Pod is 2, but limit is 2500m)"));
}

TEST_F(Limits, ADryRunTellsWhatAPodWouldGet) {
  Range(R"({"type":"Container","defaultRequest":{"cpu":"100m"},"max":{"cpu":"1"}})");

  EXPECT_EQ(ResourcesOf(TryPod("p", "{}", "?dryRun=All")), J(R"({"requests":{"cpu":"100m"},"limits":{"cpu":"1"}})"));
  EXPECT_EQ(TryPod("p", With(R"({"limits":{"cpu":"2"}})"), "?dryRun=All").status, 403);

  EXPECT_EQ(Get(Pods() + "/p").status, 404);
}

class RuntimeClasses : public PodContract {
 protected:
  void TearDown() override {
    Delete(kClasses + ("/" + name()));
    PodContract::TearDown();
  }
  std::string name() const { return ns(); }
  // `more` is what it has beside its handler.
  void MakeClass(const std::string& more) {
    Json made = J(more);
    made["metadata"]["name"] = name();
    made["handler"] = "sandbox";
    ASSERT_EQ(Post(kClasses, ToText(made)).status, 201);
  }
  Answer TryPodOfClass(const std::string& more = "{}", const std::string& query = {}) {
    Json spec = J(more);
    spec["runtimeClassName"] = name();
    return TryPod("p", ToText(spec), query);
  }
  std::string Said(const std::string& what) const { return R"(pods "p" is forbidden: )" + what; }

  static constexpr char kClasses[] = "/apis/node.k8s.io/v1/runtimeclasses";
};

TEST_F(RuntimeClasses, GiveTheirOverhead) {
  MakeClass(R"({"overhead":{"podFixed":{"cpu":"250m","memory":"64Mi"}}})");

  EXPECT_EQ(J(TryPodOfClass("{}", "?dryRun=All")["spec.overhead"]), J(R"({"cpu":"250m","memory":"64Mi"})"));
  EXPECT_EQ(Get(Pods() + "/p").status, 404);
  EXPECT_EQ(J(TryPodOfClass()["spec.overhead"]), J(R"({"cpu":"250m","memory":"64Mi"})"));
  EXPECT_EQ(J(Get(Pods() + "/p")["spec.overhead"]), J(R"({"cpu":"250m","memory":"64Mi"})"));
}

TEST_F(RuntimeClasses, MustExist) {
  EXPECT_TRUE(Refused(TryPod("p", R"({"runtimeClassName":"none"})"), 403, "Forbidden",
                      Said(R"(pod rejected: RuntimeClass "none" not found)")));
  EXPECT_EQ(TryPod("p", R"({"runtimeClassName":"none","containers":[]})").status, 403) << "before it is validated";
}

}  // namespace
}  // namespace kube::contract
