// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/pod_shape.h"

#include <algorithm>

namespace grus {
namespace {

constexpr char kNamespaceName[] = "kubernetes.io/metadata.name";  // Every namespace has it.

bool AsksForNameOnly(const kube::LabelSelector& selector) {
  const auto is_name = [](const auto& key) { return key == kNamespaceName; };
  return std::all_of(selector.match_labels.begin(), selector.match_labels.end(),
                     [&](const auto& label) { return is_name(label.first); }) &&
         std::all_of(selector.match_expressions.begin(), selector.match_expressions.end(),
                     [&](const kube::LabelRequirement& requirement) { return is_name(requirement.key); });
}

bool NamespaceMatches(const kube::PodAffinityTerm& term, const std::string& own_ns, const std::string& ns,
                      bool if_unknown) {
  if (term.namespaces.empty() && !term.namespace_selector) return ns == own_ns;
  if (std::find(term.namespaces.begin(), term.namespaces.end(), ns) != term.namespaces.end()) return true;
  if (!term.namespace_selector) return false;
  if (!AsksForNameOnly(*term.namespace_selector)) return if_unknown;
  return term.namespace_selector->Matches(kube::StringMap{{kNamespaceName, ns}});
}

bool IsAnyAddress(const std::string& address) { return address.empty() || address == "0.0.0.0" || address == "::"; }

}  // namespace

bool Tolerates(const kube::Toleration& toleration, const kube::Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  const bool has_all_values = toleration.op == "Exists";
  if (toleration.key.empty()) return has_all_values;
  if (toleration.key != taint.key) return false;
  return has_all_values || ((toleration.op.empty() || toleration.op == "Equal") && toleration.value == taint.value);
}

bool HostPort::ConflictsWith(const HostPort& other) const {
  const auto name = [](const std::string& text) { return text.empty() ? std::string("TCP") : text; };
  if (port != other.port || name(protocol) != name(other.protocol)) return false;
  return address == other.address || IsAnyAddress(address) || IsAnyAddress(other.address);
}

PodShape AloneOf(const PodShape& shape) {
  PodShape alone;
  alone.request = shape.request;
  alone.node_selector = shape.node_selector;
  alone.tolerations = shape.tolerations;
  alone.node_affinity = shape.node_affinity;
  alone.volume_affinity = shape.volume_affinity;
  return alone;
}

bool FitAlike(const PodShape& a, const PodShape& b) {
  return a.request == b.request && a.node_selector == b.node_selector && a.tolerations == b.tolerations &&
         a.node_affinity == b.node_affinity && a.volume_affinity == b.volume_affinity;
}

bool TermMatches(const kube::PodAffinityTerm& term, const std::string& own_ns, const PodShape& other, bool if_unknown) {
  return term.label_selector && term.label_selector->Matches(other.labels) &&
         NamespaceMatches(term, own_ns, other.ns, if_unknown);
}

}  // namespace grus
