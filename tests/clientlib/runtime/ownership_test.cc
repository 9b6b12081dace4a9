// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/ownership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clientlib/model/apps_v1.h"
#include "clientlib/model/core_v1.h"

namespace kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ObjectMeta Child(std::vector<OwnerReference> owners) {
  ObjectMeta child;
  child.name = "child";
  child.ns = "team-a";
  child.owner_references = std::move(owners);
  return child;
}

ConstObject Holding(ObjectMeta metadata) {
  auto object = std::make_shared<ConfigMap>();
  object->metadata = std::move(metadata);
  return object;
}

ObjectMeta Owner(std::string ns = "team-a") {
  ObjectMeta owner;
  owner.name = "bert";
  owner.ns = std::move(ns);
  owner.uid = "u-1";
  return owner;
}

Json Map(const char* ns, Json references = Json()) {
  Json map = Json::MakeObject({{"kind", "ConfigMap"}, {"metadata", Json::MakeObject({{"name", "map"}})}});
  if (ns != nullptr) map["metadata"]["namespace"] = ns;
  if (!references.is_null()) map["metadata"]["ownerReferences"] = std::move(references);
  return map;
}

const Kind& kSets = KindOf<StatefulSet>();

TEST(ControllerKey, Q8GroupAndKindMatchAndTheVersionNeedNot) {
  struct Case {
    const char *api_version, *kind;
    bool want;
  };
  for (const Case& c : {Case{"apps/v1", "StatefulSet", true}, Case{"apps/v1beta2", "StatefulSet", true},
                        Case{"apps/v1", "Deployment", false}, Case{"example.com/v1", "StatefulSet", false},
                        Case{"v1", "StatefulSet", false}, Case{"apps", "StatefulSet", false}}) {
    const auto key = ControllerKey(kSets, Child({{c.api_version, c.kind, "bert", "u-1", true}}));
    EXPECT_EQ(key.has_value(), c.want) << c.api_version << " " << c.kind;
    EXPECT_EQ(key.value_or(ObjectKey{"team-a", "bert"}), (ObjectKey{"team-a", "bert"}));
  }
}

TEST(ControllerKey, Q8OnlyTheReferenceWithControllerTrueCounts) {
  const OwnerReference other{"apps/v1", "StatefulSet", "other", "u-2", false};
  const OwnerReference unsaid{"apps/v1", "StatefulSet", "unsaid", "u-3"};
  const OwnerReference controller{"apps/v1", "StatefulSet", "bert", "u-1", true};
  EXPECT_EQ(ControllerKey(kSets, Child({other, unsaid})), std::nullopt);
  EXPECT_EQ(ControllerKey(kSets, Child({other, unsaid, controller})), (ObjectKey{"team-a", "bert"}));
}

TEST(ControllerKey, Q8AClusterScopedOwnerHasNoNamespace) {
  EXPECT_EQ(ControllerKey(KindOf<Node>(), Child({{"v1", "Node", "n-1", "u-1", true}})), (ObjectKey{"", "n-1"}));
}

TEST(ControllerKeys, Q8OldAndNewOwnersAreToldEachOnce) {
  const ConstObject first = Holding(Child({{"apps/v1", "StatefulSet", "first", "u-1", true}}));
  const ConstObject second = Holding(Child({{"apps/v1", "StatefulSet", "second", "u-2", true}}));
  const ConstObject orphan = Holding(Child({}));
  const ObjectKey a{"team-a", "first"}, b{"team-a", "second"};
  EXPECT_THAT(ControllerKeys(kSets, {first, second}), ElementsAre(a, b));
  EXPECT_THAT(ControllerKeys(kSets, {first, first}), ElementsAre(a));
  EXPECT_THAT(ControllerKeys(kSets, {first, orphan}), ElementsAre(a));
  EXPECT_THAT(ControllerKeys(kSets, {orphan, second}), ElementsAre(b));
  EXPECT_THAT(ControllerKeys(kSets, {first, nullptr}), ElementsAre(a));
  EXPECT_THAT(ControllerKeys(kSets, {nullptr, second}), ElementsAre(b));
  EXPECT_THAT(ControllerKeys(kSets, {orphan, nullptr}), IsEmpty());
}

