// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/cluster_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "tests/kit/shapes.h"

namespace grus {
namespace {

using ::testing::ElementsAre;

int Copies(const ClusterLedger& ledger, const PodShape& shape, const std::string& owner = "me") {
  return ledger.RoomFor(owner, shape, 1000).copies;
}

TEST(ClusterLedger, CountsCopiesNodeByNode) {
  ClusterLedger ledger;
  ledger.PutNode(GpuNode("a", 8));
  ledger.PutNode(GpuNode("b", 7));

  EXPECT_EQ(Copies(ledger, GpuPod(1)), 15);
  EXPECT_EQ(Copies(ledger, GpuPod(4)), 3);  // Two and one: the last three GPUs of b do not join with a's.
  EXPECT_EQ(Copies(ledger, GpuPod(8)), 1);
  EXPECT_EQ(ledger.RoomFor("me", GpuPod(1), 3).copies, 3);
}

TEST(ClusterLedger, RoomTellsOfTheNodesThatCouldHoldTheShape) {
  ClusterLedger ledger;
  ledger.PutNode(GpuNode("a", 8));
  ledger.PutNode(GpuNode("b", 2));
  ledger.PutNode(GpuNode("cpu", 0));
  ledger.Bind("p", "a", GpuPod(5).request, "");

  const Room room = ledger.RoomFor("me", GpuPod(4), 10);
  EXPECT_EQ(room.copies, 0);
  EXPECT_EQ(room.nodes, 1);  // b is too small even when empty.
}

TEST(ClusterLedger, ABoundPodHoldsUntilItIsReleased) {
  ClusterLedger ledger;
  ledger.PutNode(GpuNode("a", 8));
  ledger.Bind("p", "a", GpuPod(5).request, "");
  EXPECT_EQ(Copies(ledger, GpuPod(1)), 3);

  ledger.Release("p");
  ledger.Release("p");  // Again: no effect.
  ledger.Release("never-was");
  EXPECT_EQ(Copies(ledger, GpuPod(1)), 8);
}

TEST(ClusterLedger, APlaceWhoseNodeAnothersPodTookMovesToTheNodeThatPodLeftFree) {
  ClusterLedger ledger;
  ledger.PutNode(GpuNode("a", 8));
  ledger.PutNode(GpuNode("b", 8));
  const ShapePtr whole = Shared(GpuPod(8));
  ledger.AddPlace("one", "a", whole);
  ledger.AddPlace("two", "b", whole);

  ledger.Bind("two-0", "a", whole->request, "two");  // The scheduler knows nothing of our places.

  EXPECT_EQ(NodesOf(ledger, "one"), "b");
  EXPECT_EQ(NodesOf(ledger, "two"), "");
  EXPECT_EQ(Copies(ledger, GpuPod(8)), 0) << "b is promised to the first";
  ledger.Bind("one-0", "b", whole->request, "one");
  EXPECT_EQ(NodesOf(ledger, "one"), "");
}

TEST(ClusterLedger, APlaceThatStillFitsStaysWhereItIs) {
  ClusterLedger ledger;
  ledger.PutNode(GpuNode("a", 8));
  ledger.PutNode(GpuNode("b", 8));
  const ShapePtr half = Shared(GpuPod(4));
  ledger.AddPlace("one", "a", half);
  ledger.AddPlace("two", "b", half);
  ledger.Bind("two-0", "a", half->request, "two");
  EXPECT_EQ(NodesOf(ledger, "one"), "a");
  EXPECT_EQ(Copies(ledger, GpuPod(4)), 2);
}

TEST(ClusterLedger, BindingAgainReplaces) {
  ClusterLedger ledger;
  ledger.PutNode(GpuNode("a", 8));
  ledger.PutNode(GpuNode("b", 8));
  ledger.Bind("p", "a", GpuPod(5).request, "");
  ledger.Bind("p", "b", GpuPod(2).request, "");
  EXPECT_EQ(Copies(ledger, GpuPod(1)), 14);
}

TEST(ClusterLedger, PodsMayComeBeforeTheirNodeAndOutliveIt) {
  ClusterLedger ledger;
  ledger.Bind("p", "a", GpuPod(5).request, "");
  EXPECT_FALSE(ledger.FindNode("a")->is_known);
  EXPECT_EQ(Copies(ledger, GpuPod(1)), 0);

  ledger.PutNode(GpuNode("a", 8));
  EXPECT_TRUE(ledger.FindNode("a")->is_known);
  EXPECT_EQ(Copies(ledger, GpuPod(1)), 3);

  ledger.RemoveNode("a");
  EXPECT_FALSE(ledger.FindNode("a")->is_known);
  EXPECT_EQ(Copies(ledger, GpuPod(1)), 0);

  ledger.PutNode(GpuNode("a", 8));  // Back, and the pod still holds its GPUs.
  EXPECT_EQ(Copies(ledger, GpuPod(1)), 3);
}

TEST(ClusterLedger, ANodeThatIsGoneIsForgottenWithTheLastPodOrPlaceOnIt) {
  ClusterLedger ledger;
  ledger.PutNode(GpuNode("a", 8));
  ledger.Bind("p0", "a", GpuPod(1).request, "");
  ledger.KeepPlaces("me", GpuPod(1), 2);
  ledger.RemoveNode("a");
  EXPECT_NE(ledger.FindNode("a"), nullptr);
  ledger.Release("p0");
  EXPECT_NE(ledger.FindNode("a"), nullptr);
  ledger.KeepPlaces("me", {}, 0);
  EXPECT_EQ(ledger.FindNode("a"), nullptr);

  ledger.PutNode(GpuNode("b", 8));
  ledger.RemoveNode("b");
  EXPECT_EQ(ledger.FindNode("b"), nullptr);
}

TEST(ClusterLedger, APlaceIsRoomForItsOwnerAndForNobodyElse) {
  ClusterLedger ledger;
  ledger.PutNode(GpuNode("a", 8));
  EXPECT_EQ(ledger.KeepPlaces("me", GpuPod(1), 6), 6);

  EXPECT_EQ(Copies(ledger, GpuPod(1), "me"), 8);
  EXPECT_EQ(Copies(ledger, GpuPod(1), "other"), 2);
}

TEST(ClusterLedger, NewPlacesReplaceTheEarlierOnesAndAreCutToWhatFits) {
  ClusterLedger ledger;
  ledger.PutNode(GpuNode("a", 8));
  ledger.PutNode(GpuNode("b", 8));
  EXPECT_EQ(ledger.KeepPlaces("me", GpuPod(1), 100), 16);
  EXPECT_EQ(Copies(ledger, GpuPod(1), "other"), 0);

  EXPECT_EQ(ledger.KeepPlaces("me", GpuPod(4), 2), 2);
  EXPECT_EQ(Copies(ledger, GpuPod(1), "other"), 8);

  EXPECT_EQ(ledger.KeepPlaces("me", {}, 0), 0);
  EXPECT_EQ(Copies(ledger, GpuPod(1), "other"), 16);
}

TEST(ClusterLedger, PlacesAreOnFewNodesFirstOnThoseWhereTheOwnerIs) {
  ClusterLedger ledger;
  for (const char* name : {"a", "b", "c", "d"}) ledger.PutNode(GpuNode(name, 8));
  ledger.Bind("others", "b", GpuPod(4).request, "other");
  ledger.Bind("own", "c", GpuPod(6).request, "me");
  const auto nodes = [&] {
    std::vector<std::string> names;
    for (const Place& place : ledger.PlacesOf("me")) names.push_back(place.node);
    return names;
  };
  ledger.KeepPlaces("me", GpuPod(1), 6);
  EXPECT_THAT(nodes(), ElementsAre("c", "c", "b", "b", "b", "b")) << "the least room that is enough for the rest";
  ledger.KeepPlaces("me", GpuPod(1), 7);
  EXPECT_THAT(nodes(), ElementsAre("c", "c", "a", "a", "a", "a", "a"));
}

TEST(ClusterLedger, TheSamePlacesAgainStayWhereTheyAre) {
  ClusterLedger ledger;
  ledger.PutNode(GpuNode("b", 8));
  EXPECT_EQ(ledger.KeepPlaces("me", GpuPod(1), 8), 8);
  ledger.PutNode(GpuNode("a", 8));  // First in order, and free.
  EXPECT_EQ(ledger.KeepPlaces("me", GpuPod(1), 8), 8);
  EXPECT_EQ(Copies(ledger, GpuPod(8), "other"), 1);

  PodShape picky = GpuPod(1);
  picky.node_selector["pool"] = "none";
  EXPECT_EQ(ledger.KeepPlaces("me", picky, 8), 0) << "as many, but another shape: placed anew";
}

TEST(ClusterLedger, ABindEndsAPlaceWhereverThePodIsBound) {
  for (const char* node : {"a", "b"}) {
    ClusterLedger ledger;
    ledger.PutNode(GpuNode("a", 8));
    ledger.PutNode(GpuNode("b", 8));
    ledger.KeepPlaces("me", GpuPod(1), 2);  // Both on a.

    ledger.Bind("p0", node, GpuPod(1).request, "me");
    EXPECT_EQ(Copies(ledger, GpuPod(1), "other"), 14) << node;
    EXPECT_EQ(Copies(ledger, GpuPod(1), "me"), 15) << node;

    ledger.Bind("p0", node, GpuPod(1).request, "me");  // A later event of the same pod ends no second place.
    EXPECT_EQ(Copies(ledger, GpuPod(1), "other"), 14) << node;

    ledger.Bind("p1", node, GpuPod(1).request, "me");
    ledger.Bind("p2", node, GpuPod(1).request, "me");  // One more than planned.
    EXPECT_EQ(Copies(ledger, GpuPod(1), "other"), 13) << node;
    EXPECT_EQ(Copies(ledger, GpuPod(1), "me"), 13) << node;
  }
}

// Which nodes a pod may use is tested in node_match_test.cc.
TEST(ClusterLedger, CordonedTaintedAndForeignNodesHoldNothingNew) {
  struct Case {
    const char* rule;
    void (*change)(NodeState&, PodShape&);
    bool accepts;
  };
  const Case kCases[] = {
      {"plain", [](NodeState&, PodShape&) {}, true},
      {"cordoned", [](NodeState& n, PodShape&) { n.is_cordoned = true; }, false},
      {"tainted",
       [](NodeState& n, PodShape&) {
         n.taints.push_back({"k", "v", "NoSchedule"});
       },
       false},
      {"of another kind", [](NodeState&, PodShape& p) { p.node_selector["gpu"] = "a100"; }, false},
  };
  for (const Case& c : kCases) {
    ClusterLedger ledger;
    NodeState node = GpuNode("a", 8);
    PodShape shape = GpuPod(1);
    c.change(node, shape);
    ledger.PutNode(node);

    EXPECT_EQ(Copies(ledger, shape), c.accepts ? 8 : 0) << c.rule;
    EXPECT_EQ(ledger.RoomFor("me", shape, 10).nodes, c.accepts ? 1 : 0) << c.rule;
    EXPECT_EQ(ledger.KeepPlaces("me", shape, 3), c.accepts ? 3 : 0) << c.rule;
  }
}

TEST(Toleration, MatchesAsInTheApi) {
  const kube::Taint kTaint{"gpu", "a100", "NoSchedule"};
  const std::pair<kube::Toleration, bool> kCases[] = {
      {{"gpu", "Equal", "a100", "NoSchedule"}, true},
      {{"gpu", "", "a100", "NoSchedule"}, true},
      {{"gpu", "Equal", "a100", ""}, true},
      {{"gpu", "Equal", "v100", ""}, false},
      {{"gpu", "Exists", "", "NoSchedule"}, true},
      {{"gpu", "Exists", "", "NoExecute"}, false},
      {{"", "Exists", "", ""}, true},
      {{"", "Exists", "", "NoExecute"}, false},
      {{"", "Equal", "", ""}, false},
      {{"tpu", "Exists", "", ""}, false},
  };
  for (const auto& [toleration, tolerates] : kCases) {
    EXPECT_EQ(Tolerates(toleration, kTaint), tolerates)
        << toleration.key << " " << toleration.op << " " << toleration.value << " " << toleration.effect;
  }
}

// Whatever happens in whatever order, when all pods and places are gone all room is back.
TEST(ClusterLedger, NothingIsLostOverAnyHistory) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](unsigned n) { return static_cast<int>(random() % n); };
    ClusterLedger ledger;
    for (int i = 0; i < 60; ++i) {
      const std::string node(1, static_cast<char>('a' + below(3)));
      const std::string pod = std::string("p").append(std::to_string(below(12)));
      const std::string owner = std::string("o").append(std::to_string(below(3)));
      switch (below(6)) {
        case 0: ledger.PutNode(GpuNode(node, 8)); break;
        case 1: ledger.RemoveNode(node); break;
        case 2: ledger.Release(pod); break;
        case 3: ledger.KeepPlaces(owner, GpuPod(1 + below(3)), below(10)); break;
        default: ledger.Bind(pod, node, GpuPod(1 + below(2)).request, below(4) == 0 ? "" : owner); break;
      }
      const Room room = ledger.RoomFor("o0", GpuPod(1), 1000);
      ASSERT_LE(room.copies, ledger.RoomFor("o0", GpuPod(1), 1000, &ledger.reserved()).copies)
          << "what is kept is not room";
    }
    for (int pod = 0; pod < 12; ++pod) ledger.Release("p" + std::to_string(pod));
    for (int owner = 0; owner < 3; ++owner) ledger.KeepPlaces("o" + std::to_string(owner), {}, 0);
    for (const char* node : {"a", "b", "c"}) ledger.PutNode(GpuNode(node, 8));
    EXPECT_EQ(Copies(ledger, GpuPod(1)), 24);
  }
}

