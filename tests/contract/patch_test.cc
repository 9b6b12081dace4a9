// SPDX-License-Identifier: Apache-2.0
// JSON patch, merge patch and strategic merge patch.
#include "tests/contract/server.h"

namespace kube::contract {
namespace {

using ::testing::StartsWith;

class Patching : public Contract {
 protected:
  std::string W() { return Widgets() + "/w"; }
};

constexpr std::string_view kRejected = "the server rejected our request due to an error in our request";

TEST_F(Patching, MergeSetsAndRemoves) {
  MakeWidget("w", R"({"size":1,"code":"abc","tags":["a"]})", R"({"labels":{"a":"1","b":"2"}})");

  const Answer patched =
      Merge(W(), R"({"metadata":{"labels":{"a":null,"c":"3"}},"spec":{"code":null,"size":7,"tags":["b"]}})");

  EXPECT_EQ(patched.status, 200);
  EXPECT_EQ(patched["metadata.labels"], R"({"b":"2","c":"3"})");
  EXPECT_EQ(patched["spec.code"], "(none)");
  EXPECT_EQ(patched["spec.size"], "7");
  EXPECT_EQ(patched["spec.tags"], R"(["b"])");
  EXPECT_EQ(patched["metadata.generation"], "2");
}

TEST_F(Patching, MergeOfADefaultedFieldToNullBringsTheDefaultBack) {
  MakeWidget("w", R"({"size":1,"color":"blue"})");

  EXPECT_EQ(Merge(W(), R"({"spec":{"color":null}})")["spec.color"], "red");
}

TEST_F(Patching, KeepsTheVersionIfNothingChanges) {
  const Answer made = MakeWidget("w");

  EXPECT_EQ(Merge(W(), R"({"spec":{"size":1}})").body, made.body);
  EXPECT_EQ(JsonPatch(W(), "[]").body, made.body);
}

TEST_F(Patching, RefusesAnOldVersionInThePatch) {
  MakeWidget("w");

  EXPECT_TRUE(Refused(Merge(W(), R"({"metadata":{"resourceVersion":"1"},"spec":{"size":8}})"), 409, "Conflict",
                      "Operation cannot be fulfilled on widgets.contract.grus.dev \"w\": the object has been "
                      "modified; please apply your changes to the latest version and try again"));
}

TEST_F(Patching, RefusesAnotherUidOrName) {
  MakeWidget("w");

  const Answer uid = Merge(W(), R"({"metadata":{"uid":"other"}})");
  EXPECT_EQ(uid.status, 422);
  EXPECT_THAT(uid["message"], StartsWith("Widget.contract.grus.dev \"w\" is invalid: metadata.uid: Invalid value: "
                                         "\"other\": field is immutable"));
  EXPECT_TRUE(Refused(Merge(W(), R"({"metadata":{"name":"v"}})"), 400, "BadRequest",
                      "the name of the object (v) does not match the name on the URL (w)"));
}

TEST_F(Patching, ChecksTheSchemaOfTheResult) {
  MakeWidget("w");

  EXPECT_TRUE(Refused(Merge(W(), R"({"spec":{"size":800}})"), 422, "Invalid",
                      "Widget.contract.grus.dev \"w\" is invalid: spec.size: Invalid value: 800: spec.size in body "
                      "should be less than or equal to 100"));
  EXPECT_EQ(Get(W())["spec.size"], "1");
}

TEST_F(Patching, CreatesNothing) {
  for (const Answer& answer : {Merge(W(), R"({"spec":{"size":8}})"), JsonPatch(W(), "[]")}) {
    EXPECT_TRUE(Refused(answer, 404, "NotFound", "widgets.contract.grus.dev \"w\" not found"));
  }
}

TEST_F(Patching, JsonPatchTestsAndReplaces) {
  MakeWidget("w", R"({"size":7})");

  const Answer patched =
      JsonPatch(W(), R"([{"op":"test","path":"/spec/size","value":7},{"op":"replace","path":"/spec/size","value":9}])");

  EXPECT_EQ(patched.status, 200);
  EXPECT_EQ(patched["spec.size"], "9");
}

TEST_F(Patching, JsonPatchThatDoesNotApplyIsInvalid) {
  MakeWidget("w", R"({"size":7})");

  for (const char* patch :
       {R"([{"op":"test","path":"/spec/size","value":1}])",
        R"([{"op":"test","path":"/metadata/resourceVersion","value":"1"}])", R"([{"op":"remove","path":"/spec/nope"}])",
        R"([{"op":"add","path":"/spec/nope/x","value":1}])", R"([{"op":"frob","path":"/spec/size","value":1}])"}) {
    EXPECT_TRUE(Refused(JsonPatch(W(), patch), 422, "Invalid", kRejected)) << patch;
  }
}

TEST_F(Patching, JsonPatchChangesAllOrNothing) {
  MakeWidget("w", R"({"size":7})");

  JsonPatch(W(), R"([{"op":"replace","path":"/spec/size","value":9},{"op":"remove","path":"/spec/nope"}])");

  EXPECT_EQ(Get(W())["spec.size"], "7");
}

TEST_F(Patching, StrategicMergeIsNotForCustomResources) {
  MakeWidget("w");

  for (const Answer& answer :
       {Strategic(W(), R"({"spec":{"size":3}})"), Send("PATCH", W(), R"({"spec":{"size":3}})", "application/json")}) {
    EXPECT_TRUE(Refused(answer, 415, "UnsupportedMediaType",
                        "the body of the request was in an unknown format - accepted media types include: "
                        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"));
  }
}

// ---- Strategic merge patch, of built-in kinds.

class StrategicPatching : public Contract {
 protected:
  void SetUp() override {
    Contract::SetUp();
    const Answer made = Post(Sets(), R"({"metadata":{"name":"s"},"spec":{"replicas":0,"serviceName":"s",
        "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{
        "containers":[{"name":"one","image":"i","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],
        "command":["x","y"],"ports":[{"containerPort":80}]},{"name":"two","image":"j"}]}}}})");
    if (made.status != 201) throw std::runtime_error(made.http.body);
  }
  std::string Sets() { return Collection("/apis/apps/v1", "statefulsets"); }
  Answer PatchPodSpec(const std::string& patch) {
    return Strategic(Sets() + "/s", R"({"spec":{"template":{"spec":)" + patch + "}}}");
  }
  static std::string Of(const Answer& answer, const std::string& path) {
    return answer["spec.template.spec.containers." + path];
  }
};

