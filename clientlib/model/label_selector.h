// SPDX-License-Identifier: Apache-2.0
// metav1.LabelSelector: which objects, by their labels. A value.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"
#include "clientlib/model/string_map.h"

namespace kube {

struct FieldInfo;

enum class SelectorOperator { kIn, kNotIn, kExists, kDoesNotExist };
std::span<const std::string_view> EnumNames(SelectorOperator);

struct LabelRequirement {
  std::string key;
  SelectorOperator op = SelectorOperator::kIn;
  std::vector<std::string> values;  // For kIn and kNotIn only.

  // kNotIn also matches objects without the label, as in Kubernetes.
  bool Matches(const StringMap& labels) const;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const LabelRequirement&, const LabelRequirement&) = default;
};

struct LabelSelector {
  StringMap match_labels;
  std::vector<LabelRequirement> match_expressions;

  bool empty() const { return match_labels.empty() && match_expressions.empty(); }  // Matches everything.
  bool Matches(const StringMap& labels) const;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
};

// The form of the labelSelector query parameter: "app=bert,tier in (a,b),!old". Not escaped for a URL.
std::string ToText(const LabelSelector& selector);
// Reads that form: =, ==, !=, in, notin, key, !key. Errors: kInvalidArgument.
Result<LabelSelector> ParseLabelSelector(std::string_view text);

}  // namespace kube
