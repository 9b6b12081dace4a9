// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/paging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crds/types/part_memory.h"
#include "tests/kit/must.h"

namespace grus {
namespace {

using ::testing::HasSubstr;

const SharedGpu kGpu = {"GPU-0", 0, 10'000, true};

std::shared_ptr<const PagingPool> Pool(const std::string& name, std::int64_t created, std::int32_t percent,
                                       kube::StringMap labels = {{"gpus", "a100"}}) {
  PagingPool pool;
  pool.metadata.name = name;
  pool.metadata.creation_timestamp = kube::Time{kube::WallTime(std::chrono::seconds(created))};
  pool.spec.node_selector = std::move(labels);
  pool.spec.paged_memory_percent = percent;
  return std::make_shared<const PagingPool>(std::move(pool));
}

// An agent that is older than the CRD must not stop at what it does not know.
TEST(PagingPool, IsReadWhateverElseAPoolSays) {
  const auto read = kit::Must(kube::Decode<PagingPool>(
      R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"NodePool","metadata":{"name":"new"},
          "spec":{"nodeSelector":{"a":"b"},"placement":"FromTheFuture","pagedMemoryPercent":30,"more":[1]}})"));
  EXPECT_EQ(read->spec.paged_memory_percent, 30);
  EXPECT_EQ(read->spec.node_selector.Get("a"), "b");
}

TEST(AllowanceOf, IsThatOfThePoolThatHasTheNode) {
  const kube::StringMap labels = {{"gpus", "a100"}, {"zone", "x"}};
  EXPECT_EQ(AllowanceOf(labels, {}), PagingAllowance());
  EXPECT_EQ(AllowanceOf(labels, {Pool("elsewhere", 1, 50, {{"gpus", "h100"}})}), PagingAllowance());
  EXPECT_EQ(AllowanceOf(labels, {Pool("young", 9, 80), Pool("old", 5, 50)}),
            (PagingAllowance{.pool = "old", .percent = 50}));
  EXPECT_EQ(AllowanceOf(labels, {Pool("b", 5, 80), Pool("a", 5, 50)}), (PagingAllowance{.pool = "a", .percent = 50}));
  EXPECT_EQ(AllowanceOf(labels, {Pool("old", 5, 0), Pool("young", 9, 80)}), (PagingAllowance{.pool = "old"}));
}

HeldParts Asking(std::int64_t paged_mib, Enforcement way = Enforcement::kCooperative) {
  HeldParts part{.pod = {"a", "p"}, .container = "c", .paged_mib = paged_mib, .enforcement = way};
  for (int i = 0; i < 300; ++i) part.ids[PartResource::kMilli].push_back({"GPU-0", i});
  return part;
}

std::string WhyNot(const HeldParts& part, const PagingAllowance& allowance) {
  const kube::Status checked = CheckPaging(part, allowance, std::vector{kGpu});
  return checked ? "" : checked.error().message();
}

TEST(CheckPaging, UpToWhatThePoolAllowsOfThePart) {
  const PagingAllowance half = {.pool = "train", .percent = 50};
  EXPECT_EQ(WhyNot(Asking(1500), half), "");
  EXPECT_EQ(
      WhyNot(Asking(1501), half),
      "a/p, container c: it asks for 1501 MiB of over-subscribed memory (sharing.ai.centauruscloud.io/paged-mib), "
      "and NodePool train allows 50 % of its part of 3000 MiB: create the pod again with at most 1500, or raise "
      "spec.pagedMemoryPercent of the pool");
  HeldParts said = Asking(4000);
  said.memory_mib = 8000;
  EXPECT_EQ(WhyNot(said, half), "") << "its part is what its pod says";
  EXPECT_THAT(WhyNot(Asking(1), {}), HasSubstr("no NodePool selects this node: create the pod again without it"));
  EXPECT_THAT(WhyNot(Asking(1), {.pool = "train"}),
              HasSubstr("NodePool train allows none: create the pod again without it, or raise"));
}

TEST(CheckPaging, WhatIsNotKnownNowMayBeLater) {
  EXPECT_THAT(WhyNot(Asking(1), {.problem = "no rights"}), HasSubstr("so that it can start later: no rights"));
  const kube::Status unseen = CheckPaging(Asking(1), {.pool = "train", .percent = 50}, {});
  ASSERT_FALSE(unseen.ok());
  EXPECT_EQ(unseen.error().code(), kube::ErrorCode::kUnavailable);
  EXPECT_THAT(unseen.error().message(), HasSubstr("how much memory its GPU has is not known now"));
  HeldParts unknown = Asking(0);
  unknown.paged_mib.reset();
  EXPECT_EQ(WhyNot(unknown, {}), "") << "it keeps what it had";
}

TEST(CheckPaging, OnlyForWhoIsHeldByWhatPages) {
  for (const Enforcement way : {Enforcement::kNone, Enforcement::kMps}) {
    EXPECT_THAT(WhyNot(Asking(1, way), {.pool = "train", .percent = 50}),
                HasSubstr("given its part without cooperative limits, so that nothing pages: create the pod again "
                          "without it, or for a node that has the label sharing.ai.centauruscloud.io/enforcement="));
    EXPECT_EQ(WhyNot(Asking(0, way), {}), "") << "it does not ask";
  }
}

TEST(CheckPaging, WhatMakesNoSenseIsNotTakenForNothing) {
  EXPECT_THAT(WhyNot(Asking(api::kSenselessMemory), {.pool = "train", .percent = 400}),
              HasSubstr("expected MiB of memory beside its part, as a whole number from 1 on"));
}

}  // namespace
}  // namespace grus