TEST_F(StrategicPatching, MergesContainersAndVariablesByName) {
  const Answer patched =
      PatchPodSpec(R"({"containers":[{"name":"one","env":[{"name":"B","value":"3"},{"name":"C","value":"4"}]}]})");

  EXPECT_EQ(patched.status, 200);
  EXPECT_EQ(Of(patched, "0.image"), "i");
  EXPECT_EQ(Of(patched, "1.image"), "j");
  EXPECT_EQ(Of(patched, "0.env"), R"([{"name":"A","value":"1"},{"name":"B","value":"3"},{"name":"C","value":"4"}])");
}

TEST_F(StrategicPatching, PutsNewItemsBeforeThoseThatAreThere) {
  const Answer patched = PatchPodSpec(R"({"containers":[{"name":"three","image":"k"}]})");

  EXPECT_EQ(Of(patched, "0.name"), "three");
  EXPECT_EQ(Of(patched, "1.name"), "one");
  EXPECT_EQ(Of(patched, "2.name"), "two");
}

TEST_F(StrategicPatching, ReplacesListsWithoutAKey) {
  EXPECT_EQ(Of(PatchPodSpec(R"({"containers":[{"name":"one","command":["z"]}]})"), "0.command"), R"(["z"])");
}

TEST_F(StrategicPatching, DeletesAnItemOnCommand) {
  const Answer patched = PatchPodSpec(R"({"containers":[{"name":"two","$patch":"delete"}]})");

  EXPECT_EQ(Of(patched, "0.name"), "one");
  EXPECT_EQ(Of(patched, "1"), "(none)");
}

TEST_F(StrategicPatching, RemovesMembersByNull) {
  EXPECT_EQ(Of(PatchPodSpec(R"({"containers":[{"name":"one","command":null}]})"), "0.command"), "(none)");
}

TEST_F(StrategicPatching, TreatsFinalizersAsASet) {
  MakeConfigMap("a", "{}", R"({"finalizers":["grus.dev/a"]})");

  EXPECT_EQ(Strategic(ConfigMaps() + "/a", R"({"metadata":{"finalizers":["grus.dev/b"]}})")["metadata.finalizers"],
            R"(["grus.dev/b","grus.dev/a"])");
  EXPECT_EQ(Strategic(ConfigMaps() + "/a",
                      R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["grus.dev/a"]}})")["metadata.finalizers"],
            R"(["grus.dev/b"])");
  Merge(ConfigMaps() + "/a", R"({"metadata":{"finalizers":null}})");
}

TEST_F(StrategicPatching, MergesConditionsOfAStatusByType) {
  // A pod that no scheduler takes: no controller writes its status.
  AwaitServiceAccount();
  ASSERT_EQ(Post(Pods(), R"({"metadata":{"name":"p"},"spec":{"schedulerName":"nobody",
                             "containers":[{"name":"c","image":"i"}]}})")
                .status,
            201);
  Strategic(Pods() + "/p/status", R"({"status":{"conditions":[{"type":"A","status":"True"}]}})");

  const Answer patched =
      Strategic(Pods() + "/p/status", R"({"status":{"conditions":[{"type":"B","status":"False"}]}})");

  std::vector<std::string> types = {patched["status.conditions.0.type"], patched["status.conditions.1.type"]};
  EXPECT_THAT(types, ::testing::UnorderedElementsAre("A", "B"));
}

}  // namespace
}  // namespace kube::contract
