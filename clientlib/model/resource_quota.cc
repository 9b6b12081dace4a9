// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/resource_quota.h"

namespace kube {

std::span<const FieldInfo> ScopeRequirement::Fields() {
  using T = ScopeRequirement;
  static constexpr FieldInfo kFields[] = {
      Field<&T::scope_name>("scopeName", {.required = true}),
      Field<&T::op>("operator", {.required = true}),
      Field<&T::values>("values"),
  };
  return kFields;
}

std::span<const FieldInfo> ScopeSelector::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&ScopeSelector::match_expressions>("matchExpressions")};
  return kFields;
}

std::span<const FieldInfo> ResourceQuotaSpec::Fields() {
  using T = ResourceQuotaSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::hard>("hard"),
      Field<&T::scopes>("scopes"),
      Field<&T::scope_selector>("scopeSelector"),
  };
  return kFields;
}

std::span<const FieldInfo> ResourceQuotaStatus::Fields() {
  using T = ResourceQuotaStatus;
  static constexpr FieldInfo kFields[] = {
      Field<&T::hard>("hard"),
      Field<&T::used>("used"),
  };
  return kFields;
}

const Kind& ResourceQuota::ResourceKind() {
  static constexpr FieldInfo kFields[] = {
      Field<&ResourceQuota::spec>("spec"),
      Field<&ResourceQuota::status>("status"),
  };
  static const Kind kKind = MakeKind<ResourceQuota>(
      {.version = "v1", .kind = "ResourceQuota", .plural = "resourcequotas", .fields = kFields});
  return kKind;
}

}  // namespace kube
