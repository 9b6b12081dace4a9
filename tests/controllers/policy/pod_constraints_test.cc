// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/pod_constraints.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "controllers/policy/placement.h"
#include "tests/kit/shapes.h"

namespace grus {
namespace {

constexpr char kHost[] = "kubernetes.io/hostname";

kube::LabelSelector App(const char* app) {
  kube::LabelSelector selector;
  selector.match_labels = {{"app", app}};
  return selector;
}

kube::PodAffinityTerm Term(const char* app, const char* key) {
  kube::PodAffinityTerm term;
  term.label_selector = App(app);
  term.topology_key = key;
  return term;
}

kube::TopologySpreadConstraint Spread(const char* app, const char* key, int skew) {
  kube::TopologySpreadConstraint constraint;
  constraint.max_skew = skew;
  constraint.topology_key = key;
  constraint.label_selector = App(app);
  constraint.when_unsatisfiable = "DoNotSchedule";
  return constraint;
}

PodShape Pod(const char* app, const char* ns = "t") {
  PodShape shape = GpuPod(1);
  shape.ns = ns;
  shape.labels = {{"app", app}};
  return shape;
}

class PodConstraintsTest : public ::testing::Test {
 protected:
  PodConstraintsTest() {
    for (const auto& [name, zone] : {std::pair("a", "x"), std::pair("b", "x"), std::pair("c", "y")}) {
      NodeState node = GpuNode(name, 8);
      node.labels["zone"] = zone;
      ledger_.PutNode(std::move(node));
    }
    ledger_.PutNode(GpuNode("d", 8));  // In no zone.
  }

  void Bind(const PodShape& shape, const char* node) {
    ledger_.Bind(std::string("p").append(std::to_string(next_++)), node, shape.request, "", Shared(shape));
  }
  // The nodes that may take the pod.
  std::string Allowed(const PodShape& shape) const {
    PodConstraints constraints(ledger_);
    const ShapePtr shared = Shared(shape);
    const PodConstraints::Rules rules = constraints.RulesFor(shared);
    std::string names;
    for (const char* name : {"a", "b", "c", "d"}) {
      if (constraints.Allow(rules, *ledger_.FindNode(name))) names += name;
    }
    return names;
  }
  // Where members of the gang are placed, all of them or "-".
  std::string Placed(int count, const PodShape& shape) {
    const std::vector<ShapePtr> members(static_cast<std::size_t>(count), Shared(shape));
    const std::vector<GangPart> parts = PartsOf(ledger_, members);
    GangToPlace gang;
    gang.members = &members;
    gang.parts = &parts;
    gang.needed = count;
    gang.is_constrained = HasConstraints(ledger_, members);
    std::string names;
    for (const NodeId id : PlaceGang(ledger_, gang).nodes) names += ledger_.NodeAt(id)->state.name;
    std::sort(names.begin(), names.end());
    return names.empty() ? "-" : names;
  }

