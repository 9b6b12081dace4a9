// SPDX-License-Identifier: Apache-2.0
// The rules of single built-in kinds, where clients or controllers rely on them.
#pragma once

#include <vector>

#include "clientlib/testing/api_server/resource_info.h"
#include "clientlib/testing/api_server/structural_schema.h"

namespace kube::testing {

// workload_rules.cc
extern const KindRules kStatefulSetRules, kDeploymentRules, kReplicaSetRules, kJobRules;
// pod_rules.cc
extern const KindRules kPodRules;
void SetPodSpecDefaults(Json& spec);
// pod_update_rules.cc
void CheckPodUpdate(const Json& pod, const Json& before, std::vector<FieldError>& errors);
// limit_ranges.cc
extern const KindRules kLimitRangeRules;
// core_rules.cc
extern const KindRules kNamespaceRules, kServiceRules, kSecretRules, kConfigMapRules, kClaimRules, kBudgetRules,
    kPriorityClassRules, kLeaseRules;
// custom_resources.cc
extern const KindRules kDefinitionRules;

}  // namespace kube::testing
