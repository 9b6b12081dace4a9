// SPDX-License-Identifier: Apache-2.0
// The pods of PartModel, and what its containers were told.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "nodeagent/sharing/gpushare_assumption.h"
#include "nodeagent/sharing/part_resources.h"

namespace grus::testing {

struct ModelOptions {
  std::uint64_t seed = 0;
  SharingMode mode = SharingMode::kAlnair;
  bool is_honest = true;       // What the agent reads is there, and is what is so now.
  bool says_memory = false;    // Some pods say how much memory their thousandths shall bring.
  bool asks_whole = false;     // Some containers ask for whole GPUs, where thousandths are given.
  bool lists_admitted = true;  // PodResources lists the pod that the kubelet admits, before it holds anything.
};

struct ModelContainer {
  std::string name = {};
  PartAmounts amounts = {};
};

struct ModelPod {
  std::string name = {};
  std::vector<std::string> planned_gpus = {};
  std::optional<GpushareAssumption> assumed = {};
  std::int64_t memory_mib = 0;  // Of each container; 0: in proportion.
  std::vector<ModelContainer> containers = {};
};

// What a run has seen.
struct ModelCounts {
  int admitted = 0, refused = 0, started = 0, delayed = 0, agent_restarts = 0, kubelet_restarts = 0, split = 0,
      as_assumed = 0, whole = 0, as_planned = 0;
};

// UUIDs of GPUs of which nobody has a thousandth.
inline std::set<std::string> FreeGpus(const std::map<std::string, PartAmounts>& free) {
  std::set<std::string> gpus;
  for (const auto& [gpu, amounts] : free) {
    if (amounts[PartResource::kMilli] == 1000) gpus.insert(gpu);
  }
  return gpus;
}

// What a container was told, by GPU.
inline std::map<std::string, std::int64_t> Told(std::map<std::string, std::string>& environment, const char* key) {
  std::istringstream gpus(environment["NVIDIA_VISIBLE_DEVICES"]), numbers(environment[key]);
  std::map<std::string, std::int64_t> told;
  std::string number;
  for (std::string gpu; std::getline(gpus, gpu, ',');) {
    told[gpu] = std::getline(numbers, number, ',') ? std::stoll(number) : 0;
  }
  return told;
}

}  // namespace grus::testing
