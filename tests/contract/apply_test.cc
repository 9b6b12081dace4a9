// SPDX-License-Identifier: Apache-2.0
// Server-side apply: who owns what, conflicts, and what leaves with its owner.
#include "tests/contract/server.h"

namespace kube::contract {
namespace {

using ::testing::StartsWith;

class Applying : public Contract {
 protected:
  std::string W() { return Widgets() + "/w"; }
  Answer ApplyW(const std::string& manager, const std::string& spec, const std::string& query = {}) {
    return Apply(W(), manager, Widget("w", spec), query);
  }
};

TEST_F(Applying, CreatesWhatIsNotThere) {
  const Answer made = ApplyW("one", R"({"size":1,"code":"abc"})");

  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made["spec.color"], "red");
  EXPECT_EQ(made["metadata.generation"], "1");
}

TEST_F(Applying, OwnsWhatIsAppliedAndNoDefaults) {
  const Answer made = ApplyW("one", R"({"size":1,"code":"abc"})");

  EXPECT_EQ(made.FieldsOf("one", "Apply"), J(R"({"f:spec":{"f:code":{},"f:size":{}}})"));
  EXPECT_EQ(made["metadata.managedFields.1"], "(none)");
}

TEST_F(Applying, KeepsTheVersionIfNothingChanges) {
  const Answer made = ApplyW("one", R"({"size":1,"code":"abc"})");

  const Answer again = ApplyW("one", R"({"size":1,"code":"abc"})");

  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again["metadata.resourceVersion"], made["metadata.resourceVersion"]);
}

TEST_F(Applying, RefusesToTakeAFieldOfAnotherManager) {
  ApplyW("one", R"({"size":1})");

  const Answer answer = ApplyW("two", R"({"size":2})");

  EXPECT_TRUE(
      Refused(answer, 409, "Conflict", "Apply failed with 1 conflict: conflict with \"one\": .spec.size"));
  EXPECT_EQ(answer["details"],
            R"({"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"one\"",)"
            R"("field":".spec.size"}]})");
  EXPECT_EQ(Get(W())["spec.size"], "1");
}

TEST_F(Applying, NamesTheVersionOfAnUpdaterInAConflict) {
  Post(Widgets() + "?fieldManager=up", Widget("w", R"({"size":1})"));

  EXPECT_TRUE(
      Refused(ApplyW("one", R"({"size":2})"), 409, "Conflict",
              "Apply failed with 1 conflict: conflict with \"up\" using contract.grus.dev/v1: .spec.size"));
}

TEST_F(Applying, ListsSeveralConflictsOfAManager) {
  ApplyW("one", R"({"size":1,"steps":["a"],"whole":{"a":"1"}})");

  const Answer answer = ApplyW("two", R"({"size":1,"steps":["b"],"whole":{"b":"1"}})");

  EXPECT_TRUE(
      Refused(answer, 409, "Conflict",
              "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.steps\n- .spec.whole"));
  EXPECT_EQ(answer["details.causes.1.field"], ".spec.whole");
}

TEST_F(Applying, TakesAFieldByForce) {
  ApplyW("one", R"({"size":1,"code":"abc"})");

  const Answer taken = ApplyW("two", R"({"size":2})", "&force=true");

  EXPECT_EQ(taken.status, 200);
  EXPECT_EQ(taken["spec.size"], "2");
  EXPECT_EQ(taken["spec.code"], "abc");
  EXPECT_EQ(taken.FieldsOf("one", "Apply"), J(R"({"f:spec":{"f:code":{}}})"));
  EXPECT_EQ(taken.FieldsOf("two", "Apply"), J(R"({"f:spec":{"f:size":{}}})"));
}

TEST_F(Applying, SharesAFieldOfTheSameValue) {
  ApplyW("one", R"({"size":1})");

  const Answer shared = ApplyW("two", R"({"size":1})");

  EXPECT_EQ(shared.status, 200);
  EXPECT_EQ(shared.FieldsOf("one", "Apply"), J(R"({"f:spec":{"f:size":{}}})"));
  EXPECT_EQ(shared.FieldsOf("two", "Apply"), J(R"({"f:spec":{"f:size":{}}})"));
  EXPECT_EQ(ApplyW("one", R"({"size":5})").status, 409);
}

