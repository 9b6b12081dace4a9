// SPDX-License-Identifier: Apache-2.0
// What a namespace may use. Never send one back whole. Values.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "clientlib/model/box.h"
#include "clientlib/model/compact_string.h"
#include "clientlib/model/kind.h"
#include "clientlib/model/quantity.h"

namespace kube {

struct ScopeRequirement {
  CompactString scope_name, op;     // `op`: In, NotIn, Exists or DoesNotExist.
  std::vector<std::string> values;  // For In and NotIn.
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ScopeRequirement&, const ScopeRequirement&) = default;
};

struct ScopeSelector {
  std::vector<ScopeRequirement> match_expressions;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ScopeSelector&, const ScopeSelector&) = default;
};

struct ResourceQuotaSpec {
  ResourceList hard;
  std::vector<std::string> scopes;  // The quota counts pods that are in all of them and match the selector.
  Box<ScopeSelector> scope_selector;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ResourceQuotaSpec&, const ResourceQuotaSpec&) = default;
};

// The API server admits objects by this: it updates `used` with each that it admits. The quota controller writes both.
struct ResourceQuotaStatus {
  ResourceList hard, used;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ResourceQuotaStatus&, const ResourceQuotaStatus&) = default;
};

struct ResourceQuota : Object {
  ResourceQuotaSpec spec;
  ResourceQuotaStatus status;
  static const Kind& ResourceKind();
};

}  // namespace kube
