// SPDX-License-Identifier: Apache-2.0
// Takes over the workers of jobs that an older grus runs in a StatefulSet (docs/adr/0014-workers-without-a-statefulset.md).
//
// First the job gets a Secret of today's name, with the key that these workers have. Then the StatefulSet is deleted
// without its pods, and when the garbage collector has taken its owner reference off them, the job becomes their
// controller. The training does not notice. Thread-safe.
#pragma once

#include "clientlib/cache/informer.h"
#include "controllers/cluster/owners.h"
#include "controllers/frame/child_writer.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {

// Whether the pod is a worker of the job that a StatefulSet made, and has not been taken over yet.
bool IsOfOldGrus(const kube::Pod& pod, const api::ElasticHorovodJob& job);

class OldWorkers {
 public:
  // REQUIRES: `pods` is not started yet.
  OldWorkers(kube::Client& client, kube::Informer& pods)
      : client_(client), pods_(pods), by_job_(pods.AddIndex(JobKeysOf)) {}

  // The next step of taking over: call it in each pass until no pod IsOfOldGrus().
  kube::Status Adopt(const api::ElasticHorovodJob& job, ChildWriter& writer, std::stop_token stop);

 private:
  kube::Status KeepKey(const api::ElasticHorovodJob& job, ChildWriter& writer, std::stop_token stop);

  kube::Client& client_;
  const kube::Informer& pods_;
  const kube::Store::IndexId by_job_;
};

}  // namespace grus
