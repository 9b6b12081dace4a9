// SPDX-License-Identifier: Apache-2.0
#include "crds/types/gpu_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/crds/schema_walk.h"

namespace api {
namespace {

using kube::Json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const kube::Kind& TheKind() { return GpuQueue::ResourceKind(); }
Json SchemaAt(std::initializer_list<std::string_view> fields) { return SchemaOf(TheKind(), fields); }
Json DefaultOf(std::initializer_list<std::string_view> field) { return At(SchemaAt(field), {"default"}); }
Json QuotaSchema() { return At(SchemaAt({"spec", "quotas"}), {"items"}); }

constexpr char kTeam[] = R"({
  "apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"GpuQueue","metadata":{"name":"vision"},
  "spec":{"parent":"research","namespaceSelector":{"matchLabels":{"team":"vision"}},
          "quotas":[{"pool":"a100","guaranteed":16,"limit":32,"lendable":8,"weight":2},{"pool":"v100"}],
          "order":"StrictFifo","reclaim":"LowerPriority","stop":"Hold","minimumRuntimeSeconds":600,
          "maximumRuntimeSeconds":86400,"preemptionDelaySeconds":120,"preemptionNoticeSeconds":60}})";

std::shared_ptr<GpuQueue> Read(std::string_view text) {
  auto queue = kube::Decode<GpuQueue>(text);
  EXPECT_TRUE(queue) << queue.error().message();
  return queue ? *queue : std::make_shared<GpuQueue>();
}

TEST(GpuQueue, AManifestIsRead) {
  const GpuQueueSpec spec = Read(kTeam)->spec;
  EXPECT_EQ(spec.parent, "research");
  EXPECT_EQ(spec.namespace_selector.match_labels, kube::StringMap({{"team", "vision"}}));
  EXPECT_THAT(spec.quotas, ElementsAre(PoolQuota{"a100", 16, 32, 8, 2}, PoolQuota{"v100", {}, {}, {}, 1}));
  EXPECT_EQ(spec.order, QueueOrder::kStrictFifo);
  EXPECT_EQ(spec.reclaim, ReclaimPolicy::kLowerPriority);
  EXPECT_EQ(spec.stop, QueueStop::kHold);
  EXPECT_EQ(spec.minimum_runtime_seconds, 600);
  EXPECT_EQ(spec.maximum_runtime_seconds, 86400);
  EXPECT_EQ(spec.preemption_delay_seconds, 120);
  EXPECT_EQ(spec.preemption_notice_seconds, 60);
}

TEST(GpuQueue, NothingIsRequiredButTheNameOfAQuotasPool) {
  EXPECT_TRUE(At(SchemaAt({}), {"required"}).is_null());
  EXPECT_TRUE(At(SchemaAt({"spec"}), {"required"}).is_null());
  EXPECT_EQ(At(QuotaSchema(), {"required"}), Json::MakeArray({"pool"}));
}

TEST(GpuQueue, TheSchemasDefaultsAreThoseOfTheTypes) {
  const GpuQueueSpec spec;
  // Without this one no default below it would be filled in where there is no spec.
  EXPECT_EQ(DefaultOf({"spec"}), Json::MakeObject());
  EXPECT_EQ(DefaultOf({"spec", "order"}), Json("BestEffortFifo"));
  EXPECT_EQ(spec.order, QueueOrder::kBestEffortFifo);
  EXPECT_EQ(DefaultOf({"spec", "reclaim"}), Json("Any"));
  EXPECT_EQ(spec.reclaim, ReclaimPolicy::kAny);
  EXPECT_EQ(DefaultOf({"spec", "stop"}), Json("None"));
  EXPECT_EQ(spec.stop, QueueStop::kNone);
  EXPECT_EQ(DefaultOf({"spec", "minimumRuntimeSeconds"}), Json(spec.minimum_runtime_seconds));
  EXPECT_EQ(DefaultOf({"spec", "preemptionDelaySeconds"}), Json(spec.preemption_delay_seconds));
  EXPECT_EQ(DefaultOf({"spec", "preemptionNoticeSeconds"}), Json(spec.preemption_notice_seconds));
  EXPECT_EQ(At(QuotaSchema(), {"properties", "weight", "default"}), Json(PoolQuota().weight));
}