TEST_F(Applying, RemovesWhatIsAppliedNoMore) {
  ApplyW("one", R"({"size":1,"code":"abc"})");

  const Answer less = ApplyW("one", R"({"size":1})");

  EXPECT_EQ(less["spec.code"], "(none)");
  EXPECT_EQ(less.FieldsOf("one", "Apply"), J(R"({"f:spec":{"f:size":{}}})"));
  EXPECT_EQ(less["metadata.generation"], "2");
}

TEST_F(Applying, LeavesWhatAnotherManagerOwnsAsWell) {
  ApplyW("one", R"({"size":1,"code":"abc"})");
  ApplyW("two", R"({"size":1,"code":"abc"})");

  EXPECT_EQ(ApplyW("one", R"({"size":1})")["spec.code"], "abc");
  EXPECT_EQ(ApplyW("two", R"({"size":1})")["spec.code"], "(none)");
}

TEST_F(Applying, LeavesWhatOthersWrote) {
  ApplyW("one", R"({"size":1})");
  Merge(W() + "?fieldManager=up", R"({"spec":{"code":"abc"}})");

  EXPECT_EQ(ApplyW("one", R"({"size":1})")["spec.code"], "abc");
}

TEST_F(Applying, BringsADefaultBackWhenItsOwnerLetsGo) {
  ApplyW("one", R"({"size":1,"color":"blue"})");

  EXPECT_EQ(ApplyW("one", R"({"size":1})")["spec.color"], "red");
}

TEST_F(Applying, LosesAFieldThatAnUpdateChanges) {
  ApplyW("one", R"({"size":1,"code":"abc"})");

  const Answer updated = Merge(W() + "?fieldManager=up", R"({"spec":{"size":8}})");

  EXPECT_EQ(updated.FieldsOf("one", "Apply"), J(R"({"f:spec":{"f:code":{}}})"));
  EXPECT_EQ(updated.FieldsOf("up", "Update"), J(R"({"f:spec":{"f:size":{}}})"));
}

TEST_F(Applying, GivesFieldsThatNobodyTrackedAnOwner) {
  MakeConfigMap("a", R"({"k":"v"})");
  const Answer cleared = Merge(ConfigMaps() + "/a", R"({"metadata":{"managedFields":[{}]}})");
  EXPECT_EQ(cleared["metadata.managedFields"], "(none)");

  const Answer answer = Apply(ConfigMaps() + "/a", "one", ConfigMap("a", R"({"k":"w"})"));

  EXPECT_TRUE(
      Refused(answer, 409, "Conflict",
              "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.k"));
}

