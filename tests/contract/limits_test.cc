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

TEST_F(RuntimeClasses, AloneHaveOverhead) {
  MakeClass(R"({"overhead":{"podFixed":{"cpu":"250m"}}})");

  EXPECT_EQ(TryPodOfClass(R"({"overhead":{"cpu":"0.25"}})", "?dryRun=All").status, 201);
  EXPECT_TRUE(Refused(TryPodOfClass(R"({"overhead":{"cpu":"300m"}})"), 403, "Forbidden",
                      Said("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")));
  EXPECT_TRUE(Refused(TryPod("p", R"({"overhead":{"cpu":"250m"}})"), 403, "Forbidden",
                      Said("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")));
}

TEST_F(RuntimeClasses, ChooseNodes) {
  MakeClass(R"({"scheduling":{"nodeSelector":{"runtime":"sandbox"},
                "tolerations":[{"key":"sandbox","operator":"Exists","effect":"NoSchedule"},
                               {"key":"team","operator":"Equal","value":"a","effect":"NoSchedule"}]}})");

  const Answer pod = TryPodOfClass(R"({"nodeSelector":{"zone":"z"},"tolerations":[
      {"key":"sandbox","operator":"Equal","value":"old","effect":"NoSchedule"},{"key":"team","operator":"Exists"}]})");

  ASSERT_EQ(pod.status, 201) << pod.http.body;
  EXPECT_EQ(J(pod["spec.nodeSelector"]), J(R"({"runtime":"sandbox","zone":"z"})"));
  EXPECT_EQ(J(pod["spec.tolerations"]), J(R"([{"key":"team","operator":"Exists"},
                  {"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute",
                   "tolerationSeconds":300},
                  {"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute",
                   "tolerationSeconds":300},
                  {"key":"sandbox","operator":"Exists","effect":"NoSchedule"}])"));
}

TEST_F(RuntimeClasses, RefuseAnotherChoiceOfNodes) {
  MakeClass(R"({"scheduling":{"nodeSelector":{"runtime":"sandbox"}}})");

  EXPECT_TRUE(Refused(TryPodOfClass(R"({"nodeSelector":{"runtime":"plain"}})"), 403, "Forbidden",
                      Said("conflict: runtimeClass.scheduling.nodeSelector[runtime] = sandbox; "
                           "pod.spec.nodeSelector[runtime] = plain")));
}

TEST_F(RuntimeClasses, MustExist) {
  EXPECT_TRUE(Refused(TryPod("p", R"({"runtimeClassName":"none"})"), 403, "Forbidden",
                      Said(R"(pod rejected: RuntimeClass "none" not found)")));
  EXPECT_EQ(TryPod("p", R"({"runtimeClassName":"none","containers":[]})").status, 403) << "before it is validated";
}

TEST_F(RuntimeClasses, AreAskedBeforeANameIsMade) {
  EXPECT_TRUE(Refused(Post(Pods(), R"({"metadata":{"generateName":"p-"},"spec":{"runtimeClassName":"none",
                                       "containers":[{"name":"c","image":"i"}]}})"),
                      403, "Forbidden", R"(pods "p-" is forbidden: pod rejected: RuntimeClass "none" not found)"));
}

TEST_F(RuntimeClasses, OverheadCountsInQuotas) {
  MakeClass(R"({"overhead":{"podFixed":{"cpu":"250m"}}})");
  const std::string quotas = Collection("/api/v1", "resourcequotas");
  const std::string hard = R"("hard":{"requests.cpu":"1","limits.cpu":"4"})";
  ASSERT_EQ(Post(quotas, R"({"metadata":{"name":"team"},"spec":{)" + hard + "}}").status, 201);
  const std::string status = R"({"status":{)" + hard + R"(,"used":{"requests.cpu":"0","limits.cpu":"0"}}})";
  ASSERT_EQ(Merge(quotas + "/team/status", status).status, 200);
  const auto pod = [](const char* request) {
    return R"({"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":")" + std::string(request) +
           R"("},"limits":{"cpu":"2"}}}]})";
  };
  // Admission reads a cache.
  const TimePoint end = clock().Now() + kLimit;
  while (TryPodOfClass(pod("2"), "?dryRun=All").status != 403) ASSERT_LT(clock().Now(), end);

  EXPECT_EQ(TryPodOfClass(pod("800m")).status, 403);
  EXPECT_EQ(TryPodOfClass(pod("700m")).status, 201);

  EXPECT_EQ(J(Get(quotas + "/team")["status.used"]), J(R"({"requests.cpu":"950m","limits.cpu":"2250m"})"));
}

}  // namespace
}  // namespace kube::contract
