// SPDX-License-Identifier: Apache-2.0
// The rules of single built-in kinds, where clients or controllers rely on them.
#pragma once

#include "clientlib/testing/api_server/resource_info.h"

namespace kube::testing {

// workload_rules.cc
extern const KindRules kStatefulSetRules, kDeploymentRules, kReplicaSetRules, kJobRules;
// pod_rules.cc
extern const KindRules kPodRules;
void SetPodSpecDefaults(Json& spec);
// core_rules.cc
extern const KindRules kNamespaceRules, kServiceRules, kSecretRules, kConfigMapRules, kClaimRules, kBudgetRules,
    kPriorityClassRules, kLeaseRules;
// custom_resources.cc
extern const KindRules kDefinitionRules;

}  // namespace kube::testing