TEST_F(Applying, MergesListsOfTypeMapByTheirKeys) {
  const Answer one = ApplyW("one", R"({"size":1,"parts":[{"name":"x"},{"name":"y","count":5}]})");
  EXPECT_EQ(one.FieldsOf("one", "Apply").At({"f:spec"})->Find("f:parts") != nullptr, true);
  EXPECT_EQ(
      *one.FieldsOf("one", "Apply").At({"f:spec", "f:parts"}),
      J(R"({"k:{\"name\":\"x\"}":{".":{},"f:name":{}},"k:{\"name\":\"y\"}":{".":{},"f:count":{},"f:name":{}}})"));

  const Answer two = ApplyW("two", R"({"size":1,"parts":[{"name":"z","note":"n"},{"name":"x","note":"m"}]})");

  EXPECT_EQ(
      *two.body.At({"spec", "parts"}),
      J(R"([{"name":"z","count":1,"note":"n"},{"name":"x","count":1,"note":"m"},{"name":"y","count":5}])"));
}

TEST_F(Applying, RemovesItemsOfMapsAndSetsThatNobodyElseOwns) {
  ApplyW("one", R"({"size":1,"parts":[{"name":"x"},{"name":"y"}],"tags":["t1","t2"]})");
  ApplyW("two", R"({"size":1,"parts":[{"name":"x","note":"m"}],"tags":["t2","t3"]})");

  const Answer less = ApplyW("one", R"({"size":1})");

  EXPECT_EQ(*less.body.At({"spec", "parts"}), J(R"([{"name":"x","count":1,"note":"m"}])"));
  EXPECT_EQ(less["spec.tags"], R"(["t2","t3"])");
}

TEST_F(Applying, MergesListsOfTypeSet) {
  const Answer one = ApplyW("one", R"({"size":1,"tags":["t1"]})");
  EXPECT_EQ(*one.FieldsOf("one", "Apply").At({"f:spec", "f:tags"}), J(R"({"v:\"t1\"":{}})"));

  EXPECT_EQ(ApplyW("two", R"({"size":1,"tags":["t2"]})")["spec.tags"], R"(["t1","t2"])");
}

TEST_F(Applying, TakesAtomicListsAndMapsWhole) {
  ApplyW("one", R"({"size":1,"steps":["a","b"],"whole":{"a":"1"}})");

  const Answer taken = ApplyW("two", R"({"size":1,"steps":["c"],"whole":{"b":"2"}})", "&force=true");

  EXPECT_EQ(taken["spec.steps"], R"(["c"])");
  EXPECT_EQ(taken["spec.whole"], R"({"b":"2"})");
  EXPECT_EQ(taken.FieldsOf("two", "Apply"), J(R"({"f:spec":{"f:size":{},"f:steps":{},"f:whole":{}}})"));
}

TEST_F(Applying, MergesBuiltInContainersByName) {
  const std::string set = Collection("/apis/apps/v1", "statefulsets") + "/s";
  const auto text = [](const std::string& containers) {
    return R"({"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"s"},"spec":{"replicas":0,
        "serviceName":"s","selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
        "spec":{"containers":)" +
           containers + "}}}}";
  };
  const Answer one = Apply(set, "one", text(R"([{"name":"c","image":"i"}])"));
  ASSERT_EQ(one.status, 201) << one.http.body;
  EXPECT_EQ(*one.FieldsOf("one", "Apply").At({"f:spec", "f:template", "f:spec", "f:containers"}),
            J(R"({"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{}}})"));

  const Answer two = Apply(set, "two", text(R"([{"name":"c","env":[{"name":"A","value":"1"}]}])"));

  EXPECT_EQ(two.status, 200) << two.http.body;
  EXPECT_EQ(two["spec.template.spec.containers.0.image"], "i");
  EXPECT_EQ(two["spec.template.spec.containers.0.env"], R"([{"name":"A","value":"1"}])");
}

TEST_F(Applying, RefusesAnItemTwice) {
  for (const auto& [spec, field] :
       {std::pair{R"({"size":1,"parts":[{"name":"x"},{"name":"x"}]})", ".spec.parts"},
        std::pair{R"({"size":1,"tags":["x","x"]})", ".spec.tags"}}) {
    const Answer answer = ApplyW("one", spec);
    EXPECT_EQ(answer.status, 500);
    EXPECT_THAT(answer["message"],
                StartsWith("failed to create typed patch object (/w; contract.grus.dev/v1, "
                           "Kind=Widget): " +
                           std::string(field) + ": duplicate entries for key"));
  }
}

TEST_F(Applying, RefusesFieldsThatAreNotInTheSchema) {
  const Answer answer = ApplyW("one", R"({"size":1,"foo":1})");

  EXPECT_TRUE(Refused(
      answer, 500, "(none)",
      "failed to create typed patch object (/w; contract.grus.dev/v1, Kind=Widget): .spec.foo: field not "
      "declared in schema"));
}

TEST_F(Applying, ChecksTheSchemaOfTheResult) {
  EXPECT_TRUE(
      Refused(ApplyW("one", R"({"size":500})"), 422, "Invalid",
              "Widget.contract.grus.dev \"w\" is invalid: spec.size: Invalid value: 500: spec.size in body "
              "should be less than or equal to 100"));
}

TEST_F(Applying, LeavesStatusToItsSubresource) {
  const std::string text = R"({"apiVersion":"contract.grus.dev/v1","kind":"Widget","metadata":{"name":"w"},
      "spec":{"size":7},"status":{"phase":"x"}})";
  ApplyW("one", R"({"size":1})");

  const Answer main = Apply(W(), "st", text, "&force=true");
  EXPECT_EQ(main["status"], "(none)");
  EXPECT_EQ(main.FieldsOf("st", "Apply"), J(R"({"f:spec":{"f:size":{}}})"));

  const Answer status = Apply(W() + "/status", "st", text);
  EXPECT_EQ(status.status, 200);
  EXPECT_EQ(status["status.phase"], "x");
  EXPECT_EQ(status.FieldsOf("st", "Apply", "status"), J(R"({"f:status":{"f:phase":{}}})"));
}

