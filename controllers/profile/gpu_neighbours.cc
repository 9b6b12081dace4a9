// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/gpu_neighbours.h"

#include <algorithm>

#include "controllers/cluster/owners.h"
#include "controllers/policy/gpu_annotations.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/worker_devices.h"
#include "controllers/policy/workload_fingerprint.h"
#include "controllers/profile/co_runs.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

using kube::ObjectKey;
using kube::Pod;

// It may not compute yet, or any more: for how fast others are beside it, that is another neighbour.
bool DoesRun(const Pod& pod) { return pod.status.phase.view() == "Running" && !pod.metadata.is_being_deleted(); }

bool AreAlike(const Pod& a, const Pod& b) {
  const auto says_same = [&](const char* key) { return a.metadata.Annotation(key) == b.metadata.Annotation(key); };
  return a.spec.node_name == b.spec.node_name && DoesRun(a) == DoesRun(b) && kube::HasEnded(a) == kube::HasEnded(b) &&
         says_same(api::kHeldGpusAnnotation) && says_same(api::kPlannedGpuAnnotation) && says_same(kWorkloadAnnotation);
}

}  // namespace

std::string GpuNeighbours::Partner() const {
  if (!are_known || !are_pairs || workloads.empty()) return {};
  const std::string& first = workloads.begin()->second;
  const bool is_one = std::ranges::all_of(workloads, [&](const auto& other) { return other.second == first; });
  return is_one && IsWorkloadName(first) ? first : std::string();
}

std::string NeighbourSearch::KnownWorkloadOf(const Pod& pod) const {
  std::string workload = WorkloadOf(pod, &jobs_);
  const auto profile = profiles_.Get<api::WorkloadProfile>({"", workload});
  return profile && !IsFor(*profile, pod.metadata.ns) ? std::string() : workload;
}

GpuNeighbours NeighbourSearch::Of(const api::ElasticHorovodJob& job,
                                  const std::vector<std::shared_ptr<const Pod>>& pods) const {
  const Resources part = DevicesOf(job.spec.workers).part;
  const bool does_share = AsksForGpuParts(part) && WholeGpusOf(part) == 0;
  const ObjectKey own = job.metadata.Key();
  GpuNeighbours found;
  for (const auto& pod : pods) {
    if (pod->metadata.Label(kRoleLabel) != "worker") continue;
    const std::string gpus = GpusOf(*pod);
    if (gpus.empty() && does_share) found.are_known = false;
    ForEachListedGpu(gpus, [&](std::string_view gpu) {
      int workers = 0, others = 0;
      for (const auto& resident : residents_.On(pod->spec.node_name.view(), gpu)) {
        if (JobOf(resident->metadata) == own) {
          ++workers;
          continue;
        }
        ++others;
        found.workloads[resident->metadata.uid] = DoesRun(*resident) ? KnownWorkloadOf(*resident) : std::string();
      }
      if (others > 1 || workers > 1) found.are_pairs = false;
    });
  }
  return found;
}

std::set<ObjectKey> NeighbourSearch::JobsBeside(const Pod& pod) const {
  std::set<ObjectKey> jobs;
  ForEachListedGpu(GpusOf(pod), [&](std::string_view gpu) {
    for (const auto& resident : residents_.On(pod.spec.node_name.view(), gpu)) {
      if (const auto job = JobOf(resident->metadata)) jobs.insert(*job);
    }
  });
  return jobs;
}

std::set<ObjectKey> NeighbourSearch::JobsBeside(const kube::Change& change) const {
  const auto* before = static_cast<const Pod*>(change.before.get());
  const auto* after = static_cast<const Pod*>(change.after.get());
  std::set<ObjectKey> jobs;
  if (before != nullptr && after != nullptr && AreAlike(*before, *after)) return jobs;
  for (const Pod* pod : {before, after}) {
    if (pod != nullptr) jobs.merge(JobsBeside(*pod));
  }
  return jobs;
}

}  // namespace grus