TEST(ClusterLedger, PlacesOnKnownNodesEndOneByOne) {
  ClusterLedger ledger;
  PutNodes(ledger, 2);
  const ShapePtr shape = Shared(GpuPod(2));
  ledger.AddPlace("t/g", "a", shape);
  ledger.AddPlace("t/g", "b", shape);
  ledger.AddPlace("t/g", "a", shape);
  EXPECT_EQ(NodesOf(ledger, "t/g"), "aba");
  EXPECT_EQ(Copies(ledger, GpuPod(1)), 10);

  ledger.Bind("p0", "b", shape->request, "t/g");  // The place on the same node ends.
  EXPECT_EQ(NodesOf(ledger, "t/g"), "aa");
  ledger.Bind("p1", "b", shape->request, "t/g");  // There is none left: any.
  EXPECT_EQ(NodesOf(ledger, "t/g"), "a");
  ledger.DropPlaces("t/g");
  EXPECT_EQ(NodesOf(ledger, "t/g"), "");
  EXPECT_TRUE(ledger.HoldsAnything("t/g"));
  ledger.DropPlaces("never-was");
  EXPECT_EQ(Copies(ledger, GpuPod(1)), 12);

  ledger.Release("p0");
  ledger.Release("p1");
  EXPECT_FALSE(ledger.HoldsAnything("t/g"));
}

