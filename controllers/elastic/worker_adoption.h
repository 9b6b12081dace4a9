// SPDX-License-Identifier: Apache-2.0
// Takes workers back that the job does not see or own as it should: one that has lost our labels holds its GPUs unseen,
// and one that has lost its owner reference outlives the job. Both get back what they lack.
//
// Thread-safe.
#pragma once

#include "clientlib/cache/informer.h"
#include "controllers/frame/child_writer.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {

class WorkerAdoption {
 public:
  // REQUIRES: `pods` is not started yet.
  explicit WorkerAdoption(kube::Informer& pods);

  // True: it took some back. `is_gang`: the job has a PodGroup. `now`: by the wall clock.
  kube::Result<bool> TakeBack(const api::ElasticHorovodJob& job, bool is_gang, const kube::Time& now,
                              ChildWriter& writer);

 private:
  const kube::Informer& pods_;
  const kube::Store::IndexId by_job_, by_controller_;
};

}  // namespace grus
