// SPDX-License-Identifier: Apache-2.0
#include "crds/types/pod_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/crds/crd_json.h"

namespace api {
namespace {

using kube::Json;
using ::testing::HasSubstr;

const kube::Kind& OfX() { return PodGroup::ResourceKind(); }
const kube::Kind& OfSigs() { return LegacyPodGroup::ResourceKind(); }

Json DefaultOf(std::initializer_list<std::string_view> field) {
  const Json schema = SchemaOf(OfX(), field);
  const Json* found = schema.Find("default");
  return found ? *found : Json();
}

// As the documentation of the coscheduling plugin has it.
constexpr char kUpstream[] = R"({
  "apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"nginx"},
  "spec":{"scheduleTimeoutSeconds":10,"minMember":3}})";

// As its controller leaves one.
constexpr char kUpstreamAtWork[] = R"({
  "apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"tf-smoke-gpu","namespace":"default"},
  "spec":{"minMember":17,"minResources":{"cpu":"34","memory":"128Gi","nvidia.com/gpu":8},"scheduleTimeoutSeconds":120},
  "status":{"phase":"Running","occupiedBy":"default/tf-smoke-gpu","running":16,"succeeded":1,"failed":0,
            "scheduleStartTime":"2023-01-02T03:04:05Z"}})";

constexpr char kUpstreamOfTheFirstVersions[] = R"({
  "apiVersion":"scheduling.sigs.k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"nginx"},
  "spec":{"scheduleTimeoutSeconds":10,"minMember":3},
  "status":{"phase":"PreScheduling","scheduled":2,"running":0,"succeeded":0,"failed":0,
            "scheduleStartTime":"2020-11-12T13:14:15Z","occupiedBy":"default/nginx"}})";

TEST(PodGroup, AManifestOfUpstreamIsRead) {
  const auto group = kube::Decode<PodGroup>(kUpstream);
  ASSERT_TRUE(group) << group.error().message();
  EXPECT_EQ((*group)->spec.min_member, 3);
  EXPECT_EQ((*group)->spec.schedule_timeout_seconds, 10);
}

TEST(PodGroup, AnObjectOfUpstreamIsReadWithItsStatus) {
  const auto group = kube::Decode<PodGroup>(kUpstreamAtWork);
  ASSERT_TRUE(group) << group.error().message();
  const PodGroupSpec& spec = (*group)->spec;
  EXPECT_EQ(spec.min_resources.at("nvidia.com/gpu").Value(), 8);
  EXPECT_EQ(spec.min_resources.at("memory").Value(), std::int64_t{128} << 30);
  const PodGroupStatus& status = (*group)->status;
  EXPECT_EQ(status.phase, "Running");
  EXPECT_EQ(status.occupied_by, "default/tf-smoke-gpu");
  EXPECT_EQ(status.running, 16);
  EXPECT_EQ(status.succeeded, 1);
  ASSERT_TRUE(status.schedule_start_time);
  EXPECT_EQ(kube::ToText(*status.schedule_start_time), "2023-01-02T03:04:05Z");
}

TEST(PodGroup, AnObjectOfUpstreamsFirstVersionsIsRead) {
  const auto group = kube::Decode<LegacyPodGroup>(kUpstreamOfTheFirstVersions);
  ASSERT_TRUE(group) << group.error().message();
  EXPECT_EQ((*group)->spec.min_member, 3);
  EXPECT_EQ((*group)->status.phase, "PreScheduling");
  EXPECT_EQ((*group)->status.scheduled, 2);
}

TEST(PodGroup, WhatUpstreamDoesNotKnowHasADefault) {
  const auto group = kube::Decode<PodGroup>(kUpstream);
  ASSERT_TRUE(group);
  EXPECT_EQ((*group)->spec.when_unschedulable, WhenUnschedulable::kWait);
  EXPECT_FALSE((*group)->spec.expected_runtime_seconds);
  EXPECT_TRUE((*group)->spec.min_resources.empty());
  EXPECT_EQ((*group)->status, PodGroupStatus());
}

TEST(PodGroup, TheSchemasDefaultsAreThoseOfTheTypes) {
  EXPECT_EQ(DefaultOf({"spec", "minMember"}), Json(PodGroupSpec().min_member));
  EXPECT_EQ(DefaultOf({"spec", "whenUnschedulable"}), Json("Wait"));
  // "60 if not set" is the controller's: a default here would show in every manifest of upstream.
  EXPECT_TRUE(DefaultOf({"spec", "scheduleTimeoutSeconds"}).is_null());
}

TEST(PodGroup, ANewOneIsUnderWayToKstatus) {
  const Json status = DefaultOf({"status"});
  EXPECT_EQ(At(status, {"phase"}), Json("Pending"));
  const Json conditions = At(status, {"conditions"});
  ASSERT_EQ(conditions.AsArray()->size(), 1U);
  EXPECT_EQ(At(conditions.AsArray()->front(), {"type"}), Json("Reconciling"));
  EXPECT_EQ(At(conditions.AsArray()->front(), {"status"}), Json("True"));
}

TEST(PodGroup, TheMinimumIsAtLeastOne) {
  for (const kube::Kind* kind : {&OfX(), &OfSigs()}) {
    EXPECT_EQ(At(SchemaOf(*kind, {"spec", "minMember"}), {"minimum"}), Json(1)) << kind->group;
    EXPECT_EQ(At(SchemaOf(*kind, {"spec", "scheduleTimeoutSeconds"}), {"minimum"}), Json(1)) << kind->group;
  }
}

TEST(PodGroupCrd, GroupsOfKubernetesSayWhetherTheyAreApproved) {
  // The API server refuses a CRD of a group that ends in ".k8s.io" without a word on that; x-k8s.io is free.
  const Json annotations = At(CrdOf(OfSigs()), {"metadata", "annotations"});
  const Json* approval = annotations.Find("api-approved.kubernetes.io");
  ASSERT_TRUE(approval);
  EXPECT_THAT(std::string(*approval->AsString()), HasSubstr("unapproved"));
}

TEST(PodGroupCrd, TheTwoGroupsHaveTheSameSchema) { EXPECT_EQ(SchemaOf(OfX(), {}), SchemaOf(OfSigs(), {})); }

}  // namespace
}  // namespace api
