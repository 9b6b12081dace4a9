// SPDX-License-Identifier: Apache-2.0
// Rules of the built-in kinds that our controllers rely on.
#include "clientlib/http/url.h"
#include "tests/contract/pods.h"

namespace kube::contract {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

// ---- Pods.

class PodRules : public PodContract {
 protected:
  std::vector<std::string> Fielded(const std::string& selector) {
    return Get(Pods() + "?fieldSelector=" + EscapeQueryValue(selector)).Names();
  }
};

TEST_F(PodRules, BeginPending) {
  const Answer made = MakePod("p");

  EXPECT_EQ(made["status.phase"], "Pending");
  EXPECT_EQ(made["spec.restartPolicy"], "Always");
  EXPECT_EQ(made["metadata.generation"], "1");
}

TEST_F(PodRules, WithoutANodeAreDeletedAtOnce) {
  MakePod("p");

  const Answer deleted = Delete(Pods() + "/p");

  EXPECT_EQ(deleted.status, 200);
  EXPECT_EQ(deleted["kind"], "Pod");
  EXPECT_EQ(deleted["metadata.deletionGracePeriodSeconds"], "0");
  EXPECT_NE(deleted["metadata.deletionTimestamp"], "(none)");
  EXPECT_EQ(Get(Pods() + "/p").status, 404);
}

TEST_F(PodRules, AreBoundOnce) {
  MakePod("p");

  const Answer bound = Bind("p");
  EXPECT_EQ(bound.status, 201);
  EXPECT_EQ(bound["status"], "Success");
  const Answer pod = Get(Pods() + "/p");
  EXPECT_EQ(pod["spec.nodeName"], "not-there");
  EXPECT_EQ(pod["status.conditions.0.type"], "PodScheduled");
  EXPECT_EQ(pod["status.conditions.0.status"], "True");
  EXPECT_EQ(pod["status.conditions.0.observedGeneration"], "(none)");

  EXPECT_TRUE(Refused(Bind("p", "other"), 409, "Conflict",
                      "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node "
                      "\"not-there\""));
  Delete(Pods() + "/p?gracePeriodSeconds=0");
}

TEST_F(PodRules, GetTheAnnotationsOfTheirBinding) {
  Answer made = MakePod("p");
  EXPECT_EQ(Merge(Pods() + "/p", R"({"metadata":{"annotations":{"a":"1","b":"1"}}})").status, 200);
  const auto bind = [&](const std::string& uid) {
    return Post(Pods() + "/p/binding", R"({"metadata":{"name":"p","uid":")" + uid +
                                           R"(","annotations":{"b":"2","c":"2"}},"target":{"name":"not-there"}})");
  };

  EXPECT_EQ(bind("another").status, 409);
  EXPECT_EQ(bind(made["metadata.uid"]).status, 201);
  const Answer pod = Get(Pods() + "/p");
  EXPECT_EQ(pod["metadata.annotations.a"], "1");
  EXPECT_EQ(pod["metadata.annotations.b"], "2");
  EXPECT_EQ(pod["metadata.annotations.c"], "2");
  EXPECT_EQ(pod["spec.nodeName"], "not-there");
  Delete(Pods() + "/p?gracePeriodSeconds=0");
}

TEST_F(PodRules, AreNotBoundWhileGated) {
  MakePod("p", R"({"schedulingGates":[{"name":"grus.dev/gang"}]})");

  EXPECT_TRUE(Refused(Bind("p"), 409, "Conflict",
                      "Operation cannot be fulfilled on pods/binding \"p\": pod p has non-empty "
                      ".spec.schedulingGates"));
  EXPECT_EQ(JsonPatch(Pods() + "/p", R"([{"op":"remove","path":"/spec/schedulingGates"}])").status, 200);
  EXPECT_EQ(Bind("p").status, 201);
  Delete(Pods() + "/p?gracePeriodSeconds=0");
}

