// SPDX-License-Identifier: Apache-2.0
// What a workload did with its GPUs: in each of its last runs, and on each GPU type. Part of WorkloadProfile.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "clientlib/model/field.h"
#include "clientlib/model/time.h"

namespace api {

inline constexpr std::int64_t kMaxProfileRuns = 32, kMaxProfileFeatures = 16;

// Means over time, and maxima. What no source told is missing; it is never zero for that.
struct ResourceUsage {
  std::optional<std::int32_t> gpu_utilization_percent = {}, max_gpu_utilization_percent = {};
  std::optional<std::int32_t> memory_bandwidth_percent = {};
  std::optional<std::int64_t> max_gpu_memory_bytes = {};  // Of one GPU.
  std::string cpu_cores = {};                             // A decimal.
  std::optional<std::int64_t> max_memory_bytes = {};      // Of one pod.
  std::optional<std::int64_t> network_bytes_per_second = {}, disk_bytes_per_second = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const ResourceUsage&, const ResourceUsage&) = default;
};

enum class RunOutcome { kNotKnown, kSucceeded, kFailed, kDeleted };
std::span<const std::string_view> EnumNames(RunOutcome);

// What it does and what holds it back, as its series show. Unknown: they do not, or not clearly.
struct RunCharacter {
  std::string kind = {};        // "Training"
  std::string bottleneck = {};  // "Input"
  std::optional<std::int64_t> cycle_seconds = {}, iteration_seconds = {};
  std::optional<std::int64_t> predicted_max_gpu_memory_bytes = {};  // Of one GPU, at the end of the run.
  std::string message = {};
  kube::Time time = {};  // When it was looked at.
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const RunCharacter&, const RunCharacter&) = default;
};

// One object that ran the workload, from its first pod with GPUs to its last.
struct WorkloadRun {
  std::string uid = {};  // Of the object.
  std::string job = {};  // "ElasticHorovodJob/team-a/resnet".
  std::string gpu_type = {};
  std::int32_t gpus = 0;  // The most at a time.
  std::int64_t gpu_seconds = 0;
  kube::Time start = {};
  std::optional<kube::Time> end = {};  // Missing: it runs.
  RunOutcome outcome = RunOutcome::kNotKnown;
  ResourceUsage usage = {};
  std::optional<RunCharacter> character = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const WorkloadRun&, const WorkloadRun&) = default;
};

struct GpuTypeFeatures {
  std::string gpu_type = {};  // Empty: not known.
  std::int32_t runs = 0;      // That these numbers are of.
  ResourceUsage usage = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const GpuTypeFeatures&, const GpuTypeFeatures&) = default;
};

}  // namespace api
