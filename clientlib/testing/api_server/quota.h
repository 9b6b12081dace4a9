// SPDX-License-Identifier: Apache-2.0
// Admission by ResourceQuotas: a pod that is made counts in the status of each quota that covers it, or is refused.
//
// Who writes the status first, and what is used once a pod is gone, is a controller's work
// (cluster/quota_controller.h). Lacks: resources of a pod as a whole, containers that stay among the init containers,
// the scope CrossNamespacePodAffinity, and quotas on anything but pods.
#pragma once

#include <vector>

#include "clientlib/model/quantity.h"
#include "clientlib/testing/api_server/api_error.h"
#include "clientlib/testing/api_server/storage.h"

namespace kube::testing {

// The quotas as they are with the pod. `info` is that of pods. Fails if one does not admit it.
Outcome<std::vector<Json>> AdmitByQuotas(const ResourceInfo& info, const Json& pod, Storage& storage);

// What a pod uses, by the names that quotas have for it. All but count/pods only until it has ended.
ResourceList QuotaUsageOf(const Json& pod);
// What the containers of a pod state together. `kind`: requests or limits.
ResourceList TotalOf(const Json& pod, std::string_view kind);
bool IsCoveredBy(const Json& quota, const Json& pod);
bool IsQuotaOnPods(std::string_view resource);

Quantity SumOf(const Quantity& a, const Quantity& b);  // In the format of the first that is not zero.
ResourceList ReadAmounts(const Json* amounts);         // Null: none.
Json WriteAmounts(const ResourceList& amounts);

}  // namespace kube::testing
