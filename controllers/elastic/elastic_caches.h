// SPDX-License-Identifier: Apache-2.0
// The informers that the elastic reconciler reads.
#pragma once

#include "clientlib/cache/informer.h"
#include "controllers/cluster/quotas.h"

namespace grus {

struct ElasticCaches {
  kube::Informer& jobs;      // ElasticHorovodJob
  kube::Informer& services;  // Children: only those that carry our managed-by label.
  kube::Informer& stateful_sets;
  kube::Informer& config_maps;
  kube::Informer& launchers;  // batch/v1 Job
  kube::Informer& pods;       // All pods: foreign ones hold GPUs too.
  kube::Informer& nodes;
  kube::Informer* groups = nullptr;            // All PodGroups; null: jobs are no gangs.
  kube::Informer* priority_classes = nullptr;  // Null: all jobs are equally important.
  kube::Informer* profiles = nullptr;          // All WorkloadProfiles; null: no job has one.
  Quotas* quotas = nullptr;                    // Null: the API server refuses pods, and nobody knows before.
};

}  // namespace grus