TEST_F(PodRules, OnANodeAreDeletedGracefully) {
  MakePod("p");
  Bind("p");

  const Answer deleted = Delete(Pods() + "/p");

  EXPECT_EQ(deleted["kind"], "Pod");
  EXPECT_EQ(deleted["metadata.deletionGracePeriodSeconds"], "5");
  EXPECT_EQ(deleted["metadata.generation"], "2");
  EXPECT_EQ(Get(Pods() + "/p")["metadata.deletionTimestamp"], deleted["metadata.deletionTimestamp"]);
  EXPECT_EQ(Delete(Pods() + "/p?gracePeriodSeconds=1")["metadata.deletionGracePeriodSeconds"], "1");
  EXPECT_EQ(Delete(Pods() + "/p?gracePeriodSeconds=0").status, 200);
  EXPECT_EQ(Get(Pods() + "/p").status, 404);
}

TEST_F(PodRules, TakeTheirStatusOnlyOnItsSubresource) {
  MakePod("p");

  const Answer status = Strategic(Pods() + "/p/status",
                                  R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})");
  EXPECT_EQ(status["status.phase"], "Running");
  EXPECT_EQ(status["metadata.generation"], "1");
  EXPECT_EQ(Merge(Pods() + "/p", R"({"status":{"phase":"Failed"}})")["status.phase"], "Running");

  const Answer more =
      Strategic(Pods() + "/p/status", R"({"status":{"conditions":[{"type":"Ready","status":"False"}]}})");
  EXPECT_EQ(more["status.conditions.0.status"], "False");
  EXPECT_EQ(more["status.conditions.1"], "(none)");
}

TEST_F(PodRules, NeedContainers) {
  EXPECT_TRUE(Refused(Post(Pods(), R"({"metadata":{"name":"p"},"spec":{}})"), 422, "Invalid",
                      "Pod \"p\" is invalid: spec.containers: Required value"));
}

// ---- Leases and events.

class LeaseRules : public Contract {
 protected:
  std::string Leases() { return Collection("/apis/coordination.k8s.io/v1", "leases"); }
  Answer MakeLease() {
    return Post(Leases(), R"({"metadata":{"name":"l"},"spec":{"holderIdentity":"a","leaseDurationSeconds":15,
        "acquireTime":"2026-01-01T00:00:00.000000Z","renewTime":"2026-01-01T00:00:00.123456Z"}})");
  }
};

TEST_F(LeaseRules, KeepMicroseconds) {
  const Answer made = MakeLease();

  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made["kind"], "Lease");
  EXPECT_EQ(made["spec.renewTime"], "2026-01-01T00:00:00.123456Z");
  EXPECT_EQ(made["spec.acquireTime"], "2026-01-01T00:00:00.000000Z");
}

TEST_F(LeaseRules, AreTakenByOneOfTwoCandidates) {
  Json first = MakeLease().body, second = first;
  first["spec"]["holderIdentity"] = "b";
  second["spec"]["holderIdentity"] = "c";

  EXPECT_EQ(Put(Leases() + "/l", first).status, 200);
  EXPECT_TRUE(Refused(Put(Leases() + "/l", second), 409, "Conflict",
                      "Operation cannot be fulfilled on leases.coordination.k8s.io \"l\": the object has been "
                      "modified; please apply your changes to the latest version and try again"));
  EXPECT_EQ(Get(Leases() + "/l")["spec.holderIdentity"], "b");
}

TEST_F(LeaseRules, AreCreatedByOneOfTwoCandidates) {
  MakeLease();

  EXPECT_TRUE(Refused(MakeLease(), 409, "AlreadyExists", "leases.coordination.k8s.io \"l\" already exists"));
}

TEST_F(LeaseRules, HaveADuration) {
  EXPECT_TRUE(Refused(Post(Leases(), R"({"metadata":{"name":"m"},"spec":{"leaseDurationSeconds":0}})"), 422, "Invalid",
                      "Lease.coordination.k8s.io \"m\" is invalid: spec.leaseDurationSeconds: Invalid value: 0: must "
                      "be greater than 0"));
}

class EventRules : public Contract {
 protected:
  std::string Events() { return Collection("/apis/events.k8s.io/v1", "events"); }
  Answer MakeEvent() {
    return Post(Events(), R"({"metadata":{"name":"e"},"eventTime":"2026-01-01T00:00:00.000000Z",
        "reportingController":"grus.dev/x","reportingInstance":"i","action":"Act","reason":"R","note":"n",
        "type":"Normal","regarding":{"apiVersion":"v1","kind":"ConfigMap","namespace":")" +
                              ns() + R"(","name":"x"}})");
  }
};

