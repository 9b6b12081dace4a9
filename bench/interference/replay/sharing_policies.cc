// SPDX-License-Identifier: Apache-2.0
#include "bench/interference/replay/sharing_policies.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "controllers/interference/gpu_choice.h"

namespace grus {

std::optional<std::size_t> ExclusivePolicy::Choose(std::size_t, const std::vector<std::vector<std::size_t>>& gpus,
                                                   std::size_t) {
  const auto free = std::ranges::find_if(gpus, [](const auto& there) { return there.empty(); });
  if (free == gpus.end()) return std::nullopt;
  return static_cast<std::size_t>(free - gpus.begin());
}

std::optional<std::size_t> MemoryBestFit::Choose(std::size_t kind, const std::vector<std::vector<std::size_t>>& gpus,
                                                 std::size_t) {
  std::optional<std::size_t> best;
  double most_used = 0;
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    const std::vector<std::size_t>& there = gpus[gpu];
    if (there.size() > 1 || (there.size() == 1 && !speeds_.CanShare(kind, there[0]))) continue;
    if (there.empty() && free_first_) return gpu;
    const double used = there.empty() ? 0 : memory_[there[0]];
    if (best && used <= most_used) continue;
    best = gpu;
    most_used = used;
  }
  return best;
}

std::optional<std::size_t> GrusSharing::Choose(std::size_t kind, const std::vector<std::vector<std::size_t>>& gpus,
                                               std::size_t waiting_jobs) {
  std::vector<CandidateGpu> candidates;
  std::vector<std::size_t> indices;
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    const std::vector<std::size_t>& there = gpus[gpu];
    if (there.size() > 1 || (there.size() == 1 && !speeds_.CanShare(kind, there[0]))) continue;
    CandidateGpu& candidate = candidates.emplace_back();
    for (const std::size_t resident : there) candidate.residents.push_back({speeds_.kinds()[resident], "", {}});
    indices.push_back(gpu);
  }
  const SharedJob job{speeds_.kinds()[kind], "", {}};
  const GpuChoice choice = ChooseGpu(job, candidates, {gpu_type_, gpus.size(), waiting_jobs}, *cache_);
  if (!choice.chosen) return std::nullopt;
  return indices[choice.chosen->candidate];
}

std::vector<double> AssumedMemory(const std::vector<std::string>& kinds) {
  struct Size {
    double fixed, a_sample;
  };
  static const std::map<std::string, Size> kSizes = {
      {"A3C", {1, 0}},
      {"CycleGAN", {5, 0}},
      {"LM", {1.1, 0.04}},
      {"Recommendation", {0.7, 0.0006}},
      {"ResNet-18", {1, 0.0094}},
      {"ResNet-50", {0.8, 0.1}},
      {"Transformer", {0.7, 0.0375}},
  };
  std::vector<double> memory;
  for (const std::string& kind : kinds) {
    const WorkloadFamily family = FamilyOf({kind, "", {}});
    const auto size = kSizes.find(family.name);
    if (size == kSizes.end()) throw std::invalid_argument("no memory is assumed for " + kind);
    memory.push_back(size->second.fixed + size->second.a_sample * family.batch_size);
  }
  return memory;
}

}  // namespace grus
