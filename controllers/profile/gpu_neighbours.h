// SPDX-License-Identifier: Apache-2.0
// Which pods of others have parts of the GPUs of a job's workers: its neighbours, and what they run.
//
// Found by what annotations say of pods, so those that use a GPU without a part, or have one by a claim, are not seen.
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controllers/cluster/gpu_residents.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {

struct GpuNeighbours {
  // By the UIDs of their pods; empty: it is not known, or it does not run at present.
  std::map<std::string, std::string> workloads = {};
  bool are_known = true;  // False: a worker has a part of a GPU, and it is not known of which.
  bool are_pairs = true;  // Each of the GPUs has one worker, and one neighbour at most.
  friend bool operator==(const GpuNeighbours&, const GpuNeighbours&) = default;

  bool AreNone() const { return are_known && are_pairs && workloads.empty(); }
  // The one workload that all of them run, if the job shares each of its GPUs with one of them at most. Empty: else.
  std::string Partner() const;
};

class NeighbourSearch {
 public:
  // Adds an index to `pods`; all must outlive it. REQUIRES: the informer of the pods is not started yet.
  NeighbourSearch(kube::Informer& pods, const kube::Informer& jobs, const kube::Informer& profiles)
      : residents_(pods), jobs_(jobs), profiles_(profiles) {}

  // `pods`: those of the job.
  GpuNeighbours Of(const api::ElasticHorovodJob& job, const std::vector<std::shared_ptr<const kube::Pod>>& pods) const;

  // The jobs that have pods on the GPUs that this pod has, or had: their neighbours may be others now.
  std::set<kube::ObjectKey> JobsBeside(const kube::Change& pod) const;
  std::set<kube::ObjectKey> JobsBeside(const kube::Pod& pod) const;

 private:
  // Empty: not known, or what it says of itself has the profile of another namespace.
  std::string KnownWorkloadOf(const kube::Pod& pod) const;

  const GpuResidents residents_;
  const kube::Informer &jobs_, &profiles_;
};

}  // namespace grus
