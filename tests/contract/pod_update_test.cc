// SPDX-License-Identifier: Apache-2.0
// What of a pod may change once it is there: what gangs do with gates, placement and nominations relies on
// it.
#include "tests/contract/pods.h"

namespace kube::contract {
namespace {

using ::testing::StartsWith;

constexpr char kGated[] = R"({"schedulingGates":[{"name":"grus.dev/gang"}]})";
constexpr char kNominate[] = R"({"status":{"nominatedNodeName":"node-a"}})";

std::string Terms(const std::string& terms) {
  return R"({"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{)"
         R"("nodeSelectorTerms":)" +
         terms + "}}}}}";
}
// A requirement of a term.
std::string In(const std::string& key, const std::string& value) {
  return R"({"key":")" + key + R"(","operator":"In","values":[")" + value + R"("]})";
}
std::string Term(const std::string& requirements) { return R"({"matchExpressions":[)" + requirements + "]}"; }

class PodUpdates : public PodContract {
 protected:
  Answer Change(const std::string& patch) { return Merge(Pods() + "/p", patch); }
  // A merge patch of the spec is refused, and the message goes on so.
  void Refuses(const std::string& patch, const std::string& message) {
    const Answer refused = Change(patch);
    EXPECT_EQ(refused.status, 422) << patch;
    EXPECT_EQ(refused["reason"], "Invalid");
    EXPECT_THAT(refused["message"], StartsWith("Pod \"p\" is invalid: " + message)) << patch;
  }
};

// ---- Gates.

TEST_F(PodUpdates, GatesAreRemovedOneByOne) {
  MakePod("p", R"({"schedulingGates":[{"name":"grus.dev/gang"},{"name":"grus.dev/quota"}]})");

  const Answer one = Change(R"({"spec":{"schedulingGates":[{"name":"grus.dev/quota"}]}})");
  EXPECT_EQ(one.status, 200);
  EXPECT_EQ(one["spec.schedulingGates.0.name"], "grus.dev/quota");
  EXPECT_EQ(one["metadata.generation"], "2");
  const Answer none = Change(R"({"spec":{"schedulingGates":null}})");
  EXPECT_EQ(none.status, 200);
  EXPECT_EQ(none["spec.schedulingGates"], "(none)");
}

TEST_F(PodUpdates, GatesAreRemovedByAStrategicPatchThatNamesThem) {
  MakePod("p", R"({"schedulingGates":[{"name":"grus.dev/gang"},{"name":"grus.dev/quota"}]})");

  const Answer changed =
      Strategic(Pods() + "/p", R"({"spec":{"schedulingGates":[{"$patch":"delete","name":"grus.dev/gang"}]}})");

  EXPECT_EQ(changed.status, 200);
  EXPECT_EQ(changed["spec.schedulingGates.0.name"], "grus.dev/quota");
  EXPECT_EQ(changed["spec.schedulingGates.1"], "(none)");
}

TEST_F(PodUpdates, GatesAreNeverAdded) {
  MakePod("p", kGated);
  Refuses(R"({"spec":{"schedulingGates":[{"name":"grus.dev/gang"},{"name":"grus.dev/quota"}]}})",
          "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate "
          "'grus.dev/quota'");
  Refuses(R"({"spec":{"schedulingGates":[{"name":"grus.dev/quota"}]}})",
          "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate "
          "'grus.dev/quota'");

  Change(R"({"spec":{"schedulingGates":null}})");
  Refuses(R"({"spec":{"schedulingGates":[{"name":"grus.dev/gang"}]}})",
          "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate "
          "'grus.dev/gang'");
}

TEST_F(PodUpdates, GatesStandInTheStatusFromTheStart) {
  const Answer made = MakePod("p", kGated);

  EXPECT_EQ(made["status.conditions.0.type"], "PodScheduled");
  EXPECT_EQ(made["status.conditions.0.status"], "False");
  EXPECT_EQ(made["status.conditions.0.reason"], "SchedulingGated");
  EXPECT_EQ(made["status.conditions.0.message"], "Scheduling is blocked due to non-empty scheduling gates");
  EXPECT_EQ(Change(R"({"spec":{"schedulingGates":null}})")["status.conditions.0.reason"], "SchedulingGated");
}

TEST_F(PodUpdates, GatesAndANodeExcludeEachOther) {
  const Answer refused = TryPod("p", R"({"nodeName":"n","schedulingGates":[{"name":"grus.dev/gang"}]})");

  EXPECT_TRUE(Refused(refused, 422, "Invalid",
                      "Pod \"p\" is invalid: spec.nodeName: Forbidden: cannot be set until all schedulingGates "
                      "have been cleared"));
}

// ---- Placement.

TEST_F(PodUpdates, NodeSelectorGrowsWhileGated) {
  MakePod("p", R"({"nodeSelector":{"pool":"a"},"schedulingGates":[{"name":"grus.dev/gang"}]})");

  const Answer grown = Change(R"({"spec":{"nodeSelector":{"zone":"z"}}})");
  EXPECT_EQ(grown.status, 200);
  EXPECT_EQ(grown["spec.nodeSelector.pool"], "a");
  EXPECT_EQ(grown["spec.nodeSelector.zone"], "z");
  Refuses(R"({"spec":{"nodeSelector":{"pool":"b"}}})",
          R"(spec.nodeSelector: Invalid value: {"pool":"b","zone":"z"}: only additions to spec.nodeSelector are )"
          "allowed (no mutations or deletions)");
  Refuses(R"({"spec":{"nodeSelector":{"pool":null}}})",
          R"(spec.nodeSelector: Invalid value: {"zone":"z"}: only additions to spec.nodeSelector are allowed (no )"
          "mutations or deletions)");
}

TEST_F(PodUpdates, PlacementStaysOnceUngated) {
  MakePod("p", R"({"nodeSelector":{"pool":"a"}})");

  Refuses(R"({"spec":{"nodeSelector":{"zone":"z"}}})", "spec: Forbidden: pod updates may not change fields other than");
  Refuses(Terms("[" + Term(In("pool", "a")) + "]"), "spec: Forbidden: pod updates may not change fields other than");
}

TEST_F(PodUpdates, TheLastGateGoesWithAPlacement) {
  MakePod("p", kGated);

  const Answer both = Change(R"({"spec":{"schedulingGates":null,"nodeSelector":{"zone":"z"}}})");

  EXPECT_EQ(both.status, 200);
  EXPECT_EQ(both["spec.nodeSelector.zone"], "z");
}

// ---- The rest.

TEST_F(PodUpdates, ActiveDeadlineIsSetAndShortened) {
  MakePod("p");

  EXPECT_EQ(Change(R"({"spec":{"activeDeadlineSeconds":100}})").status, 200);
  EXPECT_EQ(Change(R"({"spec":{"activeDeadlineSeconds":50}})").status, 200);
  Refuses(R"({"spec":{"activeDeadlineSeconds":60}})",
          "spec.activeDeadlineSeconds: Invalid value: 60: must be less than or equal to previous value");
  Refuses(R"({"spec":{"activeDeadlineSeconds":null}})",
          "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil "
          "value");
}

TEST_F(PodUpdates, TheRestOfTheSpecStays) {
  MakePod("p", kGated);

  for (const char* const patch :
       {R"({"spec":{"priority":7}})", R"({"spec":{"schedulerName":"other"}})", R"({"spec":{"nodeName":"n"}})",
        R"({"spec":{"terminationGracePeriodSeconds":1}})", R"({"spec":{"restartPolicy":"Never"}})"}) {
    Refuses(patch,
            "spec: Forbidden: pod updates may not change fields other than "
            "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
            "`spec.tolerations` (only additions to existing "
            "tolerations),`spec.terminationGracePeriodSeconds` (allow "
            "it to be set to 1 if it was previously negative)");
  }
}

TEST_F(PodUpdates, MetadataChangesFreely) {
  MakePod("p", kGated);

  const Answer changed = Change(R"({"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}}})");

  EXPECT_EQ(changed.status, 200);
  EXPECT_EQ(changed["metadata.generation"], "1");
}