TEST_F(Applying, RemovesConditionsThatTheStatusOwnerLetsGo) {
  ApplyW("one", R"({"size":1})");
  const auto text = [](const std::string& conditions) {
    return R"({"apiVersion":"contract.grus.dev/v1","kind":"Widget","metadata":{"name":"w"},
        "status":{"phase":"x","conditions":)" +
           conditions + "}}";
  };
  Apply(W() + "/status", "st", text(R"([{"type":"A","status":"True"},{"type":"B","status":"True"}])"));

  const Answer less = Apply(W() + "/status", "st", text(R"([{"type":"B","status":"False"}])"));

  EXPECT_EQ(*less.body.At({"status", "conditions"}), J(R"([{"type":"B","status":"False"}])"));
}

TEST_F(Applying, CreatesNothingByAStatus) {
  EXPECT_TRUE(Refused(Apply(W() + "/status", "st", Widget("w")), 404, "NotFound",
                      "widgets.contract.grus.dev \"w\" not found"));
}

TEST_F(Applying, NeedsAFieldManager) {
  const Answer answer = Send("PATCH", W(), Widget("w"), "application/apply-patch+yaml");

  EXPECT_TRUE(
      Refused(answer, 422, "Invalid",
              "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply "
              "patch"));
}

TEST_F(Applying, RefusesManagedFields) {
  ApplyW("one", R"({"size":1})");

  EXPECT_TRUE(Refused(Apply(W(), "one", Widget("w", R"({"size":1})", R"({"managedFields":[{"manager":"x",
                          "operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{}}]})")),
                      400, "BadRequest", "metadata.managedFields must be nil"));
}

TEST_F(Applying, RefusesAnotherNameNamespaceOrKind) {
  EXPECT_TRUE(Refused(Apply(W(), "one", Widget("v")), 400, "BadRequest",
                      "the name of the object (v) does not match the name on the URL (w)"));
  EXPECT_TRUE(
      Refused(Apply(W(), "one", Widget("w", R"({"size":1})", R"({"namespace":"other"})")), 400, "BadRequest",
              "the namespace of the provided object does not match the namespace sent on the request"));
  ApplyW("one", R"({"size":1})");
  EXPECT_TRUE(Refused(Apply(W(), "one", R"({"apiVersion":"contract.grus.dev/v1","kind":"Other",
                                            "metadata":{"name":"w"}})"),
                      400, "BadRequest", "invalid object type: contract.grus.dev/v1, Kind=Other"));
  EXPECT_TRUE(Refused(Apply(W(), "one", R"({"spec":{"size":1}})"), 400, "BadRequest",
                      "invalid object type: /, Kind="));
}

TEST_F(Applying, RefusesAnOldVersion) {
  ApplyW("one", R"({"size":1})");

  const Answer answer =
      Apply(W(), "one", Widget("w", R"({"size":2})", R"({"resourceVersion":"1"})"), "&force=true");

  EXPECT_EQ(answer.status, 409);
  EXPECT_THAT(answer["message"],
              StartsWith("Operation cannot be fulfilled on widgets.contract.grus.dev \"w\": the "
                         "object has been modified"));
}

TEST_F(Applying, RefusesTextThatIsNoObject) {
  const Answer answer = Apply(W(), "one", R"({"spec":)");

  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer["message"], StartsWith("error decoding YAML: "));
}

TEST_F(Applying, StoresNothingInADryRun) {
  EXPECT_EQ(ApplyW("one", R"({"size":1})", "&dryRun=All").status, 201);
  EXPECT_EQ(Get(W()).status, 404);
}

TEST_F(Applying, WorksThroughTheClient) {
  static const Kind kWidget = MakeKind<Object>(
      {.group = "contract.grus.dev", .version = "v1", .kind = "Widget", .plural = "widgets"});
  const ObjectKey key{ns(), "w"};

  ASSERT_TRUE(client().Apply(kWidget, key, J(Widget("w", R"({"size":1})")), {.field_manager = "one"}));
  const auto refused =
      client().Apply(kWidget, key, J(Widget("w", R"({"size":2})")), {.field_manager = "two"});

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kConflict);
  ASSERT_TRUE(
      client().Apply(kWidget, key, J(Widget("w", R"({"size":2})")), {.field_manager = "two", .force = true}));
  EXPECT_EQ(Get(W())["spec.size"], "2");
}

}  // namespace
}  // namespace kube::contract
