// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/managed_fields.h"

#include <gtest/gtest.h>

namespace kube::testing {
namespace {

constexpr std::string_view kT1 = "2026-01-01T00:00:01Z";
constexpr std::string_view kT2 = "2026-01-01T00:00:02Z";
constexpr std::string_view kT3 = "2026-01-01T00:00:03Z";

Json Of(std::string_view text) {
  Result<Json> json = ParseJson(text);
  EXPECT_TRUE(json) << text;
  return json ? *std::move(json) : Json();
}

FieldManager Applier(std::string name) { return {std::move(name), "Apply", "g/v1", ""}; }
FieldManager Updater(std::string name, std::string subresource = "") {
  return {std::move(name), "Update", "g/v1", std::move(subresource)};
}

// A job with lists of all types.
class ManagedFields : public ::testing::Test {
 protected:
  ManagedFields() {
    auto schema = StructuralSchema::Parse(Of(R"({"type": "object", "properties": {
      "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
      "spec": {"type": "object", "properties": {
        "replicas": {"type": "integer"}, "image": {"type": "string"},
        "args": {"type": "array", "items": {"type": "string"}},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "selector": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
        "limits": {"type": "object", "additionalProperties": {"type": "integer"}},
        "policy": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
          "items": {"type": "object", "properties": {"port": {"type": "integer"}, "name": {"type": "string"},
                    "protocol": {"type": "string", "default": "TCP"}}}}}}}})"));
    EXPECT_TRUE(schema) << (schema ? "" : schema.error().message());
    schema_ = *schema;
  }

  // An object whose spec is `spec`.
  static Json Job(const std::string& spec, const std::string& metadata = R"({"name": "j"})") {
    return Of(R"({"apiVersion": "g/v1", "kind": "Job", "metadata": )" + metadata + R"(, "spec": )" + spec +
              "}");
  }
  Json Apply(const Json& live, const Json& applied, const std::string& manager, std::string_view now = kT2,
             bool force = false) {
    Json result = ApplyConfiguration(schema_.get(), live, applied, Applier(manager), force, now, conflicts_);
    EXPECT_TRUE(conflicts_.empty()) << (conflicts_.empty() ? "" : conflicts_[0].field);
    return result;
  }
  std::vector<ApplyConflict> ConflictsOf(const Json& live, const Json& applied, const std::string& manager) {
    ApplyConfiguration(schema_.get(), live, applied, Applier(manager), false, kT2, conflicts_);
    return conflicts_;
  }
  Json Update(const Json& before, Json after, const FieldManager& manager, std::string_view now = kT2) {
    TrackUpdate(schema_.get(), before, after, manager, now);
    return after;
  }
  // "manager/operation[/subresource]@second" of each entry, with its fields.
  static std::string Owners(const Json& object) {
    std::string text;
    const Json* const entries = object.At({"metadata", "managedFields"});
    if (!entries) return text;
    for (const Json& entry : *entries->AsArray()) {
      const Json* const time = entry.Find("time");
      const Json* const subresource = entry.Find("subresource");
      text += (text.empty() ? "" : "\n") + *entry.Find("manager")->AsString() + "/" +
              *entry.Find("operation")->AsString() + (subresource ? "/" + *subresource->AsString() : "") +
              "@" + (time ? time->AsString()->substr(18, 1) : "-") + " " + ToText(*entry.Find("fieldsV1"));
    }
    return text;
  }
  static std::string SpecOf(const Json& object) { return ToText(*object.Find("spec")); }

  std::shared_ptr<const StructuralSchema> schema_;
  std::vector<ApplyConflict> conflicts_;
};

TEST_F(ManagedFields, ACreatorOwnsAllButTheIdentity) {
  const Json job =
      Update({},
             Job(R"({"replicas": 1, "limits": {"gpu": 1}, "ports": [{"port": 80}], "args": ["a"]})",
                 R"({"name": "j", "uid": "u", "generation": 1, "labels": {"a": "b"}})"),
             Updater("kubectl"), kT1);

  EXPECT_EQ(Owners(job),
            R"(kubectl/Update@1 {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{".":{},"f:args":{},)"
            R"("f:limits":{".":{},"f:gpu":{}},"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":)"
            R"({".":{},"f:port":{}}},"f:replicas":{}}})");
  const Json& entry = job.At({"metadata", "managedFields"})->AsArray()->front();
  EXPECT_EQ(*entry.Find("apiVersion"), Json("g/v1"));
  EXPECT_EQ(*entry.Find("fieldsType"), Json("FieldsV1"));
}