// ---- Nominations.

TEST_F(PodUpdates, NominationsAreSetOnTheStatusByEveryPatch) {
  MakePod("p", kGated);
  const std::string status = Pods() + "/p/status", name = "status.nominatedNodeName";

  EXPECT_EQ(Merge(status, kNominate)[name], "node-a");
  EXPECT_EQ(Merge(status, R"({"status":{"nominatedNodeName":null}})")[name], "(none)");
  EXPECT_EQ(JsonPatch(status, R"([{"op":"add","path":"/status/nominatedNodeName","value":"node-b"}])")[name], "node-b");
  EXPECT_EQ(JsonPatch(status, R"([{"op":"test","path":"/status/nominatedNodeName","value":"node-b"},
                                  {"op":"remove","path":"/status/nominatedNodeName"}])")[name],
            "(none)");
  EXPECT_EQ(Strategic(status, kNominate)[name], "node-a");
  EXPECT_EQ(Merge(status, R"({"status":{"nominatedNodeName":""}})")[name], "(none)");
}

TEST_F(PodUpdates, NominationsAreNoPartOfThePodItself) {
  MakePod("p", kGated);

  const Answer changed =
      Merge(Pods() + "/p", R"({"spec":{"nodeSelector":{"a":"b"}},"status":{"nominatedNodeName":"n"}})");

  EXPECT_EQ(changed.status, 200);
  EXPECT_EQ(changed["status.nominatedNodeName"], "(none)");
  const Answer status =
      Merge(Pods() + "/p/status", R"({"spec":{"schedulingGates":null},"status":{"nominatedNodeName":"n"}})");
  EXPECT_EQ(status["status.nominatedNodeName"], "n");
  EXPECT_EQ(status["spec.schedulingGates.0.name"], "grus.dev/gang");
}

TEST_F(PodUpdates, NominationsAreNamesOfNodesThatNeedNotBeThere) {
  MakePod("p", kGated);

  EXPECT_EQ(Merge(Pods() + "/p/status", R"({"status":{"nominatedNodeName":"nowhere"}})").status, 200);
  const Answer refused = Merge(Pods() + "/p/status", R"({"status":{"nominatedNodeName":"No_de"}})");
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused["message"],
              StartsWith("Pod \"p\" is invalid: status.nominatedNodeName: Invalid value: \"No_de\": a lowercase RFC "
                         "1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
                         "start and end with an alphanumeric character"));
}

TEST_F(PodUpdates, NominationsEndWithTheBinding) {
  MakePod("p");
  Merge(Pods() + "/p/status", kNominate);

  EXPECT_EQ(Bind("p").status, 201);
  EXPECT_EQ(Get(Pods() + "/p")["status.nominatedNodeName"], "(none)");
  EXPECT_TRUE(Refused(Merge(Pods() + "/p/status", kNominate), 422, "Invalid",
                      "Pod \"p\" is invalid: status.nominatedNodeName: Forbidden: may not be set on pods that are "
                      "already bound to a node"));
  Delete(Pods() + "/p?gracePeriodSeconds=0");
}

}  // namespace
}  // namespace kube::contract
