// SPDX-License-Identifier: Apache-2.0
// Where a pod must run: node affinity, affinity to other pods, spread over topologies. Only required terms; preferences
// are left to the scheduler. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clientlib/model/box.h"
#include "clientlib/model/label_selector.h"

namespace kube {

struct FieldInfo;

struct NodeSelectorRequirement {
  std::string key, op;              // `op`: In, NotIn, Exists, DoesNotExist, Gt or Lt.
  std::vector<std::string> values;  // Exactly one, an integer, for Gt and Lt.

  // NotIn and DoesNotExist also match nodes without the label. An unknown operator matches nothing.
  bool Matches(const StringMap& labels) const;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const NodeSelectorRequirement&, const NodeSelectorRequirement&) = default;
};

// All of it must match; a term without requirements matches no node.
struct NodeSelectorTerm {
  std::vector<NodeSelectorRequirement> match_expressions, match_fields;  // The only field there is: metadata.name.

  bool Matches(const StringMap& labels, const std::string& node) const;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const NodeSelectorTerm&, const NodeSelectorTerm&) = default;
};

// One of the terms must match.
struct NodeSelector {
  std::vector<NodeSelectorTerm> terms;

  bool Matches(const StringMap& labels, const std::string& node) const;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const NodeSelector&, const NodeSelector&) = default;
};

struct NodeAffinity {
  Box<NodeSelector> required;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const NodeAffinity&, const NodeAffinity&) = default;
};

// Selects pods. Nodes with the same value of the label `topology_key` are one topology.
struct PodAffinityTerm {
  Box<LabelSelector> label_selector;      // None: no pod.
  Box<LabelSelector> namespace_selector;  // Empty: all namespaces; none: see `namespaces`.
  std::vector<std::string> namespaces;    // With neither: the pod's own.
  std::string topology_key;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const PodAffinityTerm&, const PodAffinityTerm&) = default;
};

// Also podAntiAffinity, which looks the same.
struct PodAffinity {
  std::vector<PodAffinityTerm> required;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const PodAffinity&, const PodAffinity&) = default;
};

struct Affinity {
  Box<NodeAffinity> node;
  Box<PodAffinity> pod, pod_anti;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const Affinity&, const Affinity&) = default;
};

struct TopologySpreadConstraint {
  std::int32_t max_skew = 1;
  std::string topology_key, when_unsatisfiable;  // DoNotSchedule or ScheduleAnyway.
  Box<LabelSelector> label_selector;
  std::optional<std::int32_t> min_domains;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const TopologySpreadConstraint&, const TopologySpreadConstraint&) = default;
};

}  // namespace kube
