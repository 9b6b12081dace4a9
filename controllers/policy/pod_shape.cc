// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/pod_shape.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

namespace grus {
namespace {

constexpr char kNamespaceName[] = "kubernetes.io/metadata.name";  // Every namespace has it.

bool AsksForNameOnly(const kube::LabelSelector& selector) {
  const auto is_name = [](const auto& key) { return key == kNamespaceName; };
  return std::ranges::all_of(selector.match_labels, [&](const auto& label) { return is_name(label.first); }) &&
         std::ranges::all_of(selector.match_expressions, is_name, &kube::LabelRequirement::key);
}

bool NamespaceMatches(const kube::PodAffinityTerm& term, const std::string& own_ns, const std::string& ns,
                      bool if_unknown) {
  if (term.namespaces.empty() && !term.namespace_selector) return ns == own_ns;
  if (std::ranges::find(term.namespaces, ns) != term.namespaces.end()) return true;
  if (!term.namespace_selector) return false;
  if (!AsksForNameOnly(*term.namespace_selector)) return if_unknown;
  return term.namespace_selector->Matches(kube::StringMap{{kNamespaceName, ns}});
}

bool IsAnyAddress(const std::string& address) { return address.empty() || address == "0.0.0.0" || address == "::"; }

void AddTo(std::size_t& hash, const kube::NodeSelector& where) {
  for (const kube::NodeSelectorTerm& term : where.terms) {
    for (const auto* requirements : {&term.match_expressions, &term.match_fields}) {
      for (const kube::NodeSelectorRequirement& requirement : *requirements) {
        hash = hash * 31 + std::hash<std::string_view>()(requirement.key);
        for (const std::string& value : requirement.values) hash = hash * 31 + std::hash<std::string_view>()(value);
      }
    }
  }
}

std::size_t HashOf(const PodShape& shape) {
  std::size_t hash = std::hash<std::string>()(shape.ns) * 31 + std::hash<std::string>()(shape.pool);
  hash = hash * 31 + static_cast<std::size_t>(shape.request.milli_cpu);
  hash = hash * 31 + static_cast<std::size_t>(shape.request.memory_bytes);
  const std::hash<std::string_view> text;
  for (const auto& [name, amount] : shape.request.extended) {
    hash = hash * 31 + text(name) * 17 + static_cast<std::size_t>(amount);
  }
  for (const auto& [key, value] : shape.node_selector) hash = hash * 31 + text(key) * 17 + text(value);
  for (const kube::Toleration& toleration : shape.tolerations) hash = hash * 31 + text(toleration.key);
  if (shape.node_affinity) AddTo(hash, *shape.node_affinity);
  for (const auto& [key, value] : shape.labels) hash = hash * 31 + text(key.view()) * 17 + text(value.view());
  // Pods of one set may differ in nothing but where their volumes are.
  for (const kube::NodeSelector& where : shape.volume_affinity) AddTo(hash, where);
  return hash;
}

// Labels that only tell pods of one set apart.
constexpr std::string_view kOwnLabels[] = {"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index",
                                           "batch.kubernetes.io/job-completion-index"};

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
  alone.pool = shape.pool;
  alone.placement = shape.placement;
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

ShapePtr ShapePool::Share(PodShape shape) {
  for (const std::string_view label : kOwnLabels) shape.labels.erase(label);
  auto& alike = shapes_[HashOf(shape)];
  for (const auto& known : alike) {
    if (ShapePtr same = known.lock(); same && *same == shape) return same;
  }
  // A weak pointer keeps the memory of what it pointed to.
  std::erase_if(alike, [](const auto& known) { return known.expired(); });
  auto made = std::make_shared<const PodShape>(std::move(shape));
  alike.push_back(made);
  if (shapes_.size() > 2 * swept_at_ + 100) {
    for (auto it = shapes_.begin(); it != shapes_.end();) {
      std::erase_if(it->second, [](const auto& known) { return known.expired(); });
      it = it->second.empty() ? shapes_.erase(it) : std::next(it);
    }
    swept_at_ = shapes_.size();
  }
  return made;
}

}  // namespace grus