TEST_F(EventRules, CountByPatchOfTheirSeries) {
  ASSERT_EQ(MakeEvent().status, 201);

  const Answer patched =
      Merge(Events() + "/e", R"({"series":{"count":2,"lastObservedTime":"2026-01-01T00:00:01.000000Z"}})");

  EXPECT_EQ(patched.status, 200);
  EXPECT_EQ(patched["series.count"], "2");
  EXPECT_EQ(patched["note"], "n");
}

TEST_F(EventRules, AreSeenAsCoreEventsToo) {
  MakeEvent();

  const Answer core = Get(Collection("/api/v1", "events") + "/e");

  EXPECT_EQ(core.status, 200);
  EXPECT_EQ(core["apiVersion"], "v1");
  EXPECT_EQ(core["message"], "n");
  EXPECT_EQ(core["involvedObject.name"], "x");
  EXPECT_EQ(core["reportingComponent"], "grus.dev/x");
}

// As controllers write them, and as who looks for the reason of something finds them.
class CoreEventRules : public Contract {
 protected:
  std::string Events() { return Collection("/api/v1", "events"); }
  Answer MakeEvent(const std::string& name, const std::string& uid, const std::string& reason,
                   const std::string& type) {
    return Post(Events(), R"({"metadata":{"name":")" + name + R"("},"reason":")" + reason + R"(","type":")" + type +
                              R"(","message":"m","count":1,"source":{"component":"job-controller"},
        "reportingComponent":"job-controller","firstTimestamp":"2026-01-01T00:00:00Z",
        "lastTimestamp":"2026-01-01T00:00:00Z","involvedObject":{"apiVersion":"batch/v1","kind":"Job","namespace":")" +
                              ns() + R"(","name":"train","uid":")" + uid + R"("}})");
  }
};

TEST_F(CoreEventRules, AreSelectedInTheirOwnGroupToo) {
  ASSERT_EQ(MakeEvent("a", "u-1", "FailedCreate", "Warning").status, 201);
  ASSERT_EQ(MakeEvent("b", "u-1", "SuccessfulCreate", "Normal").status, 201);
  ASSERT_EQ(MakeEvent("c", "u-2", "FailedCreate", "Warning").status, 201);
  const auto fielded = [this](const std::string& selector) {
    return Get(Collection("/apis/events.k8s.io/v1", "events") + "?fieldSelector=" + EscapeQueryValue(selector));
  };

  const Answer warnings = fielded("regarding.uid=u-1,type=Warning");
  EXPECT_THAT(warnings.Names(), ElementsAre("a"));
  EXPECT_EQ(warnings["items.0.note"], "m");
  EXPECT_EQ(warnings["items.0.deprecatedCount"], "1");
  EXPECT_EQ(warnings["items.0.deprecatedLastTimestamp"], "2026-01-01T00:00:00Z");
  EXPECT_EQ(warnings["items.0.deprecatedSource.component"], "job-controller");
  EXPECT_THAT(fielded("regarding.kind=Job,regarding.name=train,reason=FailedCreate").Names(), ElementsAre("a", "c"));
  EXPECT_THAT(fielded("reportingController=job-controller,type!=Warning").Names(), ElementsAre("b"));
  EXPECT_TRUE(
      Refused(fielded("involvedObject.uid=u-1"), 400, "BadRequest", "field label not supported: involvedObject.uid"));
}

// ---- Services, StatefulSets and Jobs, as controllers/elastic makes them.

class ChildRules : public Contract {
 protected:
  std::string Sets() { return Collection("/apis/apps/v1", "statefulsets"); }
  std::string Jobs() { return Collection("/apis/batch/v1", "jobs"); }
  Answer MakeSet(const std::string& more = "{}") {
    Json set = J(R"({"metadata":{"name":"s"},"spec":{"replicas":0,"serviceName":"s",
        "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{
        "schedulerName":"nobody","containers":[{"name":"c","image":"i"}]}}}})");
    MergePatch(set["spec"], J(more));
    return Post(Sets(), ToText(set));
  }
};

