// SPDX-License-Identifier: Apache-2.0
// What pods require of each other on a node: affinity, anti-affinity in both directions, topology spread, host ports.
//
// As the scheduler decides, for the pods added here and those whose shape the ledger knows. Labels of namespaces,
// matchLabelKeys, and node inclusion policies of a spread other than the default are not known; where these matter the
// answer errs towards keeping pods apart.
//
// For the search for one gang's places; reads the ledger, which must not change meanwhile.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "controllers/policy/cluster_ledger.h"

namespace grus {

class PodConstraints {
 private:
  using Counts = std::map<std::string, int, std::less<>>;  // Pods, by the value of a topology label.
  // The terms of one kind of pod, and the counts of the pods that they are about.
  struct Terms {
    ShapePtr shape;  // One of those that have these terms.
    bool has_affine_pod = false;
    std::vector<Counts> affinity, anti_affinity, spread;
  };
  // Where pods with an anti-affinity keep others away: nodes with these values of the label.
  struct Forbidden {
    const kube::PodAffinityTerm* term;
    std::set<std::string, std::less<>> values;
  };
  struct Guard {
    ShapePtr shape;
    std::vector<Forbidden> terms;
  };

 public:
  // What applies to one pod that looks for a node.
  struct Rules {
    ShapePtr shape;
    const Terms* terms = nullptr;
    std::vector<const Forbidden*> forbidden;  // By other pods' anti-affinity.
    std::size_t guards = 0;                   // How many kinds of guards `forbidden` covers.
  };

  explicit PodConstraints(const ClusterLedger& ledger);

  // Valid until the next Add().
  const Rules& RulesFor(const ShapePtr& shape);
  bool Allow(const Rules& rules, const LedgerNode& node) const;
  // Counts one more pod, as if it were on the node.
  void Add(const ShapePtr& shape, const LedgerNode& node);

 private:
  void AddGuard(const ShapePtr& shape, const LedgerNode& node);
  Terms& TermsOf(const ShapePtr& shape);
  static void CountPod(Terms& terms, const PodShape& pod, const NodeState& node);
  static bool AllowsSpread(const Terms& terms, const PodShape& shape, const NodeState& node);
  bool PortsAreFree(const PodShape& shape, const LedgerNode& node) const;

  const ClusterLedger& ledger_;
  std::list<Terms> terms_;                             // Rules point into it.
  std::unordered_map<const PodShape*, Guard> guards_;  // Likewise. Never shrinks.
  std::unordered_map<const PodShape*, Rules> rules_;
  std::unordered_map<NodeId, std::vector<ShapePtr>> added_;
};

}  // namespace grus