TEST(ClusterLedger, OfSeveralPlacesTheOneEndsThatAsksForAsMuch) {
  ClusterLedger ledger;
  PutNodes(ledger, 2);
  const ShapePtr small = Shared(GpuPod(1)), large = Shared(GpuPod(4));
  ledger.AddPlace("t/g", "a", small);
  ledger.AddPlace("t/g", "a", large);
  ledger.AddPlace("t/g", "b", large);

  ledger.Bind("p0", "a", large->request, "t/g");
  EXPECT_EQ(NodesOf(ledger, "t/g"), "ab");
  ledger.Bind("p1", "a", large->request, "t/g");  // They swap: the small one's place is where this one's was.
  EXPECT_EQ(ledger.PlacesOf("t/g"), (std::vector<Place>{{"b", small}}));
  ledger.Bind("p2", "a", GpuPod(2).request, "t/g");  // Changed on its way, by a webhook.
  EXPECT_EQ(NodesOf(ledger, "t/g"), "");
}

TEST(ClusterLedger, ABoundPodKeepsTheShapeOfItsPlace) {
  ClusterLedger ledger;
  PutNodes(ledger, 1);
  PodShape guard = GpuPod(1);
  guard.anti_affinity.resize(1);
  ledger.AddPlace("t/g", "a", Shared(guard));
  EXPECT_EQ(ledger.guards().size(), 1U);
  ledger.Bind("p", "a", guard.request, "t/g");
  EXPECT_EQ(ledger.guards().size(), 1U);
  ledger.Release("p");
  EXPECT_TRUE(ledger.guards().empty());
}

