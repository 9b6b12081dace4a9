// SPDX-License-Identifier: Apache-2.0
// DELETE: preconditions, finalizers, propagation, collections.
#include "clientlib/http/url.h"
#include "tests/contract/server.h"

namespace kube::contract {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

class Deleting : public Contract {
 protected:
  std::string W() { return Widgets() + "/w"; }
  Answer MakeHeld() { return MakeWidget("w", R"({"size":1})", R"({"finalizers":["grus.dev/hold"]})"); }
  void Release() { Merge(W(), R"({"metadata":{"finalizers":null}})"); }
};

TEST_F(Deleting, AnswersWithAStatusThatNamesTheObject) {
  const std::string map_uid = MakeConfigMap("a")["metadata.uid"];
  const std::string widget_uid = MakeWidget("w")["metadata.uid"];

  const Answer map = Delete(ConfigMaps() + "/a");
  EXPECT_EQ(map.status, 200);
  EXPECT_EQ(map["kind"], "Status");
  EXPECT_EQ(map["status"], "Success");
  EXPECT_EQ(map["details"], R"({"name":"a","kind":"configmaps","uid":")" + map_uid + R"("})");
  EXPECT_EQ(Delete(W())["details"],
            R"({"name":"w","group":"contract.grus.dev","kind":"widgets","uid":")" + widget_uid + R"("})");
  EXPECT_EQ(Get(W()).status, 404);
}

TEST_F(Deleting, SaysWhatIsNotThere) {
  EXPECT_TRUE(Refused(Delete(W()), 404, "NotFound", "widgets.contract.grus.dev \"w\" not found"));
}

TEST_F(Deleting, ChecksTheUid) {
  const std::string uid = MakeWidget("w")["metadata.uid"];

  EXPECT_TRUE(Refused(Delete(W(), R"({"preconditions":{"uid":"other"}})"), 409, "Conflict",
                      "Operation cannot be fulfilled on Widget.contract.grus.dev \"w\": the UID in the precondition "
                      "(other) does not match the UID in record (" +
                          uid +
                          "). The object might have been deleted and "
                          "then recreated"));
  EXPECT_EQ(Delete(W(), R"({"preconditions":{"uid":")" + uid + R"("}})").status, 200);
}

TEST_F(Deleting, ChecksTheVersion) {
  const std::string version = MakeWidget("w")["metadata.resourceVersion"];

  EXPECT_TRUE(Refused(Delete(W(), R"({"preconditions":{"resourceVersion":"1"}})"), 409, "Conflict",
                      "Operation cannot be fulfilled on Widget.contract.grus.dev \"w\": the ResourceVersion in the "
                      "precondition (1) does not match the ResourceVersion in record (" +
                          version +
                          "). The object "
                          "might have been modified"));
  EXPECT_EQ(Delete(W(), R"({"preconditions":{"resourceVersion":")" + version + R"("}})").status, 200);
}

TEST_F(Deleting, StoresNothingInADryRun) {
  MakeWidget("w");

  EXPECT_EQ(Delete(W() + "?dryRun=All").status, 200);
  EXPECT_EQ(Get(W()).status, 200);
}

TEST_F(Deleting, RefusesOptionsThatDoNotExist) {
  MakeWidget("w");

  EXPECT_TRUE(Refused(Delete(W() + "?propagationPolicy=Foo"), 422, "Invalid",
                      "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Foo\": "
                      "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""));
  EXPECT_EQ(Delete(W(), R"({"orphanDependents":true,"propagationPolicy":"Orphan"})").status, 422);
}

TEST_F(Deleting, WaitsForFinalizers) {
  const Answer made = MakeHeld();

  const Answer deleted = Delete(W());

  EXPECT_EQ(deleted.status, 200);
  EXPECT_EQ(deleted["kind"], "Widget");
  EXPECT_NE(deleted["metadata.deletionTimestamp"], "(none)");
  EXPECT_EQ(deleted["metadata.deletionGracePeriodSeconds"], "0");
  EXPECT_EQ(deleted["metadata.generation"], "2");
  EXPECT_EQ(deleted["metadata.finalizers"], R"(["grus.dev/hold"])");
  EXPECT_GT(std::stoull(deleted["metadata.resourceVersion"]), std::stoull(made["metadata.resourceVersion"]));
  EXPECT_EQ(Get(W()).body, deleted.body);
  Release();
}

TEST_F(Deleting, ChangesNothingTheSecondTime) {
  MakeHeld();
  const Answer first = Delete(W());

  EXPECT_EQ(Delete(W()).body, first.body);
  Release();
}

TEST_F(Deleting, EndsWithTheLastFinalizer) {
  MakeHeld();
  const Answer deleted = Delete(W());

  const Answer released = Merge(W(), R"({"metadata":{"finalizers":null}})");

  EXPECT_EQ(released.status, 200);
  EXPECT_EQ(released["metadata.finalizers"], "(none)");
  EXPECT_EQ(released["metadata.resourceVersion"], deleted["metadata.resourceVersion"]);
  EXPECT_EQ(Get(W()).status, 404);
}

TEST_F(Deleting, EndsWithTheLastFinalizerOfAnUpdateToo) {
  MakeHeld();
  Json object = Delete(W()).body;
  object["metadata"].Erase("finalizers");

  EXPECT_EQ(Put(W(), object).status, 200);
  EXPECT_EQ(Get(W()).status, 404);
}

TEST_F(Deleting, HoldsConfigMapsToo) {
  MakeConfigMap("a", "{}", R"({"finalizers":["grus.dev/hold"]})");

  const Answer deleted = Delete(ConfigMaps() + "/a", R"({"gracePeriodSeconds":5})");

  EXPECT_EQ(deleted["kind"], "ConfigMap");
  EXPECT_EQ(deleted["metadata.deletionGracePeriodSeconds"], "0");
  EXPECT_EQ(deleted["metadata.generation"], "(none)");
  Merge(ConfigMaps() + "/a", R"({"metadata":{"finalizers":[]}})");
  EXPECT_EQ(Get(ConfigMaps() + "/a").status, 404);
}

TEST_F(Deleting, TakesNoNewFinalizers) {
  MakeHeld();
  Delete(W());

  const Answer answer = Merge(W(), R"({"metadata":{"finalizers":["grus.dev/hold","grus.dev/two"]}})");

  EXPECT_EQ(answer.status, 422);
  EXPECT_THAT(answer["message"],
              StartsWith("Widget.contract.grus.dev \"w\" is invalid: metadata.finalizers: Forbidden: no new "
                         "finalizers can be added if the object is being deleted, found new finalizers "
                         "[]string{\"grus.dev/two\"}"));
  Release();
}

TEST_F(Deleting, LetsTheRestOfTheObjectChange) {
  MakeHeld();
  Delete(W());

  const Answer patched = Merge(W(), R"({"spec":{"size":3}})");

  EXPECT_EQ(patched["spec.size"], "3");
  EXPECT_EQ(patched["metadata.generation"], "3");
  Release();
}

TEST_F(Deleting, CannotBeTakenBack) {
  MakeHeld();
  const Answer deleted = Delete(W());

  const Answer patched = Merge(W(), R"({"metadata":{"deletionTimestamp":null}})");

  EXPECT_EQ(patched["metadata.deletionTimestamp"], deleted["metadata.deletionTimestamp"]);
  Release();
}

TEST_F(Deleting, KeepsTheNameUntilTheEnd) {
  MakeHeld();
  Delete(W());

  EXPECT_TRUE(Refused(Post(Widgets(), Widget("w")), 409, "AlreadyExists",
                      "object is being deleted: widgets.contract.grus.dev \"w\" already exists"));
  Release();
  EXPECT_EQ(Post(Widgets(), Widget("w")).status, 201);
}

TEST_F(Deleting, AddsAFinalizerForForegroundAndOrphan) {
  MakeWidget("f");
  MakeWidget("o");

  const Answer foreground = Delete(Widgets() + "/f", R"({"propagationPolicy":"Foreground"})");
  EXPECT_EQ(foreground["metadata.finalizers"], R"(["foregroundDeletion"])");
  EXPECT_NE(foreground["metadata.deletionTimestamp"], "(none)");
  EXPECT_EQ(Delete(Widgets() + "/o?propagationPolicy=Orphan")["metadata.finalizers"], R"(["orphan"])");
  for (const char* name : {"/f", "/o"}) Merge(Widgets() + name, R"({"metadata":{"finalizers":null}})");
}

TEST_F(Deleting, AddsNoFinalizerForBackground) {
  MakeWidget("w");

  EXPECT_EQ(Delete(W(), R"({"propagationPolicy":"Background"})")["kind"], "Status");
  EXPECT_EQ(Get(W()).status, 404);
}

TEST_F(Deleting, DeletesWhatASelectorMatches) {
  for (const char* name : {"x", "y", "z"}) {
    MakeWidget(name, R"({"size":1})", R"({"labels":{"k":")" + std::string(name) + R"("}})");
  }

  const Answer deleted = Delete(Widgets() + "?labelSelector=" + EscapeQueryValue("k in (x,y)"));

  EXPECT_EQ(deleted.status, 200);
  EXPECT_EQ(deleted["kind"], "WidgetList");
  EXPECT_THAT(deleted.Names(), ElementsAre("x", "y"));
  EXPECT_THAT(Get(Widgets()).Names(), ElementsAre("z"));
}

TEST_F(Deleting, DeletesOnlyInItsNamespace) {
  const std::string other = "/apis/contract.grus.dev/v1/namespaces/" + MakeNamespace() + "/widgets";
  MakeWidget("w");
  ASSERT_EQ(Post(other, Widget("w")).status, 201);

  Delete(Widgets());

  EXPECT_EQ(Get(W()).status, 404);
  EXPECT_EQ(Get(other + "/w").status, 200);
}

TEST_F(Deleting, WorksThroughTheClient) {
  static const Kind kWidget =
      MakeKind<Object>({.group = "contract.grus.dev", .version = "v1", .kind = "Widget", .plural = "widgets"});
  MakeWidget("w");

  const auto refused = client().Delete(kWidget, {ns(), "w"}, {.uid = "other"});

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kConflict);
  EXPECT_TRUE(client().Delete(kWidget, {ns(), "w"}));
  EXPECT_TRUE(client().Delete(kWidget, {ns(), "w"}));
}

// ---- The scale subresource.

class Scaling : public Contract {
 protected:
  void SetUp() override {
    Contract::SetUp();
    MakeWidget("w", R"({"size":1,"replicas":3})");
    Merge(Widgets() + "/w/status", R"({"status":{"replicas":2,"selector":"a=b"}})");
  }
  std::string Scale() { return Widgets() + "/w/scale"; }
};

TEST_F(Scaling, ShowsReplicasAndSelector) {
  const Answer scale = Get(Scale());

  EXPECT_EQ(scale["kind"], "Scale");
  EXPECT_EQ(scale["apiVersion"], "autoscaling/v1");
  EXPECT_EQ(scale["spec"], R"({"replicas":3})");
  EXPECT_EQ(scale["status"], R"({"replicas":2,"selector":"a=b"})");
  const Answer widget = Get(Widgets() + "/w");
  for (const char* field : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    EXPECT_EQ(scale["metadata." + std::string(field)], widget["metadata." + std::string(field)]);
  }
}

TEST_F(Scaling, ShowsZeroWithoutAStatus) {
  MakeWidget("v");

  EXPECT_EQ(Get(Widgets() + "/v/scale")["status"], R"({"replicas":0})");
}

TEST_F(Scaling, SetsReplicasByPut) {
  Json scale = Get(Scale()).body;
  scale["spec"]["replicas"] = 5;

  const Answer put = Put(Scale(), scale);

  EXPECT_EQ(put.status, 200);
  EXPECT_EQ(put["spec.replicas"], "5");
  const Answer widget = Get(Widgets() + "/w");
  EXPECT_EQ(widget["spec.replicas"], "5");
  EXPECT_EQ(widget["metadata.generation"], "2");
  EXPECT_EQ(widget["metadata.resourceVersion"], put["metadata.resourceVersion"]);
}

TEST_F(Scaling, KeepsTheVersionIfNothingChanges) {
  Json scale = Get(Scale()).body;
  scale["spec"]["replicas"] = 5;
  const Answer first = Put(Scale(), scale);

  EXPECT_EQ(Put(Scale(), first.body).body, first.body);
}

TEST_F(Scaling, RefusesAnOldVersionButNeedsNone) {
  Json scale = Get(Scale()).body;
  scale["spec"]["replicas"] = 7;
  scale["metadata"]["resourceVersion"] = "1";
  const Answer old = Put(Scale(), scale);
  EXPECT_EQ(old.status, 409);
  EXPECT_THAT(old["message"], StartsWith("Operation cannot be fulfilled on widgets.contract.grus.dev \"w\": the "
                                         "object has been modified"));

  scale["metadata"].Erase("resourceVersion");
  EXPECT_EQ(Put(Scale(), scale)["spec.replicas"], "7");
}

TEST_F(Scaling, SetsReplicasByPatch) {
  EXPECT_EQ(Merge(Scale(), R"({"spec":{"replicas":4}})")["spec.replicas"], "4");
  EXPECT_EQ(JsonPatch(Scale(), R"([{"op":"replace","path":"/spec/replicas","value":6}])")["spec.replicas"], "6");
  EXPECT_EQ(Get(Widgets() + "/w")["spec.replicas"], "6");
}

TEST_F(Scaling, RefusesNegativeReplicas) {
  const Answer answer = Merge(Scale(), R"({"spec":{"replicas":-4}})");

  EXPECT_EQ(answer.status, 422);
  EXPECT_THAT(answer["message"],
              StartsWith("Widget.contract.grus.dev \"w\" is invalid: [spec.replicas: Invalid value: -4: "));
}

TEST_F(Scaling, SaysWhatIsNotThere) {
  EXPECT_TRUE(Refused(Get(Widgets() + "/none/scale"), 404, "NotFound", "widgets.contract.grus.dev \"none\" not found"));
}

TEST_F(Scaling, WorksForStatefulSets) {
  const std::string sets = Collection("/apis/apps/v1", "statefulsets");
  ASSERT_EQ(Post(sets, R"({"metadata":{"name":"s"},"spec":{"replicas":0,"serviceName":"s",
      "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{
      "schedulerName":"nobody","containers":[{"name":"c","image":"i"}]}}}})")
                .status,
            201);

  const Answer scale = Merge(sets + "/s/scale", R"({"spec":{"replicas":1}})");

  EXPECT_EQ(scale["kind"], "Scale");
  EXPECT_EQ(scale["spec.replicas"], "1");
  EXPECT_EQ(scale["status.selector"], "a=b");
  EXPECT_EQ(Get(sets + "/s")["spec.replicas"], "1");
}

}  // namespace
}  // namespace kube::contract
