// SPDX-License-Identifier: Apache-2.0
// Policies of the replay. Which pairs fit into a GPU's memory, all of them know; how fast they are, none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/interference/replay/sharing_replay.h"
#include "controllers/interference/pair_speed_cache.h"

namespace grus {

// Each job has a GPU for itself.
class ExclusivePolicy final : public SharingPolicy {
 public:
  std::optional<std::size_t> Choose(std::size_t kind, const std::vector<std::vector<std::size_t>>& gpus,
                                    std::size_t waiting_jobs) override;
};

// As gpushare's scheduler on a node: of the GPUs on which the job's memory fits, the one that has the least left.
class MemoryBestFit final : public SharingPolicy {
 public:
  // `memory`: of each kind. `free_first`: a free GPU before any that is shared, which gpushare does not do.
  MemoryBestFit(const MeasuredSpeeds& speeds, std::vector<double> memory, bool free_first)
      : speeds_(speeds), memory_(std::move(memory)), free_first_(free_first) {}
  std::optional<std::size_t> Choose(std::size_t kind, const std::vector<std::vector<std::size_t>>& gpus,
                                    std::size_t waiting_jobs) override;

 private:
  const MeasuredSpeeds& speeds_;  // Only for which pairs fit.
  std::vector<double> memory_;
  bool free_first_;
};

// ChooseGpu with the model of this cache.
class GrusSharing final : public SharingPolicy {
 public:
  GrusSharing(const MeasuredSpeeds& speeds, std::string gpu_type, std::shared_ptr<PairSpeedCache> cache)
      : speeds_(speeds), gpu_type_(std::move(gpu_type)), cache_(std::move(cache)) {}
  std::optional<std::size_t> Choose(std::size_t kind, const std::vector<std::vector<std::size_t>>& gpus,
                                    std::size_t waiting_jobs) override;

 private:
  const MeasuredSpeeds& speeds_;  // Only for which pairs fit.
  std::string gpu_type_;
  std::shared_ptr<PairSpeedCache> cache_;
};

// GiB that a kind of Gavel's table takes. An assumption: the table has no sizes. Each family has a size and so much a
// sample; so chosen that they tell which pairs ran on GPUs of 12 and 16 GiB, as they do for all but 25 of 1,027.
std::vector<double> AssumedMemory(const std::vector<std::string>& kinds);

}  // namespace grus
