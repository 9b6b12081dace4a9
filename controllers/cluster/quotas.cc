// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/quotas.h"

#include <algorithm>

namespace grus {
namespace {

using kube::ResourceQuota;

std::vector<std::string> NamespaceOf(const kube::Object& quota) { return {quota.metadata.ns}; }

}  // namespace

Quotas::Quotas(kube::Informer& quotas) : quotas_(quotas), by_namespace_(quotas.AddIndex(NamespaceOf)) {
  quotas.AddHandler([this](const kube::Change& change, bool) {
    const auto* before = static_cast<const ResourceQuota*>(change.before.get());
    const auto* after = static_cast<const ResourceQuota*>(change.after.get());
    if (!MayAdmitMore(before, after)) return;
    for (const auto& tell : on_more_) tell(change.Any().metadata.ns);
  });
}

QuotaList Quotas::Of(const std::string& ns) const {
  QuotaList quotas = quotas_.ByIndex<ResourceQuota>(by_namespace_, ns);
  std::ranges::sort(quotas, {}, [](const auto& quota) -> const std::string& { return quota->metadata.name; });
  return quotas;
}

}  // namespace grus
