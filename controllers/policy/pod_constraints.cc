// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/pod_constraints.h"

#include <algorithm>

namespace grus {
namespace {

const kube::CompactString* LabelOf(const NodeState& node, const std::string& key) {
  const auto it = node.labels.find(key);
  return it == node.labels.end() ? nullptr : &it->second;
}

int CountOf(const std::map<std::string, int, std::less<>>& counts, std::string_view value) {
  const auto it = counts.find(value);
  return it == counts.end() ? 0 : it->second;
}

// Affinity counts only pods that all terms are about.
bool AllTermsMatch(const PodShape& shape, const PodShape& other) {
  return std::ranges::all_of(
      shape.affinity, [&](const kube::PodAffinityTerm& term) { return TermMatches(term, shape.ns, other, false); });
}

bool Selects(const kube::TopologySpreadConstraint& constraint, const PodShape& shape, const PodShape& other) {
  return shape.ns == other.ns && constraint.label_selector && constraint.label_selector->Matches(other.labels);
}

// Nodes without a topology label, or outside the pod's own selector and affinity, do not count for its spread.
bool CountsForSpread(const PodShape& shape, const NodeState& node) {
  const auto has_label = [&](const std::string& key) { return node.labels.find(key) != node.labels.end(); };
  return std::ranges::all_of(shape.spread, has_label, &kube::TopologySpreadConstraint::topology_key) &&
         IsSelected(node, shape);
}

bool HaveSameTerms(const PodShape& a, const PodShape& b) {
  return a.ns == b.ns && a.affinity == b.affinity && a.anti_affinity == b.anti_affinity && a.spread == b.spread &&
         (a.spread.empty() || (a.node_selector == b.node_selector && a.node_affinity == b.node_affinity));
}

}  // namespace

PodConstraints::PodConstraints(const ClusterLedger& ledger) : ledger_(ledger) {
  for (const auto& [key, guard] : ledger.guards()) {
    for (const auto& [id, pods] : guard.nodes) AddGuard(guard.shape, *ledger.NodeAt(id));
  }
}

void PodConstraints::AddGuard(const ShapePtr& shape, const LedgerNode& node) {
  Guard& guard = guards_[shape.get()];
  if (!guard.shape) {
    guard.shape = shape;
    for (const kube::PodAffinityTerm& term : shape->anti_affinity) guard.terms.push_back({&term, {}});
  }
  for (Forbidden& forbidden : guard.terms) {
    if (const auto* value = LabelOf(node.state, forbidden.term->topology_key)) forbidden.values.insert(value->str());
  }
}

void PodConstraints::CountPod(Terms& terms, const PodShape& pod, const NodeState& node) {
  const PodShape& shape = *terms.shape;
  const auto count = [&node](Counts& counts, const std::string& key) {
    const auto* value = LabelOf(node, key);
    if (value) ++counts[value->str()];
    return value != nullptr;
  };
  if (!shape.affinity.empty() && AllTermsMatch(shape, pod)) {
    for (std::size_t i = 0; i < shape.affinity.size(); ++i) {
      if (count(terms.affinity[i], shape.affinity[i].topology_key)) terms.has_affine_pod = true;
    }
  }
  for (std::size_t i = 0; i < shape.anti_affinity.size(); ++i) {
    const kube::PodAffinityTerm& term = shape.anti_affinity[i];
    if (TermMatches(term, shape.ns, pod, true)) count(terms.anti_affinity[i], term.topology_key);
  }
  if (shape.spread.empty() || !CountsForSpread(shape, node)) return;
  for (std::size_t i = 0; i < shape.spread.size(); ++i) {
    if (Selects(shape.spread[i], shape, pod)) count(terms.spread[i], shape.spread[i].topology_key);
  }
}

PodConstraints::Terms& PodConstraints::TermsOf(const ShapePtr& shape) {
  for (Terms& terms : terms_) {
    if (HaveSameTerms(*terms.shape, *shape)) return terms;
  }
  Terms& terms = terms_.emplace_back();
  terms.shape = shape;
  terms.affinity.resize(shape->affinity.size());
  terms.anti_affinity.resize(shape->anti_affinity.size());
  terms.spread.resize(shape->spread.size());
  if (shape->affinity.empty() && shape->anti_affinity.empty() && shape->spread.empty()) return terms;
  for (NodeId id = 0; id < ledger_.node_limit(); ++id) {
    const LedgerNode* node = ledger_.NodeAt(id);
    if (!node || !node->is_known) continue;
    if (!shape->spread.empty() && CountsForSpread(*shape, node->state)) {
      // A domain without pods counts, too.
      for (std::size_t i = 0; i < shape->spread.size(); ++i) {
        terms.spread[i].try_emplace(LabelOf(node->state, shape->spread[i].topology_key)->str(), 0);
      }
    }
    for (const ShapePtr& pod : node->pods) CountPod(terms, *pod, node->state);
    if (const auto added = added_.find(id); added != added_.end()) {
      for (const ShapePtr& pod : added->second) CountPod(terms, *pod, node->state);
    }
  }
  return terms;
}

const PodConstraints::Rules& PodConstraints::RulesFor(const ShapePtr& shape) {
  Rules& rules = rules_[shape.get()];
  if (rules.terms && rules.guards == guards_.size()) return rules;
  rules = {shape, &TermsOf(shape), {}, guards_.size()};
  for (const auto& [key, guard] : guards_) {
    for (const Forbidden& forbidden : guard.terms) {
      if (TermMatches(*forbidden.term, guard.shape->ns, *shape, true)) rules.forbidden.push_back(&forbidden);
    }
  }
  return rules;
}

bool PodConstraints::AllowsSpread(const Terms& terms, const PodShape& shape, const NodeState& node) {
  for (std::size_t i = 0; i < shape.spread.size(); ++i) {
    const kube::TopologySpreadConstraint& constraint = shape.spread[i];
    const auto* value = LabelOf(node, constraint.topology_key);
    if (!value) return false;
    const Counts& counts = terms.spread[i];
    int least = 0;
    if (!counts.empty() && static_cast<int>(counts.size()) >= constraint.min_domains.value_or(1)) {
      least = std::ranges::min_element(counts, {}, &Counts::value_type::second)->second;
    }
    const int self = Selects(constraint, shape, shape) ? 1 : 0;
    if (CountOf(counts, value->view()) + self - least > constraint.max_skew) return false;
  }
  return true;
}

bool PodConstraints::PortsAreFree(const PodShape& shape, const LedgerNode& node) const {
  const auto conflicts = [&](const ShapePtr& pod) {
    return std::ranges::any_of(pod->host_ports, [&](const HostPort& other) {
      return std::ranges::any_of(shape.host_ports, [&](const HostPort& mine) { return mine.ConflictsWith(other); });
    });
  };
  if (shape.host_ports.empty()) return true;
  if (std::ranges::any_of(node.pods, conflicts)) return false;
  const auto added = added_.find(node.id);
  return added == added_.end() || std::ranges::none_of(added->second, conflicts);
}

bool PodConstraints::Allow(const Rules& rules, const LedgerNode& node) const {
  const PodShape& shape = *rules.shape;
  const Terms& terms = *rules.terms;
  // The node needs the key of each term, and its domain a pod that the terms are about.
  bool all_have_pods = true;
  for (std::size_t i = 0; i < shape.affinity.size(); ++i) {
    const auto* value = LabelOf(node.state, shape.affinity[i].topology_key);
    if (!value) return false;
    if (CountOf(terms.affinity[i], value->view()) == 0) all_have_pods = false;
  }
  // The first pod of a group with affinity to itself may go anywhere.
  if (!all_have_pods && (terms.has_affine_pod || !AllTermsMatch(shape, shape))) return false;
  for (std::size_t i = 0; i < shape.anti_affinity.size(); ++i) {
    const auto* value = LabelOf(node.state, shape.anti_affinity[i].topology_key);
    if (value && CountOf(terms.anti_affinity[i], value->view()) > 0) return false;
  }
  for (const Forbidden* forbidden : rules.forbidden) {
    const auto* own = LabelOf(node.state, forbidden->term->topology_key);
    if (own && forbidden->values.contains(own->view())) return false;
  }
  return AllowsSpread(terms, shape, node.state) && PortsAreFree(shape, node);
}

void PodConstraints::Add(const ShapePtr& shape, const LedgerNode& node) {
  for (Terms& terms : terms_) CountPod(terms, *shape, node.state);
  if (!shape->anti_affinity.empty()) AddGuard(shape, node);
  added_[node.id].push_back(shape);
}

}  // namespace grus