TEST(SetControllerReference, F3AddsTheReferenceBesideOthers) {
  Json map = Map("team-a", *ParseJson(R"([{"apiVersion":"v1","kind":"Node","name":"n-1","uid":"u-9"}])"));

  ASSERT_TRUE(SetControllerReference(kSets, Owner(), map));

  EXPECT_EQ(*map.At({"metadata", "ownerReferences"}),
            *ParseJson(R"([{"apiVersion":"v1","kind":"Node","name":"n-1","uid":"u-9"},
                           {"apiVersion":"apps/v1","kind":"StatefulSet","name":"bert","uid":"u-1",
                            "controller":true,"blockOwnerDeletion":true}])"));
}

TEST(SetControllerReference, F3AnOlderVersionOfTheSameOwnerIsReplaced) {
  for (const char* old :
       {R"([{"apiVersion":"apps/v1beta1","kind":"StatefulSet","name":"bert","uid":"u-1","controller":true}])",
        R"([{"apiVersion":"apps/v1","kind":"StatefulSet","name":"bert","uid":"u-0","controller":true}])",
        R"([{"apiVersion":"apps/v1","kind":"StatefulSet","name":"bert","uid":"u-1"}])"}) {
    Json map = Map("team-a", *ParseJson(old));
    ASSERT_TRUE(SetControllerReference(kSets, Owner(), map)) << old;
    EXPECT_EQ(*map.At({"metadata", "ownerReferences"}),
              *ParseJson(R"([{"apiVersion":"apps/v1","kind":"StatefulSet","name":"bert","uid":"u-1",
                              "controller":true,"blockOwnerDeletion":true}])"))
        << old;
  }
}

TEST(SetControllerReference, F3RefusesAnObjectThatAnotherOneControls) {
  for (const char* other :
       {R"([{"apiVersion":"apps/v1","kind":"StatefulSet","name":"gpt","uid":"u-2","controller":true}])",
        R"([{"apiVersion":"example.com/v1","kind":"StatefulSet","name":"bert","uid":"u-3","controller":true}])",
        R"([{"apiVersion":"apps/v1","kind":"Deployment","name":"bert","uid":"u-4","controller":true}])"}) {
    Json map = Map("team-a", *ParseJson(other));
    const Json before = map;
    const Status refused = SetControllerReference(kSets, Owner(), map);
    ASSERT_FALSE(refused) << other;
    EXPECT_EQ(refused.error().code(), ErrorCode::kAlreadyExists);
    EXPECT_THAT(refused.error().message(), HasSubstr("ConfigMap map: it is controlled by"));
    EXPECT_EQ(map, before);
  }
}

TEST(SetControllerReference, F3RefusesOwnersThatTheGarbageCollectorWouldNotFind) {
  struct Case {
    const char* owner_ns;
    const char* child_ns;
    bool want;
  };
  for (const Case& c : {Case{"team-a", "team-a", true}, Case{"team-a", "team-b", false}, Case{"team-a", nullptr, false},
                        Case{"", "team-a", true}, Case{"", nullptr, true}}) {
    Json map = Map(c.child_ns);
    const Status done = SetControllerReference(kSets, Owner(c.owner_ns), map);
    EXPECT_EQ(done.ok(), c.want) << c.owner_ns << " " << (c.child_ns ? c.child_ns : "(none)");
    EXPECT_TRUE(done || done.error().code() == ErrorCode::kInvalidArgument);
  }
  Json map = Map("team-a");
  ObjectMeta unborn = Owner();
  unborn.uid.clear();
  EXPECT_FALSE(SetControllerReference(kSets, unborn, map));
}

}  // namespace
}  // namespace kube
