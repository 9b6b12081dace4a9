// SPDX-License-Identifier: Apache-2.0
// PUT of whole objects: optimistic concurrency, and what of the body counts.
#include "tests/contract/server.h"

namespace kube::contract {
namespace {

using ::testing::StartsWith;

constexpr std::string_view kModified =
    "the object has been modified; please apply your changes to the latest version and try again";

class Updating : public Contract {};

TEST_F(Updating, ReplacesSpecAndRaisesGenerationAndVersion) {
  const Answer made = MakeWidget("w", R"({"size":1,"code":"abc"})");
  Json object = made.body;
  object["spec"] = J(R"({"size":2})");

  const Answer put = Put(Widgets() + "/w", object);

  EXPECT_EQ(put.status, 200);
  EXPECT_EQ(put["spec.size"], "2");
  EXPECT_EQ(put["spec.code"], "(none)");
  EXPECT_EQ(put["spec.color"], "red");  // Defaults again.
  EXPECT_EQ(put["metadata.generation"], "2");
  EXPECT_EQ(put["metadata.uid"], made["metadata.uid"]);
  EXPECT_GT(std::stoull(put["metadata.resourceVersion"]), std::stoull(made["metadata.resourceVersion"]));
  EXPECT_EQ(Get(Widgets() + "/w").body, put.body);
}

TEST_F(Updating, KeepsTheVersionIfNothingChanges) {
  const Answer made = MakeWidget("w");
  const Answer map = MakeConfigMap("c", R"({"k":"v"})");

  EXPECT_EQ(Put(Widgets() + "/w", made.body).body, made.body);
  EXPECT_EQ(Put(ConfigMaps() + "/c", map.body)["metadata.resourceVersion"], map["metadata.resourceVersion"]);
}

TEST_F(Updating, KeepsGenerationIfOnlyMetadataChanges) {
  Json object = MakeWidget("w").body;
  object["metadata"]["labels"]["k"] = "v";

  const Answer put = Put(Widgets() + "/w", object);

  EXPECT_EQ(put["metadata.labels.k"], "v");
  EXPECT_EQ(put["metadata.generation"], "1");
}

TEST_F(Updating, RefusesAnOldVersion) {
  Json object = MakeWidget("w").body;
  Merge(Widgets() + "/w", R"({"spec":{"size":2}})");
  object["spec"]["size"] = 3;

  const Answer put = Put(Widgets() + "/w", object);

  EXPECT_TRUE(Refused(put, 409, "Conflict",
                      "Operation cannot be fulfilled on widgets.contract.grus.dev \"w\": " + std::string(kModified)));
  EXPECT_EQ(put["details"], R"({"name":"w","group":"contract.grus.dev","kind":"widgets"})");
  EXPECT_EQ(Get(Widgets() + "/w")["spec.size"], "2");
  object["status"]["phase"] = "x";
  EXPECT_EQ(Put(Widgets() + "/w/status", object).status, 409);
}

TEST_F(Updating, NeedsAVersionForCustomResources) {
  Json object = MakeWidget("w").body;
  object["metadata"].Erase("resourceVersion");

  const Answer put = Put(Widgets() + "/w", object);

  EXPECT_TRUE(Refused(put, 422, "Invalid",
                      "widgets.contract.grus.dev \"w\" is invalid: metadata.resourceVersion: Invalid value: 0: must "
                      "be specified for an update"));
  EXPECT_EQ(put["details.causes.0.field"], "metadata.resourceVersion");
}

TEST_F(Updating, WritesNothingThatWasADryRunOrThatNamesAnotherObject) {
  Json object = MakeWidget("w").body;
  const Json as_it_is = object;
  object["spec"]["size"] = 2;
  EXPECT_EQ(Put(Widgets() + "/w?dryRun=All", object)["spec.size"], "2");
  object["metadata"]["name"] = "v";
  EXPECT_TRUE(Refused(Put(Widgets() + "/w", object), 400, "BadRequest",
                      "the name of the object (v) does not match the name on the URL (w)"));
  object["metadata"]["name"] = "w";
  object["metadata"]["deletionTimestamp"] = "2001-01-01T00:00:00Z";
  EXPECT_TRUE(Refused(Put(Widgets() + "/w", object), 422, "Invalid",
                      "Widget.contract.grus.dev \"w\" is invalid: metadata.deletionTimestamp: Invalid value: "
                      "\"2001-01-01T00:00:00Z\": field is immutable"));
  EXPECT_EQ(Get(Widgets() + "/w").body, as_it_is);
}

TEST_F(Updating, NeedsNoVersionForConfigMaps) {
  MakeConfigMap("a", R"({"k":"v"})");
  EXPECT_EQ(Put(ConfigMaps() + "/a", J(ConfigMap("a", R"({"k":"w"})")))["data.k"], "w");
}

TEST_F(Updating, CreatesNothing) {
  EXPECT_TRUE(Refused(Put(ConfigMaps() + "/a", J(ConfigMap("a"))), 404, "NotFound", "configmaps \"a\" not found"));
  EXPECT_TRUE(Refused(Put(Widgets() + "/w", J(Widget("w", R"({"size":1})", R"({"resourceVersion":"1"})"))), 404,
                      "NotFound", "widgets.contract.grus.dev \"w\" not found"));
}

TEST_F(Updating, RefusesAnotherUid) {
  Json object = MakeWidget("w").body;
  const std::string uid = TextAt(object, "metadata.uid");
  object["metadata"]["uid"] = "other";

  const Answer put = Put(Widgets() + "/w", object);

  EXPECT_EQ(put.status, 409);
  EXPECT_EQ(put["reason"], "Conflict");
  EXPECT_THAT(put["message"], ::testing::EndsWith("Precondition failed: UID in precondition: other, UID in object "
                                                  "meta: " +
                                                  uid));
}

TEST_F(Updating, IgnoresStatusOnTheMainResource) {
  Json object = MakeWidget("w").body;
  object["status"]["phase"] = "x";

  const Answer put = Put(Widgets() + "/w", object);

  EXPECT_EQ(put.status, 200);
  EXPECT_EQ(put["status"], "(none)");
  EXPECT_EQ(put["metadata.resourceVersion"], TextAt(object, "metadata.resourceVersion"));
}

TEST_F(Updating, KeepsStatusWhenTheMainResourceIsWrittenWithoutIt) {
  MakeWidget("w");
  Json object = Merge(Widgets() + "/w/status", R"({"status":{"phase":"x"}})").body;
  object.Erase("status");
  object["spec"]["size"] = 2;

  EXPECT_EQ(Put(Widgets() + "/w", object)["status.phase"], "x");
}

TEST_F(Updating, TakesOnlyStatusOnTheStatusSubresource) {
  Json object = MakeWidget("w").body;
  object["status"]["phase"] = "x";
  object["spec"]["size"] = 50;
  object["metadata"]["labels"]["k"] = "v";

  const Answer put = Put(Widgets() + "/w/status", object);

  EXPECT_EQ(put.status, 200);
  EXPECT_EQ(put["status.phase"], "x");
  EXPECT_EQ(put["spec.size"], "1");
  EXPECT_EQ(put["metadata.labels"], "(none)");
  EXPECT_EQ(put["metadata.generation"], "1");
}

TEST_F(Updating, ChecksTheSchemaOfStatus) {
  MakeWidget("w");

  const Answer answer = Merge(Widgets() + "/w/status", R"({"status":{"replicas":-1}})");

  EXPECT_EQ(answer.status, 422);
  EXPECT_THAT(answer["message"], StartsWith("Widget.contract.grus.dev \"w\" is invalid: [status.replicas: Invalid "
                                            "value: -1: "));
  EXPECT_EQ(answer["details.causes.0.field"], "status.replicas");
}

TEST_F(Updating, KeepsTheDataOfImmutableConfigMapsAndSecrets) {
  MakeConfigMap("a", R"({"k":"v"})");
  Merge(ConfigMaps() + "/a", R"({"immutable":true})");
  ASSERT_EQ(Post(Secrets(), R"({"metadata":{"name":"a"},"data":{"k":"djI="},"immutable":true})").status, 201);

  for (const auto& [target, kind] : {std::pair{ConfigMaps(), "ConfigMap"}, std::pair{Secrets(), "Secret"}}) {
    const std::string rule = "Forbidden: field is immutable when `immutable` is set";
    const std::string start = std::string(kind) + " \"a\" is invalid: ";
    EXPECT_TRUE(Refused(Merge(target + "/a", R"({"data":{"k":"dg=="}})"), 422, "Invalid", start + "data: " + rule));
    EXPECT_TRUE(Refused(Merge(target + "/a", R"({"immutable":null})"), 422, "Invalid", start + "immutable: " + rule));
    EXPECT_EQ(Merge(target + "/a", R"({"metadata":{"labels":{"a":"b"}}})").status, 200);
  }
}

}  // namespace
}  // namespace kube::contract
