// SPDX-License-Identifier: Apache-2.0
// The GPUs of a node as gpushare counts them: from 0, in the order of the node's inventory, sick ones too, as the node
// agent counts them. And which of them somebody has taken out of use. Pure.
//
// Where gpushare's own device plugin runs, nobody says more than how many GPUs there are and what they have together.
// They count as equally large there, as that plugin takes them, and their numbers are their names.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/core_v1.h"
#include "controllers/policy/resources.h"

namespace grus {

struct GpushareGpu {
  std::string uuid = {};
  std::int64_t gib = 0;  // 0: it is offered in another way.
  friend bool operator==(const GpushareGpu&, const GpushareGpu&) = default;
};

// Empty: it offers none in this way.
std::vector<GpushareGpu> GpushareGpusOf(const kube::Node& node);

// Adds what each GPU offers where gpushare's own plugin runs.
void AddGpushareGpus(const kube::Node& node, Resources& allocatable);

// The GPU of a bound pod by gpushare's own extender, a number; empty: not known. Whoever wrote it: what grus has
// planned or the agent has given goes before.
std::string AssumedGpuOf(const kube::Pod& pod);

// By whoever runs the cluster: the ConfigMap "unhealthy-gpu-NODE" of this namespace, whose text `gpus` lists numbers.
inline constexpr char kUnhealthyGpusNamespace[] = "kube-system";
std::string UnhealthyGpusOf(std::string_view node);                 // Its name.
std::string_view NodeOfUnhealthyGpus(std::string_view config_map);  // Empty: it is another one.

// "0,2". nullopt: something of it is no number of a GPU.
std::optional<std::set<std::size_t>> UnhealthyGpusIn(std::string_view text);

// Takes these GPUs from what the node offers. The sum stays, since pods that run there count in it, too.
void WithholdGpushareGpus(const kube::Node& node, const std::set<std::size_t>& numbers, Resources& allocatable);

}  // namespace grus
