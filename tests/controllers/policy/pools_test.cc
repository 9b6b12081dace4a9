// SPDX-License-Identifier: Apache-2.0
// What pools decide of gangs that wait: each has its reservation, and its placement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/controllers/policy/queued_gangs_fixture.h"

namespace grus {
namespace {

using ::testing::IsEmpty;

// Two pools of one node each; on each a pod runs for ever, so that a gang of a whole node waits.
class TwoPools : public QueuedGangs {
 protected:
  TwoPools() {
    for (const char* pool : {"x", "y"}) {
      NodeState node = GpuNode(pool, 8);
      node.labels.emplace("pool", pool);
      ledger_.PutNode(std::move(node));
    }
    SetUpQueues({Team("a", 0), Team("b", 0)}, {PoolNamed("x"), PoolNamed("y")});
    Run("a/x-runs", "x", 1, 1);
    Run("b/y-runs", "y", 1, 1);
  }
  static PoolSpec PoolNamed(const std::string& name) { return {name, {{"pool", name}}, kGpuResource}; }
  void PutIn(const std::string& pool, const std::string& key, int members,
             std::optional<std::int64_t> runtime_seconds = {}) {
    queues_.PutHolder(key, {.comes_back = true});
    PodShape shape = GpuPod(1);
    shape.node_selector["pool"] = pool;
    GangDemand gang = Gang(key, members, Shared(shape));
    gang.waiting_since = ++since_;
    gang.runtime_seconds = runtime_seconds;
    planner_.Put(std::move(gang));
  }
  const GangStanding& Standing(const std::string& key) { return *planner_.StandingOf(key); }
};

TEST_F(TwoPools, EachPoolHasAReservation) {
  PutIn("x", "a/x-large", 8);
  PutIn("y", "b/y-large", 8);
  PutIn("y", "b/y-small", 1);
  Plan();
  EXPECT_TRUE(Standing("a/x-large").has_reservation);
  EXPECT_TRUE(Standing("b/y-large").has_reservation);
  EXPECT_FALSE(IsPlaced("b/y-small"));
  EXPECT_EQ(Standing("b/y-small").blocked_by, "b/y-large");
}

TEST_F(TwoPools, AGangThatWaitsInOnePoolHoldsUpNobodyInTheOther) {
  PutIn("x", "a/x-large", 8);
  PutIn("y", "b/y-small", 7);
  PutIn("x", "b/x-small", 1);
  Plan();
  EXPECT_TRUE(IsPlaced("b/y-small"));
  EXPECT_EQ(Standing("b/x-small").blocked_by, "a/x-large");
}

TEST_F(TwoPools, AReservationThatIsGivenUpLeavesThatOfTheOtherPool) {
  PutIn("x", "a/x-large", 8);
  PutIn("y", "b/y-large", 8);
  Plan(1000);
  planner_.Remove("a/x-large");
  Plan(1001);
  EXPECT_TRUE(Standing("b/y-large").has_reservation);
  EXPECT_EQ(ledger_.reserved().size(), 1U);
}

TEST_F(TwoPools, RoomIsLentToWhoEndsBeforeTheStartInThatPool) {
  planner_.SetEnd("a/x-runs", 1500);
  planner_.SetEnd("b/y-runs", 1100);
  PutIn("x", "a/x-large", 8);
  PutIn("y", "b/y-large", 8);
  PutIn("x", "a/x-short", 1, 300);
  PutIn("y", "a/y-short", 1, 300);
  Plan(1000);
  EXPECT_EQ(Standing("a/x-large").expected_start, 1500);
  EXPECT_EQ(Standing("b/y-large").expected_start, 1100);
  EXPECT_TRUE(IsPlaced("a/x-short"));
  EXPECT_FALSE(IsPlaced("a/y-short")) << "it would end after the start of the large one";
}

TEST_F(TwoPools, AGangWithoutGpusReservesBesideThoseWithGpus) {
  const auto cores = [](std::int64_t count) {
    PodShape shape = GpuPod(0);
    shape.request.milli_cpu = count * 1000;
    shape.node_selector["pool"] = "x";
    return shape;
  };
  ledger_.Bind("hog", "x", cores(20).request, "b/hog");
  PutIn("x", "a/x-large", 8);
  GangDemand wide = Gang("b/wide", 1, Shared(cores(50)));
  wide.waiting_since = 1;
  planner_.Put(wide);
  Plan(1000);
  EXPECT_TRUE(Standing("a/x-large").has_reservation);
  EXPECT_TRUE(Standing("b/wide").has_reservation);

  ledger_.Release("hog");
  ledger_.Release("a/x-runs0");
  Plan(1001);
  EXPECT_TRUE(IsPlaced("a/x-large"));
  EXPECT_TRUE(IsPlaced("b/wide"));
}

TEST_F(QueuedGangs, ASpreadPoolPlacesMembersOnTheFreestNodes) {
  PutNodes(ledger_, 3);
  Run("a/runs", "b", 4, 4);
  const auto set_up = [&](PoolPlacement placement) {
    PoolSpec all{"all", {}, kGpuResource, placement};
    SetUpQueues({Team("a", 0, {}, "all")}, {all});
  };
  set_up(PoolPlacement::kBinPack);
  Put("a/packed", 2);
  Plan();
  EXPECT_EQ(NodesOf(ledger_, "a/packed"), "bb");
  set_up(PoolPlacement::kSpread);
  Put("a/spread", 4);
  Plan();
  EXPECT_EQ(NodesOf(ledger_, "a/spread"), "aacc");
}

TEST_F(QueuedGangs, AnotherPlacementTakesNoNoticeBack) {
  PutNodes(ledger_, 1);
  const auto set_up = [&](PoolPlacement placement) {
    PoolSpec all{"all", {}, kGpuResource, placement};
    SetUpQueues({Team("a", 8, {}, "all"), Team("b", 0, {}, "all")}, {all});
  };
  set_up(PoolPlacement::kBinPack);
  Run("b/borrower", "a", 8, 8);
  Put("a/owner", 8);
  Plan(1000);
  ASSERT_TRUE(NoticeTo("b/borrower"));
  const std::int64_t by = NoticeTo("b/borrower")->by;
  set_up(PoolPlacement::kSpread);
  EXPECT_THAT(queues_.TakeTakenBack(), IsEmpty());
  Plan(1010);
  EXPECT_EQ(NoticeTo("b/borrower")->by, by);
}

}  // namespace
}  // namespace grus