TEST_F(ManagedFields, AnApplierOwnsLeavesItemsAndKeys) {
  const Json job =
      Apply({}, Job(R"({"replicas": 1, "limits": {"gpu": 1}, "ports": [{"port": 80, "protocol": "UDP"}],
                                     "tags": ["x", "y"], "selector": {"a": "b"}, "policy": {}})"),
            "me", kT1);

  EXPECT_EQ(Owners(job),
            R"(me/Apply@1 {"f:spec":{"f:limits":{"f:gpu":{}},"f:policy":{},)"
            R"("f:ports":{"k:{\"port\":80,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{}}},)"
            R"("f:replicas":{},"f:selector":{},"f:tags":{"v:\"x\"":{},"v:\"y\"":{}}}})");
}

TEST_F(ManagedFields, AWriterTakesWhatItChangesAndNobodyOwnsWhatIsGone) {
  const Json before =
      Update({}, Job(R"({"replicas": 1, "image": "a", "limits": {"gpu": 1}})"), Updater("one"), kT1);

  const Json after = Update(before, Job(R"({"replicas": 2, "image": "a"})"), Updater("two"), kT2);

  EXPECT_EQ(Owners(after),
            "one/Update@1 {\"f:spec\":{\".\":{},\"f:image\":{}}}\n"
            "two/Update@2 {\"f:spec\":{\"f:replicas\":{}}}");
}

TEST_F(ManagedFields, TimeMovesOnlyWithNewFields) {
  const Json before = Update({}, Job(R"({"replicas": 1, "image": "a"})"), Updater("one"), kT1);

  EXPECT_EQ(Owners(Update(before, Job(R"({"replicas": 1, "image": "a"})"), Updater("one"), kT2)),
            Owners(before));
  EXPECT_EQ(Owners(Update(before, Job(R"({"replicas": 1})"), Updater("two"), kT2)),
            "one/Update@1 {\"f:spec\":{\".\":{},\"f:replicas\":{}}}");
  EXPECT_EQ(Owners(Update(before, Job(R"({"replicas": 2, "image": "a"})"), Updater("one"), kT2)),
            "one/Update@2 {\"f:spec\":{\".\":{},\"f:image\":{},\"f:replicas\":{}}}");
}

TEST_F(ManagedFields, EntriesAreByManagerOperationAndSubresourceAndSorted) {
  Json job = Apply({}, Job(R"({"image": "a"})"), "z-applier", kT3);
  Json next = job;
  next["spec"]["replicas"] = 1;
  job = Update(job, next, Updater("z-updater"), kT1);
  next = job;
  next["status"]["phase"] = "Running";
  job = Update(job, next, Updater("z-updater", "status"), kT2);
  next["status"]["phase"] = "Done";
  job = Update(job, next, Updater("a-updater", "status"), kT2);

  EXPECT_EQ(Owners(job),
            "z-applier/Apply@3 {\"f:spec\":{\"f:image\":{}}}\n"
            "z-updater/Update@1 {\"f:spec\":{\"f:replicas\":{}}}\n"
            "a-updater/Update/status@2 {\"f:status\":{\"f:phase\":{}}}\n"
            "z-updater/Update/status@2 {\"f:status\":{}}");
}

TEST_F(ManagedFields, IgnoresWhatTheClientSentAsManagedFields) {
  const Json before = Update({}, Job(R"({"replicas": 1})"), Updater("one"), kT1);
  Json after = before;
  after["metadata"]["managedFields"] = Json::MakeArray();

  EXPECT_EQ(Owners(Update(before, after, Updater("two"))), Owners(before));
}

TEST_F(ManagedFields, AnUntrackedObjectStaysUntrackedUntilApplied) {
  const Json live = Job(R"({"replicas": 1})");

  EXPECT_EQ(Owners(Update(live, Job(R"({"replicas": 2})"), Updater("one"))), "");
  EXPECT_EQ(Owners(Apply(live, Job(R"({"image": "a"})"), "me")),
            "me/Apply@2 {\"f:spec\":{\"f:image\":{}}}\n"
            "before-first-apply/Update@2 {\"f:spec\":{\".\":{},\"f:replicas\":{}}}");
  ASSERT_EQ(ConflictsOf(live, Job(R"({"replicas": 2})"), "me").size(), 1U);
  EXPECT_EQ(conflicts_[0].manager, "before-first-apply");
}

