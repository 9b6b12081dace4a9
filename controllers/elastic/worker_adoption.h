// SPDX-License-Identifier: Apache-2.0
// Takes workers back that the job does not see or own as it should.
//
// - One that has lost our labels holds its GPUs unseen, and one that has lost its owner reference outlives the
//   job. Both get back what they lack.
// - An older grus ran the workers in a StatefulSet (docs/adr/0014-workers-without-a-statefulset.md). First the job
//   gets a Secret of today's name, with the key that these workers have. Then the StatefulSet is deleted without its
//   pods, and when the garbage collector has taken its owner reference off them, they get the job's. The training
//   does not notice.
//
// Thread-safe.
#pragma once

#include "clientlib/cache/informer.h"
#include "controllers/cluster/owners.h"
#include "controllers/frame/child_writer.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {

class WorkerAdoption {
 public:
  // REQUIRES: `pods` is not started yet.
  WorkerAdoption(kube::Client& client, kube::Informer& pods);

  // The next step, if one is needed: true. `is_gang`: the job has a PodGroup.
  kube::Result<bool> TakeBack(const api::ElasticHorovodJob& job, bool is_gang, ChildWriter& writer,
                              std::stop_token stop);

 private:
  // `worker`: one of its pods. False: the StatefulSet is not the job's.
  kube::Result<bool> EndStatefulSet(const api::ElasticHorovodJob& job, const std::string& worker, ChildWriter& writer,
                                    std::stop_token stop);
  kube::Status KeepKey(const api::ElasticHorovodJob& job, ChildWriter& writer, std::stop_token stop);

  kube::Client& client_;
  const kube::Informer& pods_;
  const kube::Store::IndexId by_job_, by_controller_;
};

}  // namespace grus
