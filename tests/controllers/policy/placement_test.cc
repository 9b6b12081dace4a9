// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/kit/shapes.h"

namespace grus {
namespace {

// The names of the nodes, sorted; "-" if there is no place.
std::string PlacesOf(ClusterLedger& ledger, const std::vector<ShapePtr>& members, int needed,
                     PoolPlacement placement = PoolPlacement::kBinPack) {
  const std::vector<GangPart> parts = PartsOf(ledger, members);
  GangToPlace gang;
  gang.members = &members;
  gang.parts = &parts;
  gang.needed = needed;
  gang.placement = placement;
  gang.is_constrained = HasConstraints(ledger, members);
  std::string names;
  for (const NodeId id : PlaceGang(ledger, gang).nodes) names += ledger.NodeAt(id)->state.name;
  std::sort(names.begin(), names.end());
  return names.empty() ? "-" : names;
}

std::string PlacesOf(ClusterLedger& ledger, int members, std::int64_t gpus) {
  return PlacesOf(ledger, std::vector<ShapePtr>(static_cast<std::size_t>(members), Shared(GpuPod(gpus))), members);
}

TEST(Placement, FillsTheFullestNodesAndKeepsWholeOnes) {
  struct Case {
    const char* rule;
    std::vector<int> used;  // GPUs on node a, b, ... of 8 each.
    int members, gpus;
    const char* want;
  };
  const Case kCases[] = {
      {"the fullest that holds one", {0, 4, 6, 7}, 1, 1, "d"},
      {"the fullest that holds all of them", {0, 4, 6, 7}, 2, 1, "cc"},
      {"few nodes", {0, 4, 6, 7}, 4, 1, "bbbb"},
      {"a whole node stays whole if a few others do", {0, 4, 6, 7}, 6, 1, "bbbbcc"},
      {"a whole node if nothing else does", {0, 4, 6, 7}, 8, 1, "aaaaaaaa"},
      {"whole nodes for who fills them", {0, 0, 4, 4}, 2, 8, "ab"},
      {"the rest of a large gang goes to a partly used node", {0, 4, 6, 7}, 10, 1, "aaaaaaaacc"},
      {"no room", {0, 4, 6, 7}, 2, 8, "-"},
      {"room for copies, not for their sum", {5, 5, 5}, 4, 2, "-"},
      {"two GPUs at a time", {5, 5, 6}, 3, 2, "abc"},
  };
  for (const Case& c : kCases) {
    ClusterLedger ledger;
    PutNodes(ledger, static_cast<int>(c.used.size()));
    for (std::size_t i = 0; i < c.used.size(); ++i) {
      const std::string node(1, static_cast<char>('a' + i));
      if (c.used[i] > 0) ledger.Bind(node, node, GpuPod(c.used[i]).request, "");
    }
    EXPECT_EQ(PlacesOf(ledger, c.members, c.gpus), c.want) << c.rule;
  }
}

TEST(Placement, SpreadPutsEachMemberOnTheNodeOfWhichMostIsFree) {
  struct Case {
    const char* rule;
    std::vector<int> sizes, used;  // GPUs of node a, b, ... in all, and taken.
    int members, gpus;
    const char* want;
  };
  const Case kCases[] = {
      {"one on each", {8, 8, 8, 8}, {0, 0, 0, 0}, 4, 1, "abcd"},
      {"evenly", {8, 8}, {0, 0}, 6, 1, "aaabbb"},
      {"the least used", {8, 8, 8}, {4, 0, 2}, 1, 1, "b"},
      {"until all are used alike", {8, 8, 8}, {4, 0, 2}, 6, 1, "bbbbcc"},
      {"the largest free part, not the most GPUs", {16, 4}, {8, 0}, 2, 1, "bb"},
      {"then those that are left", {8, 8}, {6, 7}, 3, 1, "aab"},
      {"two GPUs at a time", {8, 8, 8}, {5, 5, 6}, 3, 2, "abc"},
      {"of copies that fit alike, where more is free", {8, 8}, {3, 1}, 1, 4, "b"},
      {"no room", {8, 8}, {0, 1}, 2, 8, "-"},
  };
  for (const Case& c : kCases) {
    ClusterLedger ledger;
    for (std::size_t i = 0; i < c.sizes.size(); ++i) {
      const std::string node(1, static_cast<char>('a' + i));
      ledger.PutNode(GpuNode(node, c.sizes[i]));
      if (c.used[i] > 0) ledger.Bind(node, node, GpuPod(c.used[i]).request, "");
    }
    const std::vector<ShapePtr> members(static_cast<std::size_t>(c.members), Shared(GpuPod(c.gpus)));
    EXPECT_EQ(PlacesOf(ledger, members, c.members, PoolPlacement::kSpread), c.want) << c.rule;
  }
}

TEST(Placement, SpreadHoldsForMembersWithConstraintsToo) {
  ClusterLedger ledger;
  PutNodes(ledger, 3);
  ledger.Bind("p", "b", GpuPod(4).request, "");
  PodShape shape = GpuPod(1);
  shape.host_ports = {{80, "", ""}};
  shape.ns = "t";
  EXPECT_EQ(PlacesOf(ledger, {Shared(shape), Shared(shape)}, 2, PoolPlacement::kSpread), "ac");

  PodShape together = GpuPod(1);
  together.labels = {{"app", "train"}};
  kube::PodAffinityTerm& term = together.affinity.emplace_back();
  term.label_selector = kube::LabelSelector{{{"app", "train"}}, {}};
  term.topology_key = "zone";
  for (const char* name : {"a", "b", "c"}) {
    NodeState node = GpuNode(name, 8);
    node.labels.emplace("zone", "one");
    ledger.PutNode(std::move(node));
  }
  EXPECT_EQ(PlacesOf(ledger, std::vector<ShapePtr>(4, Shared(together)), 4, PoolPlacement::kSpread), "aacc");
}

TEST(Placement, PodsWithoutGpusAreNotSpread) {
  ClusterLedger ledger;
  PutNodes(ledger, 2, 0);
  EXPECT_EQ(PlacesOf(ledger, std::vector<ShapePtr>(2, Shared(GpuPod(0))), 2, PoolPlacement::kSpread), "aa");
}

// As for packing: what fits by counting is found.
TEST(Placement, SpreadFindsARoomThatIsThere) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    ClusterLedger ledger;
    const int nodes = 1 + below(12), gpus = 1 + below(4), members = 1 + below(20);
    int room = 0;
    for (int i = 0; i < nodes; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      const int used = below(9);
      ledger.PutNode(GpuNode(name, 8));
      if (used > 0) ledger.Bind(name, name, GpuPod(used).request, "");
      room += (8 - used) / gpus;
    }
    const std::vector<ShapePtr> shapes(static_cast<std::size_t>(members), Shared(GpuPod(gpus)));
    const std::string places = PlacesOf(ledger, shapes, members, PoolPlacement::kSpread);
    EXPECT_EQ(places.size(), members <= room ? static_cast<std::size_t>(members) : 1U) << places;
    EXPECT_EQ(places == "-", members > room);
  }
}

