// SPDX-License-Identifier: Apache-2.0
// The informers that the elastic reconciler reads.
#pragma once

#include "clientlib/cache/informer.h"
#include "controllers/cluster/quotas.h"
#include "controllers/policy/workload_fingerprint.h"

namespace grus {

struct ElasticCaches {
  kube::Informer& jobs;      // ElasticHorovodJob
  kube::Informer& services;  // Children: only those that carry our managed-by label.
  kube::Informer& config_maps;
  kube::Informer& launchers;  // batch/v1 Job
  kube::Informer& pods;       // All pods: foreign ones hold GPUs too.
  kube::Informer& nodes;
  kube::Informer& priority_classes;
  Quotas& quotas;
  kube::Informer* groups = nullptr;    // All PodGroups; null: jobs are no gangs.
  kube::Informer* profiles = nullptr;  // All WorkloadProfiles; null: no job has one.
  ProfileTrust trust = ProfileTrust::kNamespace;
  bool guards_ssh = false;  // Each job gets a NetworkPolicy.
};

}  // namespace grus
