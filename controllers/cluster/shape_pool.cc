// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/shape_pool.h"

#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

namespace grus {
namespace {

void AddTo(std::size_t& hash, const kube::NodeSelector& where) {
  for (const kube::NodeSelectorTerm& term : where.terms) {
    for (const auto* requirements : {&term.match_expressions, &term.match_fields}) {
      for (const kube::NodeSelectorRequirement& requirement : *requirements) {
        for (const std::string& value : requirement.values) hash = hash * 31 + std::hash<std::string_view>()(value);
      }
    }
  }
}

std::size_t HashOf(const PodShape& shape) {
  std::size_t hash = std::hash<std::string>()(shape.ns);
  hash = hash * 31 + static_cast<std::size_t>(shape.request.milli_cpu);
  hash = hash * 31 + static_cast<std::size_t>(shape.request.memory_bytes);
  const std::hash<std::string_view> text;
  for (const auto& [key, value] : shape.node_selector) hash = hash * 31 + text(key) * 17 + text(value);
  for (const kube::Toleration& toleration : shape.tolerations) hash = hash * 31 + text(toleration.key);
  if (shape.node_affinity) AddTo(hash, *shape.node_affinity);
  for (const auto& [key, value] : shape.labels) hash = hash * 31 + text(key.view()) * 17 + text(value.view());
  // Pods of one set may differ in nothing but where their volumes are.
  for (const kube::NodeSelector& where : shape.volume_affinity) AddTo(hash, where);
  return hash;
}

// Labels that tell pods of one set apart say nothing to placement.
constexpr std::string_view kOwnLabels[] = {"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index",
                                           "batch.kubernetes.io/job-completion-index"};

}  // namespace

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
