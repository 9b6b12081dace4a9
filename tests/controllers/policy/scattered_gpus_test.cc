// SPDX-License-Identifier: Apache-2.0
// Gangs for which enough GPUs are idle or yield, but not on the nodes that they need.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/controllers/policy/queued_gangs_fixture.h"

namespace grus {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(QueuedGangs, IdleGpusThatAreTooScatteredKeepNobodyFromItsGuarantee) {
  PutNodes(ledger_, 2);
  SetUpQueues({Team("a", 8), Team("b", 0)});
  Run("b/one", "a", 5, 5);
  Run("b/two", "b", 3, 3);
  Put(Gang("a/whole-node", 1, 8));
  Plan(1000);
  ASSERT_THAT(queues_.yields(), SizeIs(1));
  EXPECT_TRUE(NoticeTo("b/two")) << "fewer stop on its node";
  Plan(1011);
  EXPECT_THAT(queues_.yields(), SizeIs(1)) << "nobody else is asked while these yield";
  End("b/two", 3, 0);
  Plan(1020);
  EXPECT_TRUE(IsPlaced("a/whole-node"));
}

TEST_F(QueuedGangs, RoomIsMadeWhereOthersMayYield) {
  PutNodes(ledger_, 3);
  SetUpQueues({Team("a", 8), Team("b", 0), Team("c", 16)});
  Run("c/own", "a", 2, 2);
  Run("b/borrows", "b", 4, 4);
  Run("c/also-own", "c", 3, 3);
  Put(Gang("a/whole-node", 1, 8));
  Plan(1000);
  EXPECT_TRUE(NoticeTo("b/borrows"));
  EXPECT_THAT(queues_.yields(), SizeIs(1));
}

TEST_F(QueuedGangs, ThatNodesAreFullStopsNobodyForAGangWithoutTheRight) {
  PutNodes(ledger_, 2);
  SetUpQueues({Team("a", 4), Team("b", 8)});
  Run("b/one", "a", 4, 4);
  Run("b/two", "b", 4, 4);
  Put(Gang("a/whole-node", 1, 8));
  Plan(1000);
  EXPECT_THAT(queues_.yields(), IsEmpty());
}

TEST_F(QueuedGangs, WhileSomeYieldForAClaimOthersUseWhatIsIdle) {
  PutNodes(ledger_, 2);
  SetUpQueues({Team("a", 8), Team("b", 0), Team("c", 8)});
  Run("b/one", "a", 8, 8);
  PodShape only_a = GpuPod(1);
  only_a.node_selector[kHostnameLabel] = "a";
  Put(Gang("a/pinned", 8, Shared(only_a)));
  Plan(1000);
  ASSERT_TRUE(NoticeTo("b/one"));
  Put("c/waits", 8);
  Plan(1001);
  EXPECT_TRUE(IsPlaced("c/waits"));
}

// Sixteen jobs of one GPU on two nodes: eight of one node make room for a pod of eight GPUs, eight of both do not.
TEST_F(QueuedGangs, JobsAreStoppedWhereThatMakesRoom) {
  PutNodes(ledger_, 2);
  SetUpQueues({Team("a", 8), Team("b", 0)});
  for (int i = 0; i < 16; ++i) {
    Run("b/" + std::to_string(i), i % 2 == 0 ? "a" : "b", 1, 1, {.attained_gpu_seconds = 100.0 * (i / 2)});
  }
  Put(Gang("a/large", 1, 8));
  Plan();
  ASSERT_THAT(queues_.yields(), SizeIs(8));
  for (const auto& [owner, notice] : std::map(queues_.yields())) End(owner, 1, 0);
  Plan(1031);
  EXPECT_TRUE(IsPlaced("a/large"));
}

}  // namespace
}  // namespace grus
