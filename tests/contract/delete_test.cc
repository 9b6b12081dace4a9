// SPDX-License-Identifier: Apache-2.0
// DELETE: preconditions, finalizers, propagation, collections.
#include "clientlib/http/url.h"
#include "tests/contract/server.h"

namespace kube::contract {
namespace {

using ::testing::StartsWith;

class Deleting : public Contract {
 protected:
  std::string W() { return Widgets() + "/w"; }
  Answer MakeHeld() { return MakeWidget("w", R"({"size":1})", R"({"finalizers":["grus.dev/hold"]})"); }
  void Release() { Merge(W(), R"({"metadata":{"finalizers":null}})"); }
};

TEST_F(Deleting, StoresNothingInADryRun) {
  MakeWidget("w");

  EXPECT_EQ(Delete(W() + "?dryRun=All").status, 200);
  EXPECT_EQ(Get(W()).status, 200);
}

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

TEST_F(Deleting, ChecksUidAndVersion) {
  struct Case {
    const char *field, *wrong, *name, *hint;
  };
  for (const Case& c : {Case{"uid", "other", "UID", "been deleted and then recreated"},
                        Case{"resourceVersion", "1", "ResourceVersion", "been modified"}}) {
    const std::string right = MakeWidget("w")["metadata." + std::string(c.field)], name = c.name;
    const auto with = [&](const std::string& value) {
      return Delete(W(), R"({"preconditions":{")" + std::string(c.field) + R"(":")" + value + R"("}})");
    };
    EXPECT_TRUE(Refused(with(c.wrong), 409, "Conflict",
                        "Operation cannot be fulfilled on Widget.contract.grus.dev \"w\": the " + name +
                            " in the precondition (" + c.wrong + ") does not match the " + name + " in record (" +
                            right + "). The object might have " + c.hint));
    EXPECT_EQ(with(right).status, 200);
  }
}

TEST_F(Deleting, WaitsForTheLastFinalizerAndChangesNothingTheSecondTime) {
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
  EXPECT_EQ(Delete(W()).body, deleted.body);

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

TEST_F(Deleting, LetsAHeldObjectChangeButForItsEndAndItsName) {
  MakeHeld();
  const Answer deleted = Delete(W());

  const Answer more = Merge(W(), R"({"metadata":{"finalizers":["grus.dev/hold","grus.dev/two"]}})");
  EXPECT_EQ(more.status, 422);
  EXPECT_THAT(more["message"],
              StartsWith("Widget.contract.grus.dev \"w\" is invalid: metadata.finalizers: Forbidden: no new "
                         "finalizers can be added if the object is being deleted, found new finalizers "
                         "[]string{\"grus.dev/two\"}"));
  const Answer patched = Merge(W(), R"({"metadata":{"deletionTimestamp":null},"spec":{"size":3}})");
  EXPECT_EQ(patched["metadata.deletionTimestamp"], deleted["metadata.deletionTimestamp"]);
  EXPECT_EQ(patched["spec.size"], "3");
  EXPECT_EQ(patched["metadata.generation"], "3");
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

}  // namespace
}  // namespace kube::contract