TEST_F(ManagedFields, AnotherValueOfAnotherManagerConflicts) {
  Json live = Apply({}, Job(R"({"image": "a", "ports": [{"port": 80, "name": "http"}]})"), "one", kT1);
  Json scaled = live;
  scaled["spec"]["replicas"] = 3;
  live = Update(live, scaled, Updater("scaler", "scale"));

  const auto conflicts = ConflictsOf(
      live, Job(R"({"image": "b", "replicas": 4, "ports": [{"port": 80, "name": "web"}]})"), "two");

  ASSERT_EQ(conflicts.size(), 3U);
  EXPECT_EQ(conflicts[0].manager + " " + conflicts[0].operation + " " + conflicts[0].field,
            "one Apply .spec.image");
  EXPECT_EQ(conflicts[0].message, "conflict with \"one\"");
  EXPECT_EQ(conflicts[1].field, ".spec.ports[port=80,protocol=\"TCP\"].name");
  EXPECT_EQ(conflicts[2].manager + " " + conflicts[2].operation + " " + conflicts[2].field,
            "scaler Update .spec.replicas");
  EXPECT_EQ(conflicts[2].message, "conflict with \"scaler\" with subresource \"scale\" using g/v1");
}

TEST_F(ManagedFields, AnEqualValueIsShared) {
  const Json live = Apply({}, Job(R"({"image": "a", "replicas": 1})"), "one", kT1);

  const Json shared = Apply(live, Job(R"({"image": "a"})"), "two", kT2);

  EXPECT_EQ(Owners(shared),
            "two/Apply@- {\"f:spec\":{\"f:image\":{}}}\n"  // The object is as it was: no time.
            "one/Apply@1 {\"f:spec\":{\"f:image\":{},\"f:replicas\":{}}}");
  EXPECT_EQ(SpecOf(Apply(shared, Job(R"({"replicas": 1})"), "one", kT3)), R"({"image":"a","replicas":1})");
}

TEST_F(ManagedFields, ForceTakesTheField) {
  const Json live = Apply({}, Job(R"({"image": "a", "replicas": 1})"), "one", kT1);

  const Json forced = Apply(live, Job(R"({"image": "b"})"), "two", kT2, true);

  EXPECT_EQ(SpecOf(forced), R"({"image":"b","replicas":1})");
  EXPECT_EQ(Owners(forced),
            "one/Apply@1 {\"f:spec\":{\"f:replicas\":{}}}\n"
            "two/Apply@2 {\"f:spec\":{\"f:image\":{}}}");
}

TEST_F(ManagedFields, WhatIsNoLongerAppliedGoes) {
  struct Case {
    const char *name, *first, *second, *want;
  };
  for (const Case& c : {
           Case{"a field", R"({"image": "a", "replicas": 1})", R"({"image": "a"})", R"({"image":"a"})"},
           Case{"a key", R"({"limits": {"a": 1, "b": 2}})", R"({"limits": {"b": 2}})",
                R"({"limits":{"b":2}})"},
           Case{"an item", R"({"ports": [{"port": 1}, {"port": 2}]})", R"({"ports": [{"port": 2}]})",
                R"({"ports":[{"port":2}]})"},
           Case{"a field of an item", R"({"ports": [{"port": 1, "name": "x"}]})",
                R"({"ports": [{"port": 1}]})", R"({"ports":[{"port":1}]})"},
           Case{"a value of a set", R"({"tags": ["a", "b"]})", R"({"tags": ["b"]})", R"({"tags":["b"]})"},
           Case{"an atomic list", R"({"image": "a", "args": ["a"]})", R"({"image": "a"})",
                R"({"image":"a"})"},
           Case{"part of an atomic map", R"({"selector": {"a": "1", "b": "2"}})",
                R"({"selector": {"b": "2"}})", R"({"selector":{"b":"2"}})"},
           Case{"a struct", R"({"image": "a", "policy": {"a": 1}})", R"({"image": "a"})", R"({"image":"a"})"},
           Case{"a map", R"({"image": "a", "limits": {"a": 1}})", R"({"image": "a"})", R"({"image":"a"})"},
       }) {
    const Json live = Apply({}, Job(c.first), "me", kT1);
    EXPECT_EQ(SpecOf(Apply(live, Job(c.second), "me", kT2)), c.want) << c.name;
  }
}

TEST_F(ManagedFields, FieldsOfOthersAndOfNobodyStay) {
  Json live = Apply({}, Job(R"({"policy": {"a": 1}, "limits": {"a": 1}, "image": "a"})"), "me", kT1);
  Json updated = live;
  updated["spec"]["policy"]["b"] = 2;
  updated["spec"]["limits"]["b"] = 2;
  live = Update(live, updated, Updater("other"));

  const Json applied = Apply(live, Job(R"({"image": "a"})"), "me", kT3);

  EXPECT_EQ(*applied.Find("spec"), Of(R"({"policy": {"b": 2}, "limits": {"b": 2}, "image": "a"})"))
      << SpecOf(applied);
  EXPECT_EQ(Owners(applied),
            "me/Apply@3 {\"f:spec\":{\"f:image\":{}}}\n"
            "other/Update@2 {\"f:spec\":{\"f:limits\":{\"f:b\":{}},\"f:policy\":{\"f:b\":{}}}}");
}