TEST(GpuQueue, WhatIsNotSetIsNotZero) {
  // A guarantee may be that of the queues below, a limit of 0 forbids the pool, and a runtime of 0 would be no time.
  for (const char* field : {"guaranteed", "limit", "lendable"}) {
    EXPECT_TRUE(At(QuotaSchema(), {"properties", field, "default"}).is_null()) << field;
    EXPECT_EQ(At(QuotaSchema(), {"properties", field, "minimum"}), Json(0)) << field;
  }
  EXPECT_TRUE(DefaultOf({"spec", "maximumRuntimeSeconds"}).is_null());
  EXPECT_EQ(At(SchemaAt({"spec", "maximumRuntimeSeconds"}), {"minimum"}), Json(1));
}

TEST(GpuQueue, ReasonsAreLegalInACondition) {
  const std::regex pascal("[A-Z][A-Za-z]+");
  for (const std::string_view name : EnumNames(GpuQueueReason::kPending)) {
    EXPECT_TRUE(std::regex_match(std::string(name), pascal)) << name;
  }
  EXPECT_EQ(ToString(GpuQueueReason::kPending), "Pending");
  EXPECT_EQ(ToString(GpuQueueReason::kParentCycle), "ParentCycle");
  EXPECT_EQ(ToString(GpuQueueReason::kNotPermitted), "NotPermitted");
  EXPECT_EQ(EnumNames(GpuQueueReason::kPending).size(), static_cast<std::size_t>(GpuQueueReason::kNotPermitted) + 1);
}

TEST(GpuQueueCrd, AQueueHasOneQuotaInAPool) {
  const Json quotas = SchemaAt({"spec", "quotas"});
  EXPECT_EQ(At(quotas, {"x-kubernetes-list-type"}), Json("map"));
  EXPECT_EQ(At(quotas, {"x-kubernetes-list-map-keys"}), Json::MakeArray({"pool"}));
}

TEST(GpuQueueCrd, AWeightIsAtLeastOne) { EXPECT_EQ(At(QuotaSchema(), {"properties", "weight", "minimum"}), Json(1)); }

TEST(GpuQueueCrd, RulesSayWhatToChange) {
  EXPECT_THAT(RulesOf(QuotaSchema()), AllOf(HasSubstr("limit must not be smaller than guaranteed: raise"),
                                            HasSubstr("lendable must not be larger than guaranteed: lower")));
  EXPECT_THAT(RulesOf(SchemaAt({})), AllOf(HasSubstr("at most " + std::to_string(kMaxQueueName) + " characters"),
                                           HasSubstr("spec.parent must not be the queue itself: name another")));
}

TEST(GpuQueueCrd, PatternsTakeTheNamesOfObjects) {
  for (const Json& field : {SchemaAt({"spec", "parent"}), At(QuotaSchema(), {"properties", "pool"})}) {
    const std::regex pattern(*At(field, {"pattern"}).AsString());
    for (const char* name : {"a", "a100", "team-a", "a100.80gb", "0"}) {
      EXPECT_TRUE(std::regex_search(name, pattern)) << name;
    }
    for (const char* name : {"A100", "team_a", "-a", "a-", "a/b", ".", ""}) {
      EXPECT_FALSE(std::regex_search(name, pattern)) << name;
    }
  }
}

TEST(GpuQueueCrd, ANewOneIsUnderWayToKstatus) {
  const Json condition = At(DefaultOf({"status"}), {"conditions"}).AsArray()->front();
  EXPECT_EQ(At(condition, {"type"}), Json("Reconciling"));
  EXPECT_EQ(At(condition, {"status"}), Json("True"));
  EXPECT_EQ(At(condition, {"reason"}), Json(ToString(GpuQueueReason::kPending)));
}

TEST(GpuQueueCrd, EveryListHasALimit) { EXPECT_THAT(FieldsThat(TheKind(), IsListWithoutLimit), IsEmpty()); }

}  // namespace
}  // namespace api
