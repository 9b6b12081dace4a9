// SPDX-License-Identifier: Apache-2.0
// What pods used at most, in the annotations of the original Alnair, as its tools read them. Pure.
//
// On a pod: numbers as texts, "12.5", and Python's dict texts, "{'gpu_0_4711': 11}": percent by GPU and PID, or of the
// whole GPU, "gpu_0", where no process is known. On its owner: one dict text, "{'cpu_util': 12.5, 'node': 'n1'}".
// Numbers are rounded; what is not known has no key.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "clientlib/model/string_map.h"
#include "controllers/telemetry/pod_detail.h"

namespace grus {

inline constexpr std::size_t kMostProcesses = 32;            // Of a pod, in its annotations.
inline constexpr std::size_t kLongestAlnairText = 16 << 10;  // Longer ones are not read.

// By names as in the annotations.
using AlnairNumbers = std::map<std::string, double>;

struct AlnairPod {
  AlnairNumbers numbers = {};                      // "max_cpu_util": percent of a core. "max_network_mbps": MB/s.
  AlnairNumbers gpu_util = {}, gpu_mem_util = {};  // "gpu_0_4711", "gpu_0": percent.
  bool is_empty() const { return numbers.empty() && gpu_util.empty() && gpu_mem_util.empty(); }
};

struct AlnairOwned {           // A pod, as its owner knows it.
  AlnairNumbers numbers = {};  // "cpu_util", "n1-gpu-0_util"
  std::string node = {};
};

AlnairPod AlnairPodOf(const PodUsage& usage, const PodDetail& detail);
AlnairOwned AlnairOwnedOf(const PodUsage& usage, const PodDetail& detail, const std::string& node);

// Of two times the higher numbers.
void Raise(const AlnairPod& now, AlnairPod& so_far);
// Of a pod that has come back on another node, those of now.
void Raise(const AlnairOwned& now, AlnairOwned& so_far);

// How much a reader of `before` should hear of it: 0: no number is new or has risen by a tenth; else the most that one
// has risen, as a factor; infinite: one is new.
double RiseOf(const AlnairPod& before, const AlnairPod& now);
double RiseOf(const AlnairOwned& before, const AlnairOwned& now);

// Names, with their domain, and texts.
std::map<std::string, std::string> AnnotationsOf(const AlnairPod& pod);
std::string TextOf(const AlnairOwned& owned);

// What such texts say; texts that are not of this form, or very long, say nothing.
AlnairPod ReadAlnairPod(const kube::StringMap& annotations);
std::optional<AlnairOwned> ReadAlnairOwned(std::string_view text);

}  // namespace grus