TEST_F(ManagedFields, ApplyingNothingRemovesTheEntry) {
  Json live = Update({}, Job(R"({"replicas": 1})"), Updater("one"), kT1);
  live = Apply(live, Job(R"({"replicas": 1, "image": "a"})"), "me", kT2);

  const Json applied =
      Apply(live, Of(R"({"apiVersion": "g/v1", "kind": "Job", "metadata": {"name": "j"}})"), "me");

  EXPECT_EQ(SpecOf(applied), R"({"replicas":1})");
  EXPECT_EQ(Owners(applied), "one/Update@1 {\"f:spec\":{\".\":{},\"f:replicas\":{}}}");
}

TEST_F(ManagedFields, ListsMergeByKeyInTheOrderOfTheApplier) {
  struct Case {
    const char *live, *applied, *want;
  };
  for (const Case& c : {Case{R"(["a", "b"])", R"(["c"])", R"(["a","b","c"])"},
                        Case{R"(["a", "b", "c"])", R"(["c", "a"])", R"(["b","c","a"])"},
                        Case{R"(["a", "b", "c"])", R"(["x", "b", "y"])", R"(["a","x","b","c","y"])"}}) {
    const Json live = Update({}, Job(std::string(R"({"tags": )") + c.live + "}"), Updater("one"), kT1);
    const Json applied = Apply(live, Job(std::string(R"({"tags": )") + c.applied + "}"), "me");
    EXPECT_EQ(ToText(*applied.At({"spec", "tags"})), c.want) << c.applied;
  }
}

TEST_F(ManagedFields, MetadataMergesAsObjectMeta) {
  const Json live =
      Update({}, Job("{}", R"({"name": "j", "uid": "u", "finalizers": ["a"], "labels": {"x": "1"},
                                   "ownerReferences": [{"uid": "1", "name": "o"}]})"),
             Updater("one"), kT1);

  const Json applied = Apply(live, Job("{}", R"({"name": "j", "finalizers": ["b"], "labels": {"y": "2"},
                                       "ownerReferences": [{"uid": "2", "name": "p"}]})"),
                             "me");

  const Json& metadata = *applied.Find("metadata");
  EXPECT_EQ(*metadata.Find("uid"), Json("u"));
  EXPECT_EQ(ToText(*metadata.Find("finalizers")), R"(["a","b"])");
  EXPECT_EQ(ToText(*metadata.Find("labels")), R"({"x":"1","y":"2"})");
  EXPECT_EQ(metadata.Find("ownerReferences")->AsArray()->size(), 2U);
  EXPECT_EQ(Owners(applied).substr(0, Owners(applied).find('\n')),
            R"(me/Apply@2 {"f:metadata":{"f:finalizers":{"v:\"b\"":{}},"f:labels":{"f:y":{}},)"
            R"("f:ownerReferences":{"k:{\"uid\":\"2\"}":{}}},"f:spec":{}})");
}

TEST_F(ManagedFields, WithoutASchemaMapsMergeAndListsAreAtomic) {
  schema_ = nullptr;
  Json live = Update({}, Job(R"({"data": {"a": "1"}, "list": [{"name": "x"}]})"), Updater("one"), kT1);

  live = Apply(live, Job(R"({"data": {"b": "2"}})"), "me", kT2);
  EXPECT_EQ(SpecOf(live), R"({"data":{"a":"1","b":"2"},"list":[{"name":"x"}]})");
  ASSERT_EQ(ConflictsOf(live, Job(R"({"list": [{"name": "y"}]})"), "me").size(), 1U);
  EXPECT_EQ(conflicts_[0].field, ".spec.list");
  EXPECT_EQ(SpecOf(Apply(live, Job("{}"), "me", kT3)), R"({"data":{"a":"1"},"list":[{"name":"x"}]})");
}

TEST_F(ManagedFields, ItemsWithEqualKeysAreOneField) {
  const Json one = Update({}, Job(R"({"tags": ["a"]})"), Updater("one"), kT1);

  const Json two = Update(one, Job(R"({"tags": ["a", "a"]})"), Updater("two"), kT2);
  EXPECT_EQ(Owners(two),
            "one/Update@1 {\"f:spec\":{\".\":{},\"f:tags\":{}}}\n"
            "two/Update@2 {\"f:spec\":{\"f:tags\":{\"v:\\\"a\\\"\":{}}}}");
}

}  // namespace
}  // namespace kube::testing