TEST(Placement, PodsWithoutGpusStayAwayFromNodesWithGpus) {
  ClusterLedger ledger;
  ledger.PutNode(GpuNode("g", 8));
  ledger.PutNode(GpuNode("c", 0));
  EXPECT_EQ(PlacesOf(ledger, 2, 0), "cc");
  EXPECT_EQ(PlacesOf(ledger, 65, 0), std::string(64, 'c') + "g");
}

TEST(Placement, SeveralKindsOfMembersShareNodes) {
  ClusterLedger ledger;
  PutNodes(ledger, 2);
  std::vector<ShapePtr> members(3, Shared(GpuPod(4)));
  members.insert(members.begin(), Shared(GpuPod(2)));
  EXPECT_EQ(PlacesOf(ledger, members, 4).size(), 4U);

  members.push_back(Shared(GpuPod(4)));  // 18 of 16 GPUs.
  EXPECT_EQ(PlacesOf(ledger, members, 5), "-");
  EXPECT_EQ(PlacesOf(ledger, members, 3).size(), 4U) << "the first four, as they are enough";
}

// A gang of one shape fits exactly if first fit finds a place for it, and never where there is none.
TEST(Placement, OneShapeFitsIfFirstFitSaysSo) {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    ClusterLedger ledger;
    const int nodes = 1 + below(12), gpus = 1 + below(8);
    std::map<std::string, int> free;
    for (int i = 0; i < nodes; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      const int size = below(3) == 0 ? 4 : 8, used = below(size + 1);
      NodeState node = GpuNode(name, size);
      node.is_cordoned = below(6) == 0;
      if (!node.is_cordoned) free[name] = (size - used) / gpus;
      ledger.PutNode(std::move(node));
      if (used > 0) ledger.Bind(name, name, GpuPod(used).request, "");
    }
    int room = 0;
    for (const auto& [name, copies] : free) room += copies;
    const int members = 1 + below(20);

    const std::string places = PlacesOf(ledger, members, gpus);
    if (members > room) {
      EXPECT_EQ(places, "-");
      continue;
    }
    ASSERT_EQ(places.size(), static_cast<std::size_t>(members)) << places;
    for (const char name : places) EXPECT_GE(--free[std::string(1, name)], 0) << name;
  }
}

TEST(PlaceGang, AcceleratorsOfAnyKindArePackedAndWholeNodesKept) {
  ClusterLedger ledger;
  const auto shape = [](const char* device, std::int64_t count) {
    PodShape pod = GpuPod(0);
    if (count > 0) pod.request.AddExtended(device, count);
    return pod;
  };
  for (const char* name : {"a", "b", "c"}) {
    NodeState node = GpuNode(name, 0);
    if (*name != 'c') node.allocatable.AddExtended("amd.com/gpu", 8);
    ledger.PutNode(node);
  }
  ledger.Bind("p", "b", shape("amd.com/gpu", 2).request, "t/running");

  EXPECT_EQ(PlacesOf(ledger, {Shared(shape("amd.com/gpu", 1))}, 1), "b") << "a stays whole";
  EXPECT_EQ(PlacesOf(ledger, {Shared(shape("", 0))}, 1), "c") << "pods without accelerators go elsewhere";
  const std::vector<FitIndex::OwnerDevices> uses = ledger.IndexFor(shape("amd.com/gpu", 1))->LargestUses(3);
  ASSERT_EQ(uses.size(), 1U);
  EXPECT_EQ(uses.front().devices, 2);
}

}  // namespace
}  // namespace grus
