// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/affinity.h"

#include <algorithm>
#include <charconv>

#include "clientlib/model/field.h"

namespace kube {
namespace {

std::optional<std::int64_t> ToInt(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

bool NodeSelectorRequirement::Matches(const StringMap& labels) const {
  const auto label = labels.find(key);
  const bool has_label = label != labels.end();
  const auto is_listed = [&] {
    return std::any_of(values.begin(), values.end(), [&](const std::string& value) { return label->second == value; });
  };
  if (op == "In") return has_label && is_listed();
  if (op == "NotIn") return !has_label || !is_listed();
  if (op == "Exists") return has_label;
  if (op == "DoesNotExist") return !has_label;
  if ((op != "Gt" && op != "Lt") || !has_label || values.size() != 1) return false;
  const auto have = ToInt(label->second.view()), limit = ToInt(values.front());
  if (!have || !limit) return false;
  return op == "Gt" ? *have > *limit : *have < *limit;
}

bool NodeSelectorTerm::Matches(const StringMap& labels, const std::string& node) const {
  if (match_expressions.empty() && match_fields.empty()) return false;
  const auto matches = [](const StringMap& values) {
    return [&values](const NodeSelectorRequirement& requirement) { return requirement.Matches(values); };
  };
  if (!std::all_of(match_expressions.begin(), match_expressions.end(), matches(labels))) return false;
  if (match_fields.empty()) return true;
  const StringMap fields{{"metadata.name", node}};
  return std::all_of(match_fields.begin(), match_fields.end(), matches(fields));
}

bool NodeSelector::Matches(const StringMap& labels, const std::string& node) const {
  return std::any_of(terms.begin(), terms.end(),
                     [&](const NodeSelectorTerm& term) { return term.Matches(labels, node); });
}

std::span<const FieldInfo> NodeSelectorRequirement::Fields() {
  using T = NodeSelectorRequirement;
  static constexpr FieldInfo kFields[] = {
      Field<&T::key>("key", {.required = true}),
      Field<&T::op>("operator", {.required = true}),
      Field<&T::values>("values"),
  };
  return kFields;
}

std::span<const FieldInfo> NodeSelectorTerm::Fields() {
  using T = NodeSelectorTerm;
  static constexpr FieldInfo kFields[] = {
      Field<&T::match_expressions>("matchExpressions"),
      Field<&T::match_fields>("matchFields"),
  };
  return kFields;
}

std::span<const FieldInfo> NodeSelector::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&NodeSelector::terms>("nodeSelectorTerms", {.required = true})};
  return kFields;
}

std::span<const FieldInfo> NodeAffinity::Fields() {
  static constexpr FieldInfo kFields[] = {
      Field<&NodeAffinity::required>("requiredDuringSchedulingIgnoredDuringExecution")};
  return kFields;
}

std::span<const FieldInfo> PodAffinityTerm::Fields() {
  using T = PodAffinityTerm;
  static constexpr FieldInfo kFields[] = {
      Field<&T::label_selector>("labelSelector"),
      Field<&T::namespaces>("namespaces"),
      Field<&T::topology_key>("topologyKey", {.required = true}),
      Field<&T::namespace_selector>("namespaceSelector"),
  };
  return kFields;
}

std::span<const FieldInfo> PodAffinity::Fields() {
  static constexpr FieldInfo kFields[] = {
      Field<&PodAffinity::required>("requiredDuringSchedulingIgnoredDuringExecution")};
  return kFields;
}

std::span<const FieldInfo> Affinity::Fields() {
  using T = Affinity;
  static constexpr FieldInfo kFields[] = {
      Field<&T::node>("nodeAffinity"),
      Field<&T::pod>("podAffinity"),
      Field<&T::pod_anti>("podAntiAffinity"),
  };
  return kFields;
}

std::span<const FieldInfo> TopologySpreadConstraint::Fields() {
  using T = TopologySpreadConstraint;
  static constexpr FieldInfo kFields[] = {
      Field<&T::max_skew>("maxSkew"),
      Field<&T::topology_key>("topologyKey", {.required = true}),
      Field<&T::when_unsatisfiable>("whenUnsatisfiable"),
      Field<&T::label_selector>("labelSelector"),
      Field<&T::min_domains>("minDomains"),
  };
  return kFields;
}

}  // namespace kube