  ClusterLedger ledger_;
  int next_ = 0;
};

TEST_F(PodConstraintsTest, AffinityNeedsAPodInTheDomain) {
  PodShape pod = Pod("web");
  pod.affinity = {Term("db", "zone")};
  EXPECT_EQ(Allowed(pod), "");
  Bind(Pod("db", "other"), "c");
  EXPECT_EQ(Allowed(pod), "") << "of its own namespace, if none is named";
  Bind(Pod("db"), "a");
  EXPECT_EQ(Allowed(pod), "ab");

  pod.affinity.push_back(Term("db", kHost));
  EXPECT_EQ(Allowed(pod), "a") << "all terms";
  pod.affinity[0].namespaces = {"other"};
  EXPECT_EQ(Allowed(pod), "") << "no pod that all terms are about";
}

TEST_F(PodConstraintsTest, AnEmptyNamespaceSelectorMeansAllNamespaces) {
  PodShape pod = Pod("web");
  pod.affinity = {Term("db", "zone")};
  pod.affinity[0].namespace_selector.emplace();
  Bind(Pod("db", "other"), "c");
  EXPECT_EQ(Allowed(pod), "c");
}

TEST_F(PodConstraintsTest, TheFirstOfAGroupMayGoWhereTheLabelIs) {
  PodShape pod = Pod("web");
  pod.affinity = {Term("web", "zone")};
  EXPECT_EQ(Allowed(pod), "abc");
  Bind(Pod("web"), "c");
  EXPECT_EQ(Allowed(pod), "c");
}

TEST_F(PodConstraintsTest, AntiAffinityHoldsInBothDirections) {
  PodShape loner = Pod("loner");
  loner.anti_affinity = {Term("web", "zone")};
  Bind(Pod("web"), "a");
  EXPECT_EQ(Allowed(loner), "cd") << "a node without the label is in no domain";

  Bind(loner, "c");
  EXPECT_EQ(Allowed(Pod("web")), "abd");
  EXPECT_EQ(Allowed(Pod("other")), "abcd");
}

TEST_F(PodConstraintsTest, SpreadKeepsTheSkew) {
  PodShape pod = Pod("web");
  pod.spread = {Spread("web", "zone", 1)};
  EXPECT_EQ(Allowed(pod), "abc") << "nodes without the label are out";
  Bind(Pod("web"), "a");
  EXPECT_EQ(Allowed(pod), "c");
  Bind(Pod("web"), "c");
  EXPECT_EQ(Allowed(pod), "abc");

  pod.spread[0].min_domains = 3;  // With two domains the least counts as none.
  EXPECT_EQ(Allowed(pod), "");
  pod.spread[0].max_skew = 2;
  EXPECT_EQ(Allowed(pod), "abc");
}

TEST_F(PodConstraintsTest, SpreadCountsOnlyNodesThatThePodSelects) {
  PodShape pod = Pod("web");
  pod.spread = {Spread("web", kHost, 1)};
  pod.node_selector = {{"zone", "x"}};
  Bind(Pod("web"), "a");
  Bind(Pod("web"), "b");
  EXPECT_EQ(Allowed(pod).substr(0, 2), "ab") << "the empty c and d do not count";
}

TEST_F(PodConstraintsTest, HostPortsConflictByAddressAndProtocol) {
  struct Case {
    HostPort held, wanted;
    bool conflicts;
  };
  const Case kCases[] = {
      {{80, "", ""}, {80, "TCP", ""}, true},
      {{80, "", ""}, {81, "", ""}, false},
      {{80, "UDP", ""}, {80, "TCP", ""}, false},
      {{80, "", "10.0.0.1"}, {80, "", "10.0.0.2"}, false},
      {{80, "", "0.0.0.0"}, {80, "", "10.0.0.2"}, true},
      {{80, "", "10.0.0.1"}, {80, "", ""}, true},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(c.held.ConflictsWith(c.wanted), c.conflicts);
    EXPECT_EQ(c.wanted.ConflictsWith(c.held), c.conflicts);
  }
  PodShape pod = Pod("web");
  pod.host_ports = {{80, "", ""}};
  Bind(pod, "a");
  EXPECT_EQ(Allowed(pod), "bcd");
  EXPECT_EQ(Allowed(Pod("web")), "abcd");
}

TEST_F(PodConstraintsTest, MembersOfAGangSeeEachOther) {
  PodShape loner = Pod("loner");
  loner.anti_affinity = {Term("loner", kHost)};
  EXPECT_EQ(Placed(4, loner), "abcd");
  EXPECT_EQ(Placed(5, loner), "-");

  PodShape port = Pod("port");
  port.host_ports = {{80, "", ""}};
  EXPECT_EQ(Placed(4, port), "abcd");

  PodShape spread = Pod("spread");
  spread.spread = {Spread("spread", "zone", 1)};
  const std::string places = Placed(4, spread);
  EXPECT_EQ(std::count(places.begin(), places.end(), 'c'), 2) << places;
}

TEST_F(PodConstraintsTest, AGroupTriesEachDomainUntilItHasRoomForAll) {
  PodShape group = Pod("group");
  group.affinity = {Term("group", "zone")};
  Bind(GpuPod(4), "c");  // The fullest, where the first would go.
  EXPECT_EQ(Placed(10, group), "aaaaaaaabb");
}

TEST_F(PodConstraintsTest, AGangWithoutConstraintsKeepsClearOfPodsThatForbidIt) {
  PodShape loner = Pod("loner");
  loner.anti_affinity = {Term("web", "zone")};
  Bind(loner, "a");
  EXPECT_EQ(Placed(16, Pod("web")), "ccccccccdddddddd");
  EXPECT_EQ(Placed(17, Pod("web")), "-");
}

}  // namespace
}  // namespace grus
