// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_space.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "controllers/measure/measured_work.h"
#include "controllers/policy/cluster_objects.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/profile_drift.h"
#include "controllers/policy/resources.h"
#include "controllers/policy/workload_fingerprint.h"
#include "controllers/trial/trial_scope.h"

namespace grus {
namespace {

constexpr int kDefaultWorkers = 8;
constexpr int kMostGpus = 1 << 20;       // Of a node.
constexpr double kPlausibleWidth = 0.1;  // A wide interval is no sign that more GPUs do not help.

// FNV-1a: the same in every build, because the names persist in the cluster.
std::uint64_t HashOf(std::string_view text, std::uint64_t hash = 14695981039346656037U) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

std::vector<std::int32_t> Sorted(std::vector<std::int32_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::vector<std::int32_t> DefaultCounts(const Workload& workload) {
  const std::int32_t most = std::max(1, workload.most_workers.value_or(kDefaultWorkers));
  std::vector<std::int32_t> counts;
  for (std::int32_t n = 1; n<most; n = n> most / 2 ? most : 2 * n) counts.push_back(n * workload.gpus_per_worker);
  counts.push_back(most * workload.gpus_per_worker);
  return counts;
}

// Smaller than those of the space, for a GPU type on which the smallest was out of memory.
std::vector<std::int32_t> HalvedBatches(const std::string& type, std::int32_t smallest,
                                        const std::vector<api::Trial>& trials) {
  const auto was_too_large = [&](std::int32_t batch) {
    return std::any_of(trials.begin(), trials.end(), [&](const api::Trial& trial) {
      return trial.phase == api::TrialPhase::kFailed && trial.reason == api::TrialReason::kOutOfMemory &&
             trial.config.gpu_type == type && trial.config.batch_size == batch;
    });
  };
  std::vector<std::int32_t> halved;
  for (; smallest > 1 && was_too_large(smallest); smallest /= 2) halved.insert(halved.begin(), smallest / 2);
  return halved;
}

// Of the node, empty; less than 0: it has none, not even ones that are not offered now. With parts, how many; a pod's
// whole GPUs of a shared node count as one part.
std::int64_t GpusOn(const kube::Node& node, const Workload& workload) {
  if (!AsksForGpuParts(workload.part)) {
    const kube::Quantity* gpus = kube::FindResource(node.status.allocatable, kGpuResource);
    return gpus == nullptr ? -1 : gpus->Value();
  }
  const NodeState state = StateOf(node);
  if (kube::FindResource(node.status.allocatable, workload.part.Accelerator()) == nullptr) return -1;
  const std::int64_t copies = CopiesThatFit(state.allocatable, {}, workload.part, kMostGpus);
  return workload.is_pod ? copies : copies * std::max(1, workload.gpus_per_worker);
}

// One without a name if there are none.
std::vector<std::string> TypesOf(const api::TrialSpace& space) {
  std::vector<std::string> types;
  for (const api::GpuType& type : space.gpu_types) types.push_back(type.name);
  if (types.empty()) types.emplace_back();
  return types;
}

}  // namespace

kube::Result<std::vector<api::TrialConfig>> ConfigsOf(const api::TrialSpace& space, const Workload& workload,
                                                      const std::vector<api::Trial>& trials) {
  const int per_worker = workload.gpus_per_worker;
  const bool has_one_part = workload.is_on_one_node && AsksForGpuParts(workload.part);
  if (per_worker < 1) {
    return kube::Error(kube::ErrorCode::kInvalidArgument,
                       "the workload's workersSpec.gpusPerWorker is 0, but a trial needs GPUs");
  }
  std::vector<std::int32_t> counts = space.gpu_counts.empty() ? DefaultCounts(workload) : Sorted(space.gpu_counts);
  std::erase_if(counts, [&](std::int32_t n) { return n < per_worker || n % per_worker != 0; });
  if (counts.empty()) {
    return kube::Error(kube::ErrorCode::kInvalidArgument,
                       "none of space.gpuCounts is a multiple of the workload's gpusPerWorker, which is " +
                           std::to_string(per_worker));
  }
  if (has_one_part) std::erase_if(counts, [](std::int32_t n) { return n != 1; });
  if (counts.empty()) {
    return kube::Error(kube::ErrorCode::kInvalidArgument,
                       "each pod of workload.podTemplate trains for itself and has part of one GPU, so that "
                       "space.gpuCounts can only be 1; to train on several, let its command run torchrun");
  }
  std::vector<std::int32_t> batches = Sorted(space.batch_sizes);
  if (batches.empty()) batches.push_back(0);
  const std::vector<std::string> types = TypesOf(space);
  std::vector<api::TrialConfig> configs;
  configs.reserve(types.size() * counts.size() * batches.size());
  std::map<std::string, std::vector<std::int32_t>> halved;
  for (const std::string& type : types) halved.emplace(type, HalvedBatches(type, batches.front(), trials));
  for (const std::int32_t gpus : counts) {
    for (const std::string& type : types) {
      for (const std::int32_t batch : halved[type]) configs.push_back({type, gpus, 0, batch});
      for (const std::int32_t batch : batches) configs.push_back({type, gpus, 0, batch});
    }
  }
  return configs;
}

std::map<std::string, std::string> NodesOf(const api::TrialSpace& space, const std::string& gpu_type) {
  if (gpu_type.empty()) return {};
  const auto found = std::find_if(space.gpu_types.begin(), space.gpu_types.end(),
                                  [&](const api::GpuType& type) { return type.name == gpu_type; });
  if (found != space.gpu_types.end() && !found->node_selector.empty()) return found->node_selector;
  return {{kGpuProductLabel, gpu_type}};
}

std::map<std::string, TypeNodes> NodesByType(const api::TrialSpace& space, const Workload& workload,
                                             const std::vector<std::shared_ptr<const kube::Node>>& nodes) {
  const int per_worker = std::max(1, workload.gpus_per_worker);
  std::map<std::string, TypeNodes> found;
  for (const std::string& type : TypesOf(space)) {
    std::map<std::string, std::string> labels = workload.node_selector;
    for (const auto& [key, value] : NodesOf(space, type)) labels[key] = value;
    TypeNodes& all = found[type];
    std::set<std::string> products;
    for (const auto& node : nodes) {
      const std::int64_t gpus = GpusOn(*node, workload);
      const auto has = [&](const auto& label) { return node->metadata.Label(label.first) == label.second; };
      if (gpus < 0 || !std::all_of(labels.begin(), labels.end(), has)) continue;
      products.emplace(node->metadata.Label(kGpuProductLabel));
      const int count = static_cast<int>(std::min<std::int64_t>(gpus, kMostGpus));
      all.gpus_per_node = std::max(all.gpus_per_node, count);
      const int most = count / per_worker * per_worker;
      if (!node->spec.unschedulable) all.gpus.push_back(most);
      all.most_gpus = workload.is_on_one_node ? std::max(all.most_gpus, most) : all.most_gpus + most;
    }
    if (products.size() == 1) all.product = *products.begin();
  }
  return found;
}

std::string TrialName(const std::string& job, const api::TrialConfig& config, const std::set<std::string>& taken) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";  // Without vowels, so that no word appears.
  std::string text = config.gpu_type + "/" + std::to_string(config.gpus) + "/" + std::to_string(config.batch_size);
  if (config.min_nodes > 0) text += "/" + std::to_string(config.min_nodes);
  for (int salt = 0;; ++salt) {
    std::uint64_t hash = HashOf(text + "/" + std::to_string(salt));
    std::string suffix = "g" + std::to_string(config.gpus) + "-";
    while (suffix.size() < api::kMaxTrialSuffix) {
      suffix += kLetters[hash % kLetters.size()];
      hash /= kLetters.size();
    }
    std::string name = job + "-" + suffix;
    if (!taken.contains(name)) return name;
  }
}

SkipRules::SkipRules(const api::TrialJobSpec& spec, const Workload& workload, const std::vector<api::Trial>& trials)
    : is_batch_per_gpu_(spec.space.batch_size_scope == api::BatchSizeScope::kPerGpu),
      has_whole_models_(!workload.is_pod) {
  struct Size {
    int gpus = 0;
    Interval throughput;
  };
  std::map<std::pair<std::string, int>, std::vector<Size>> measured;
  for (const api::Trial& trial : trials) {
    const api::TrialConfig& config = trial.config;
    if (trial.phase == api::TrialPhase::kFailed && trial.reason == api::TrialReason::kOutOfMemory) {
      out_of_memory_[config.gpu_type].push_back({config.gpus, BatchOfGpu(config)});
    }
    if (!HasSpeedOfJob(trial) || config.min_nodes > 0) continue;
    if (const auto throughput = ThroughputOf(*trial.measured)) {
      measured[{config.gpu_type, config.batch_size}].push_back({config.gpus, *throughput});
    }
  }
  if (!spec.early_stop || spec.strategy.type != api::StrategyType::kLadder) return;
  for (auto& [series, sizes] : measured) {
    std::sort(sizes.begin(), sizes.end(), [](const Size& a, const Size& b) { return a.gpus < b.gpus; });
    for (std::size_t i = 1; i < sizes.size(); ++i) {
      const Interval &less = sizes[i - 1].throughput, &more = sizes[i].throughput;
      const double width = std::min(less.high - less.mean + more.mean - more.low, kPlausibleWidth * less.mean);
      if (more.mean > less.mean + width) continue;
      no_gain_above_[series] = sizes[i].gpus;
      break;
    }
  }
}

double SkipRules::BatchOfGpu(const api::TrialConfig& config) const {
  if (is_batch_per_gpu_) return config.batch_size;
  return std::max(1.0, static_cast<double>(config.batch_size)) / std::max(1, config.gpus);
}

// Whether `config` cannot fit where `memory` did not. On several GPUs, even a model that is on each of them needs more
// than on one: the buffers of gradients.
bool SkipRules::IsOutOfMemory(const api::TrialConfig& config, const Memory& memory) const {
  const double batch = BatchOfGpu(config);
  if (!has_whole_models_ && config.gpus > memory.gpus) return false;  // Parts of a model may become smaller.
  const bool is_same = config.batch_size > 0 && batch == memory.batch_of_gpu;
  return batch > memory.batch_of_gpu || (is_same && config.gpus > memory.gpus);
}

api::TrialReason SkipRules::WhyNot(const api::TrialConfig& config) const {
  if (const auto found = out_of_memory_.find(config.gpu_type); found != out_of_memory_.end()) {
    const bool is_ruled_out = std::any_of(found->second.begin(), found->second.end(),
                                          [&](const Memory& memory) { return IsOutOfMemory(config, memory); });
    if (is_ruled_out) return api::TrialReason::kOutOfMemory;
  }
  const auto found = no_gain_above_.find({config.gpu_type, config.batch_size});
  return found != no_gain_above_.end() && config.gpus > found->second ? api::TrialReason::kNoMoreGain
                                                                      : api::TrialReason::kNone;
}

}  // namespace grus