TEST_F(ChildRules, HeadlessServicesStayHeadless) {
  const std::string services = Collection("/api/v1", "services");
  const Answer made = Post(services, R"({"metadata":{"name":"h"},"spec":{"clusterIP":"None","selector":{"a":"b"},
      "ports":[{"name":"x","port":1234}]}})");

  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made["spec.clusterIP"], "None");
  EXPECT_EQ(made["spec.ports.0.port"], "1234");
  EXPECT_EQ(Merge(services + "/h", R"({"spec":{"clusterIP":"10.0.0.5"}})").status, 422);
}

TEST_F(ChildRules, StatefulSetsGetOrderedPodsOnceAndForAllUnlessToldOtherwise) {
  const Answer made = MakeSet(R"({"replicas":null})");
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made["spec.podManagementPolicy"], "OrderedReady");
  EXPECT_EQ(made["spec.replicas"], "1");
  EXPECT_EQ(made["metadata.generation"], "1");

  const Answer changed = Merge(Sets() + "/s", R"({"spec":{"podManagementPolicy":"Parallel"}})");
  EXPECT_EQ(changed.status, 422);
  EXPECT_THAT(changed["message"], StartsWith("StatefulSet.apps \"s\" is invalid: spec: Forbidden: updates to "
                                             "statefulset spec for fields other than 'replicas'"));
}

TEST_F(ChildRules, StatefulSetsRaiseGenerationWithTheirSpecOnly) {
  MakeSet();

  EXPECT_EQ(Merge(Sets() + "/s", R"({"metadata":{"labels":{"x":"y"}}})")["metadata.generation"], "1");
  EXPECT_EQ(Merge(Sets() + "/s/status", R"({"status":{"replicas":0,"observedGeneration":1}})")["metadata.generation"],
            "1");
  EXPECT_EQ(Merge(Sets() + "/s", R"({"spec":{"minReadySeconds":1}})")["metadata.generation"], "2");
}

TEST_F(ChildRules, StatefulSetsNeedASelectorOfTheirOwnPods) {
  EXPECT_TRUE(Refused(MakeSet(R"({"selector":{"matchLabels":{"a":"c"}}})"), 422, "Invalid",
                      "StatefulSet.apps \"s\" is invalid: spec.template.metadata.labels: Invalid value: "
                      "{\"a\":\"b\"}: `selector` does not match template `labels`"));
}

TEST_F(ChildRules, JobsGetDefaultsAndASelector) {
  const Answer made = Post(Jobs(), R"({"metadata":{"name":"j"},"spec":{"suspend":true,"template":{"spec":{
      "restartPolicy":"Never","schedulerName":"nobody","containers":[{"name":"c","image":"i"}]}}}})");

  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made["spec.parallelism"], "1");
  EXPECT_EQ(made["spec.completions"], "1");
  EXPECT_EQ(made["spec.backoffLimit"], "6");
  EXPECT_EQ(made["metadata.generation"], "1");
  const std::string uid = made["metadata.uid"];
  const Json* selector = made.body.At({"spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"});
  ASSERT_NE(selector, nullptr);
  EXPECT_EQ(*selector, Json(uid));
  const Json* labels = made.body.At({"spec", "template", "metadata", "labels"});
  ASSERT_NE(labels, nullptr);
  EXPECT_EQ(*labels->Find("batch.kubernetes.io/controller-uid"), Json(uid));
  EXPECT_EQ(*labels->Find("batch.kubernetes.io/job-name"), Json("j"));
}

TEST_F(ChildRules, JobsNeedARestartPolicy) {
  EXPECT_TRUE(Refused(Post(Jobs(), R"({"metadata":{"name":"j"},"spec":{"template":{"spec":{
                                       "containers":[{"name":"c","image":"i"}]}}}})"),
                      422, "Invalid",
                      "Job.batch \"j\" is invalid: spec.template.spec.restartPolicy: Required value: valid values: "
                      "\"OnFailure\", \"Never\""));
}

TEST_F(ChildRules, SecretsTurnTextIntoData) {
  const Answer made = Post(Secrets(), R"({"metadata":{"name":"s"},"stringData":{"k":"v"}})");

  EXPECT_EQ(made["data.k"], "dg==");
  EXPECT_EQ(made["stringData"], "(none)");
  EXPECT_EQ(made["type"], "Opaque");
}

}  // namespace
}  // namespace kube::contract
