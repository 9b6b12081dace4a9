// SPDX-License-Identifier: Apache-2.0
#include "crds/types/workload_usage.h"

#include "crds/types/measurement.h"

namespace api {

using kube::Field;
using kube::FieldInfo;

std::span<const FieldInfo> ResourceUsage::Fields() {
  using T = ResourceUsage;
  static constexpr FieldInfo kFields[] = {
      Field<&T::gpu_utilization_percent>(
          "gpuUtilizationPercent",
          {.doc = "Share of the time in which its GPUs computed, the mean over them.", .minimum = 0, .maximum = 100}),
      Field<&T::max_gpu_utilization_percent>(
          "maxGpuUtilizationPercent",
          {.doc = "The highest utilisation that was seen of one GPU.", .minimum = 0, .maximum = 100}),
      Field<&T::memory_bandwidth_percent>(
          "memoryBandwidthPercent",
          {.doc = "Share of the time in which the GPUs' memory was read or written, the mean.",
           .minimum = 0,
           .maximum = 100}),
      Field<&T::max_gpu_memory_bytes>("maxGpuMemoryBytes",
                                      {.doc = "Most memory in use on any of its GPUs.", .minimum = 0}),
      Field<&T::cpu_cores>("cpuCores", {.doc = "Cores that all its pods with GPUs used together, the mean.",
                                        .pattern = kDecimalPattern}),
      Field<&T::max_memory_bytes>("maxMemoryBytes", {.doc = "Most memory of any of these pods.", .minimum = 0}),
      Field<&T::network_bytes_per_second>(
          "networkBytesPerSecond",
          {.doc = "Bytes that these pods received and sent each second, the mean.", .minimum = 0}),
      Field<&T::disk_bytes_per_second>("diskBytesPerSecond",
                                       {.doc = "Bytes that they read and wrote each second, the mean.", .minimum = 0}),
  };
  return kFields;
}

std::span<const std::string_view> EnumNames(RunOutcome) {
  static constexpr std::string_view kNames[] = {"", "Succeeded", "Failed", "Deleted"};
  return kNames;
}

std::span<const FieldInfo> WorkloadRun::Fields() {
  using T = WorkloadRun;
  static constexpr FieldInfo kFields[] = {
      Field<&T::uid>("uid",
                     {.doc = "UID of the object that ran.", .required = true, .min_length = 1, .max_length = 63}),
      Field<&T::job>("job", {.doc = "That object: KIND/NAMESPACE/NAME.", .required = true, .max_length = 400}),
      Field<&T::gpu_type>("gpuType", {.doc = "GPU type that it ran on, if that is known.", .max_length = 63}),
      Field<&T::gpus>("gpus", {.doc = "The most GPUs that it had at a time.", .minimum = 0}),
      Field<&T::gpu_seconds>("gpuSeconds", {.doc = "GPU seconds that it has used.", .minimum = 0}),
      Field<&T::start>("start", {.doc = "When its first pod with GPUs began.", .required = true}),
      Field<&T::end>("end", {.doc = "When its last one ended. Missing: it runs."}),
      Field<&T::outcome>("outcome", {.doc = "How it ended. Deleted: its pods were, before they ended."}),
      Field<&T::usage>("usage", {.doc = "What it used."}),
  };
  return kFields;
}

std::span<const FieldInfo> GpuTypeFeatures::Fields() {
  using T = GpuTypeFeatures;
  static constexpr FieldInfo kFields[] = {
      Field<&T::gpu_type>("gpuType", {.doc = "The GPU type; empty: it is not known.", .max_length = 63}),
      Field<&T::runs>("runs", {.doc = "Runs that these numbers are of.", .minimum = 0}),
      Field<&T::usage>("usage", {.doc = "What the workload uses on such GPUs: the mean of its runs, by GPU seconds, "
                                        "and their maxima."}),
  };
  return kFields;
}

}  // namespace api
