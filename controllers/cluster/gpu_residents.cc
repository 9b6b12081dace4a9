// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/gpu_residents.h"

#include <algorithm>
#include <optional>

#include "controllers/cluster/owners.h"
#include "controllers/policy/claimed_gpus.h"
#include "controllers/policy/gpu_annotations.h"
#include "controllers/policy/gpu_parts.h"
#include "crds/types/elastic_horovod_job.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

std::string KeyOf(std::string_view node, std::string_view gpu) { return std::string(node) + '/' + std::string(gpu); }

// Of a part one, of whole GPUs as many; none: it asks for neither.
std::size_t MostGpusOf(const kube::Pod& pod) {
  std::size_t most = 0;
  for (const kube::Container& container : pod.spec.containers) {
    for (const auto& [name, amount] : container.resources.limits) {
      if (!IsGpuPart(name)) continue;
      const std::int64_t whole = name == api::kGpuMilliResource ? amount.Value() / kWholeGpuMilli : 1;
      most += static_cast<std::size_t>(std::clamp<std::int64_t>(whole, 1, kMostGpusOfNode));
    }
  }
  return most;
}

}  // namespace

bool IsWorkloadName(std::string_view name) {
  constexpr std::size_t kLongest = 63;  // As the CRD has it.
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'; };
  return !name.empty() && name.size() <= kLongest && std::ranges::all_of(name, is_plain);
}

std::vector<std::string> GpuResidents::KeysOf(const kube::Object& object) {
  std::vector<std::string> keys;
  const auto& pod = static_cast<const kube::Pod&>(object);
  if (pod.spec.node_name.empty() || kube::HasEnded(pod)) return keys;
  // Annotations are anybody's: a pod has no more GPUs than it asks for.
  std::size_t left = MostGpusOf(pod);
  ForEachListedGpu(GpusOf(pod), [&](std::string_view gpu) {
    if (left == 0) return;
    --left;
    keys.push_back(KeyOf(pod.spec.node_name.view(), gpu));
  });
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
  const std::string_view said = pod.metadata.Annotation(kWorkloadAnnotation);
  return IsWorkloadName(said) ? std::string(said) : std::string();
}

}  // namespace grus
