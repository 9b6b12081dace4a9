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

std::span<const FieldInfo> RunCharacter::Fields() {
  using T = RunCharacter;
  static constexpr std::string_view kKinds[] = {"Unknown", "Training", "Inference", "Batch", "Interactive", "Idle"};
  static constexpr std::string_view kBottlenecks[] = {"Unknown",         "None",         "Input", "Compute",
                                                      "MemoryBandwidth", "Communication"};
  static constexpr FieldInfo kFields[] = {
      Field<&T::kind>("kind",
                      {.doc = "What it does with its GPUs. Training: it works in cycles. Batch: it ends, and "
                              "works steadily. Inference: it serves. Interactive: people work with it. Idle: it "
                              "does not use them.",
                       .enum_values = kKinds}),
      Field<&T::bottleneck>("bottleneck", {.doc = "What its GPUs wait for, or do most.", .enum_values = kBottlenecks}),
      Field<&T::cycle_seconds>("cycleSeconds", {.doc = "Length of its longest cycle, as an epoch.", .minimum = 0}),
      Field<&T::iteration_seconds>("iterationSeconds", {.doc = "Length of the cycle within it.", .minimum = 0}),
      Field<&T::predicted_max_gpu_memory_bytes>(
          "predictedMaxGpuMemoryBytes",
          {.doc = "Most memory that it will have used of one GPU when it ends.", .minimum = 0}),
      Field<&T::message>("message", {.doc = "The same in a sentence, with its numbers.", .max_length = 1024}),
      Field<&T::time>("time", {.doc = "When its series were looked at.", .required = true}),
  };
  return kFields;
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
      Field<&T::character>("character",
                           {.doc = "What it does, and what holds it back; of runs of five minutes and more."}),
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