TEST(ClusterLedger, AReservationIsNoRoomInTheIndexAndNoHolding) {
  ClusterLedger ledger;
  PutNodes(ledger, 2);
  const auto index = ledger.IndexFor(GpuPod(1));
  const std::uint64_t version = ledger.version();
  ledger.Reserve({{ledger.FindNode("a")->id, GpuPod(6).request}});
  EXPECT_EQ(index->copies(), 10);
  EXPECT_EQ(ledger.version(), version);
  ledger.Reserve({{ledger.FindNode("b")->id, GpuPod(1).request}});
  EXPECT_EQ(index->copies(), 15);
  ledger.Reserve({});
  EXPECT_EQ(index->copies(), 16);
}

// After any history an index that lived through it says the same as a new one, and as the nodes themselves.
TEST(ClusterLedger, AnIndexStaysTrueOverAnyHistory) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](unsigned n) { return static_cast<int>(random() % n); };
    ClusterLedger ledger;
    PodShape picky = GpuPod(2);
    picky.node_selector = {{"gpu", "a100"}};
    const auto old = ledger.IndexFor(picky);
    for (int i = 0; i < 80; ++i) {
      const std::string name(1, static_cast<char>('a' + below(5)));
      const std::string pod = std::string("p").append(std::to_string(below(12)));
      const std::string owner = std::string("o").append(std::to_string(below(4)));
      NodeState node = GpuNode(name, 1 + below(8));
      if (below(2) == 0) node.labels["gpu"] = "a100";
      switch (below(7)) {
        case 0:
        case 1: ledger.PutNode(node); break;
        case 2: ledger.RemoveNode(name); break;
        case 3: ledger.Release(pod); break;
        case 4: ledger.AddPlace(owner, name, Shared(GpuPod(1 + below(3)))); break;
        case 5: ledger.DropPlaces(owner); break;
        default: ledger.Bind(pod, name, GpuPod(1 + below(3)).request, owner); break;
      }
      if (const LedgerNode* at = ledger.FindNode(name); at && below(4) == 0) {
        ledger.Reserve({{at->id, GpuPod(1).request}});
      }
    }
    PodShape twin = picky;
    twin.tolerations = {{"x", "Exists", "", ""}};  // Accepted where the other is, but an index of its own.
    const auto fresh = ledger.IndexFor(twin);
    EXPECT_EQ(old->copies(), fresh->copies());
    EXPECT_EQ(old->capacity(), fresh->capacity());
    EXPECT_EQ(old->eligible_nodes(), fresh->eligible_nodes());
    EXPECT_TRUE(old->amounts()[0].free == fresh->amounts()[0].free);
    EXPECT_TRUE(old->amounts()[0].total == fresh->amounts()[0].total);
    const auto held = old->LargestUses(9), held_now = fresh->LargestUses(9);
    ASSERT_EQ(held.size(), held_now.size());
    for (std::size_t i = 0; i < held.size(); ++i) EXPECT_EQ(held[i].devices, held_now[i].devices);

    ledger.Reserve({});
    std::int64_t copies = 0;
    for (NodeId id = 0; id < ledger.node_limit(); ++id) {
      const LedgerNode* node = ledger.NodeAt(id);
      if (!node || !node->is_known || !Accepts(node->state, picky)) continue;
      copies += CopiesThatFit(node->state.allocatable, node->used, picky.request, 1000);
    }
    EXPECT_EQ(old->copies(), copies);
  }
}

}  // namespace
}  // namespace grus
