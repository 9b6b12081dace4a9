// SPDX-License-Identifier: Apache-2.0
// Admission by ResourceQuotas: a new pod counts in the status of each quota that covers it, or is refused.
//
// A controller first writes the status, and updates it when a pod is gone (cluster/quota_controller.h). Lacks:
// resources of a pod as a whole, sidecars, the scope CrossNamespacePodAffinity, and quotas on anything but pods.
#pragma once

#include <vector>

#include "clientlib/model/quantity.h"
#include "clientlib/testing/api_server/api_error.h"
#include "clientlib/testing/api_server/storage.h"

namespace kube::testing {

// The quotas after counting the pod. `info` is that of pods. Fails if a quota does not admit the pod.
Outcome<std::vector<Json>> AdmitByQuotas(const ResourceInfo& info, const Json& pod, Storage& storage);

// What a pod uses, by quota name. After the pod has ended only count/pods.
ResourceList QuotaUsageOf(const Json& pod);
// The sum of what the containers of a pod state. `kind`: requests or limits.
ResourceList TotalOf(const Json& pod, std::string_view kind);
bool IsCoveredBy(const Json& quota, const Json& pod);
bool IsQuotaOnPods(std::string_view resource);

Quantity SumOf(const Quantity& a, const Quantity& b);  // In the format of the first that is not zero.
ResourceList ReadAmounts(const Json* amounts);         // Null: none.
Json WriteAmounts(const ResourceList& amounts);

}  // namespace kube::testing
