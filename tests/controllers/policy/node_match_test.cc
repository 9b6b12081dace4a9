// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/node_match.h"

#include <gtest/gtest.h>

#include "tests/kit/shapes.h"

namespace grus {
namespace {

constexpr char kCordon[] = "node.kubernetes.io/unschedulable";

void Affinity(PodShape& shape, std::vector<kube::NodeSelectorRequirement> labels,
              std::vector<kube::NodeSelectorRequirement> fields = {}) {
  if (!shape.node_affinity) shape.node_affinity.emplace();
  kube::NodeSelectorTerm& term = shape.node_affinity->terms.emplace_back();
  term.match_expressions = std::move(labels);
  term.match_fields = std::move(fields);
}

// One more volume, which can be used where the label has the value.
void Volume(PodShape& shape, const char* label, const char* value) {
  kube::NodeSelector& where = shape.volume_affinity.emplace_back();
  where.terms.emplace_back().match_expressions = {{label, "In", {value}}};
}

TEST(Accepts, CordonsTaintsAndAffinitiesAsTheSchedulerDoes) {
  struct Case {
    const char* rule;
    void (*change)(NodeState&, PodShape&);
    bool accepts;
  };
  const Case kCases[] = {
      {"a cordon", [](NodeState& n, PodShape&) { n.is_cordoned = true; }, false},
      {"a cordon that is tolerated",
       [](NodeState& n, PodShape& p) {
         n.is_cordoned = true;
         n.taints = {{kCordon, "", "NoSchedule"}};
         p.tolerations = {{kCordon, "Exists", "", "NoSchedule"}};
       },
       true},
      {"all taints tolerated, also a cordon",
       [](NodeState& n, PodShape& p) {
         n.is_cordoned = true;
         n.taints = {{"k", "v", "NoExecute"}};
         p.tolerations = {{"", "Exists", "", ""}};
       },
       true},
      {"a taint that is only a wish",
       [](NodeState& n, PodShape&) {
         n.taints = {{"k", "v", "PreferNoSchedule"}};
       },
       true},
      {"In",
       [](NodeState&, PodShape& p) {
         Affinity(p, {{"gpu", "In", {"v100", "a100"}}});
       },
       true},
      {"NotIn",
       [](NodeState&, PodShape& p) {
         Affinity(p, {{"gpu", "NotIn", {"a100"}}});
       },
       false},
      {"NotIn without the label",
       [](NodeState&, PodShape& p) {
         Affinity(p, {{"other", "NotIn", {"a100"}}});
       },
       true},
      {"Gt",
       [](NodeState&, PodShape& p) {
         Affinity(p, {{"cores", "Gt", {"63"}}});
       },
       true},
      {"Lt",
       [](NodeState&, PodShape& p) {
         Affinity(p, {{"cores", "Lt", {"64"}}});
       },
       false},
      {"all of a term",
       [](NodeState&, PodShape& p) {
         Affinity(p, {{"gpu", "Exists", {}}, {"other", "Exists", {}}});
       },
       false},
      {"one of two terms",
       [](NodeState&, PodShape& p) {
         Affinity(p, {{"other", "Exists", {}}});
         Affinity(p, {{"gpu", "Exists", {}}});
       },
       true},
      {"a term without requirements", [](NodeState&, PodShape& p) { Affinity(p, {}); }, false},
      {"no term", [](NodeState&, PodShape& p) { p.node_affinity.emplace(); }, false},
      {"its name",
       [](NodeState&, PodShape& p) {
         Affinity(p, {}, {{"metadata.name", "In", {"n"}}});
       },
       true},
      {"another name",
       [](NodeState&, PodShape& p) {
         Affinity(p, {}, {{"metadata.name", "In", {"m"}}});
       },
       false},
      {"the hostname label is a label",
       [](NodeState& n, PodShape& p) {
         n.labels["kubernetes.io/hostname"] = "host-n";
         p.node_selector = {{"kubernetes.io/hostname", "n"}};
       },
       false},
      {"selector and affinity",
       [](NodeState&, PodShape& p) {
         p.node_selector = {{"gpu", "v100"}};
         Affinity(p, {{"gpu", "Exists", {}}});
       },
       false},
      {"a volume that can be used there", [](NodeState&, PodShape& p) { Volume(p, "gpu", "a100"); }, true},
      {"one that cannot", [](NodeState&, PodShape& p) { Volume(p, "gpu", "v100"); }, false},
      {"one of two that cannot",
       [](NodeState&, PodShape& p) {
         Volume(p, "gpu", "a100");
         Volume(p, "cores", "32");
       },
       false},
      {"affinity does not make up for it",
       [](NodeState&, PodShape& p) {
         Affinity(p, {{"gpu", "Exists", {}}});
         Volume(p, "gpu", "v100");
       },
       false},
  };
  for (const Case& c : kCases) {
    NodeState node = GpuNode("n", 8);
    node.labels = {{"gpu", "a100"}, {"cores", "64"}};
    PodShape shape = GpuPod(1);
    c.change(node, shape);
    EXPECT_EQ(Accepts(node, shape), c.accepts) << c.rule;
  }
}

TEST(IsSelected, ItsVolumesSayNothingOfAPodsSpread) {
  PodShape shape = GpuPod(1);
  Volume(shape, "zone", "elsewhere");
  EXPECT_TRUE(IsSelected(GpuNode("n", 8), shape));
}

}  // namespace
}  // namespace grus
