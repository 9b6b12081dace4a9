// SPDX-License-Identifier: Apache-2.0
// How fast a training runs on some GPUs, and the model made of such measurements: what TrialJob and
// WorkloadProfile share.
//
// Decimal numbers are strings like "812.4", so that no reader rounds them; a low and a high are the ends of
// the 90 % interval. What is not known is missing.
//
// Throughput is work a second. Its unit (ThroughputUnit) is the same in one object and makes sizes comparable: with a
// fixed batch size per GPU, two GPUs do twice the work in a step, so steps per second would not compare.
#pragma once

#include <compare>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/field.h"

namespace api {

inline constexpr char kDecimalPattern[] = R"(^[0-9]{1,15}(\.[0-9]{1,9})?$)";

// Batches are those of one GPU: when the samples in a batch are not known, and every GPU has a batch of its
// own. Steps: when all GPUs share one batch.
enum class ThroughputUnit {
  kNotKnown,
  kSamplesPerSecond,
  kBatchesPerSecond,
  kStepsPerSecond,
  kTokensPerSecond,
  kEpochsPerSecond
};
std::span<const std::string_view> EnumNames(ThroughputUnit);

struct TrialConfig {
  std::string gpu_type = {};                         // Empty: nodes of the workload's own choice.
  std::int32_t gpus = 0, nodes = 0, batch_size = 0;  // 0: not known.
  std::int32_t min_nodes = 0;  // Its workers are kept apart, so that they need as many; 0: packed.
  static std::span<const kube::FieldInfo> Fields();
  friend auto operator<=>(const TrialConfig&, const TrialConfig&) = default;
};

struct Measurement {
  std::string throughput = {}, throughput_low = {}, throughput_high = {};
  std::string step_milliseconds = {}, step_milliseconds_low = {}, step_milliseconds_high = {};
  std::optional<std::int64_t> steps = {}, peak_memory_bytes = {};
  std::optional<std::int32_t> utilization_percent = {};
  bool is_scope_unknown = false;  // Of the throughput: it may be of one GPU only.
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

struct ModelParameter {
  std::string name = {}, value = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const ModelParameter&, const ModelParameter&) = default;
};

// Of one GPU type.
struct ThroughputModel {
  std::string gpu_type = {}, form = {};
  std::vector<ModelParameter> parameters = {};
  std::string loo_error_percent = {};
  std::int32_t valid_max_gpus = 0;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const ThroughputModel&, const ThroughputModel&) = default;
};

}  // namespace api
