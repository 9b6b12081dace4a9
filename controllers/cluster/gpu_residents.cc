// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/gpu_residents.h"

#include <optional>

#include "controllers/cluster/owners.h"
#include "controllers/policy/gpu_annotations.h"
#include "controllers/policy/gpu_parts.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {
namespace {

std::string KeyOf(std::string_view node, std::string_view gpu) { return std::string(node) + '/' + std::string(gpu); }

}  // namespace

std::vector<std::string> GpuResidents::KeysOf(const kube::Object& object) {
  std::vector<std::string> keys;
  const auto& pod = static_cast<const kube::Pod&>(object);
  if (pod.spec.node_name.empty() || kube::HasEnded(pod)) return keys;
  ForEachListedGpu(GpusOf(pod), [&](std::string_view gpu) { keys.push_back(KeyOf(pod.spec.node_name.view(), gpu)); });
  return keys;
}

std::vector<std::shared_ptr<const kube::Pod>> GpuResidents::On(std::string_view node, std::string_view gpu) const {
  return pods_.ByIndex<kube::Pod>(by_gpu_, KeyOf(node, gpu));
}

std::string WorkloadOf(const kube::Pod& pod, const kube::Informer* jobs) {
  if (const std::optional<kube::ObjectKey> key = JobOf(pod.metadata); key && jobs != nullptr) {
    const auto job = jobs->Get<api::ElasticHorovodJob>(*key);
    if (job && job->status.profile) return job->status.profile->name;
  }
  return std::string(pod.metadata.Annotation(kWorkloadAnnotation));
}

}  // namespace grus
