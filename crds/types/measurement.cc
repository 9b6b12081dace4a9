// SPDX-License-Identifier: Apache-2.0
#include "crds/types/measurement.h"

namespace api {

using kube::Field;
using kube::FieldInfo;

std::span<const std::string_view> EnumNames(ThroughputUnit) {
  static constexpr std::string_view kNames[] = {
      "", "SamplesPerSecond", "BatchesPerSecond", "StepsPerSecond", "TokensPerSecond", "EpochsPerSecond"};
  return kNames;
}

std::span<const FieldInfo> TrialConfig::Fields() {
  using T = TrialConfig;
  static constexpr FieldInfo kFields[] = {
      Field<&T::gpu_type>("gpuType",
                          {.doc = "GPU type. Missing: nodes of the workload's own choice.", .max_length = 63}),
      Field<&T::gpus>("gpus", {.doc = "Total number of GPUs.", .minimum = 0}),
      Field<&T::nodes>("nodes", {.doc = "Nodes that they are on.", .omit_zero = true, .minimum = 0}),
      Field<&T::batch_size>("batchSize",
                            {.doc = "Batch size. Missing: the workload's own.", .omit_zero = true, .minimum = 0}),
      Field<&T::min_nodes>("minNodes", {.doc = "Nodes that its workers are spread over, the same number on each. "
                                               "Missing: they are packed, on as few nodes as have room.",
                                        .omit_zero = true,
                                        .minimum = 0}),
  };
  return kFields;
}

std::span<const FieldInfo> Measurement::Fields() {
  using T = Measurement;
  static constexpr FieldInfo kFields[] = {
      Field<&T::throughput>("throughput",
                            {.doc = "Work per second, in the object's throughputUnit.", .pattern = kDecimalPattern}),
      Field<&T::throughput_low>("throughputLow",
                                {.doc = "Lower end of its 90 % interval.", .pattern = kDecimalPattern}),
      Field<&T::throughput_high>("throughputHigh",
                                 {.doc = "Upper end of its 90 % interval.", .pattern = kDecimalPattern}),
      Field<&T::is_scope_unknown>("scopeUnknown", {.doc = "The log does not say whether the throughput is of one GPU, "
                                                          "of one process or of the whole job.",
                                                   .omit_zero = true}),
      Field<&T::step_milliseconds>("stepMilliseconds",
                                   {.doc = "Mean time of a training step.", .pattern = kDecimalPattern}),
      Field<&T::step_milliseconds_low>("stepMillisecondsLow",
                                       {.doc = "Lower end of its 90 % interval.", .pattern = kDecimalPattern}),
      Field<&T::step_milliseconds_high>("stepMillisecondsHigh",
                                        {.doc = "Upper end of its 90 % interval.", .pattern = kDecimalPattern}),
      Field<&T::steps>("steps", {.doc = "Training steps that were measured, without the warm-up.", .minimum = 0}),
      Field<&T::peak_memory_bytes>("peakMemoryBytes", {.doc = "Most memory in use on any of the GPUs.", .minimum = 0}),
      Field<&T::utilization_percent>("utilizationPercent",
                                     {.doc = "Mean utilisation of the GPUs.", .minimum = 0, .maximum = 100}),
  };
  return kFields;
}

std::span<const FieldInfo> ModelParameter::Fields() {
  using T = ModelParameter;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name", {.doc = "Name, with its unit.", .required = true, .min_length = 1, .max_length = 63}),
      Field<&T::value>("value", {.doc = "Value, a decimal number; it may have an exponent.",
                                 .required = true,
                                 .max_length = 32,
                                 .pattern = R"(^-?[0-9]{1,15}(\.[0-9]{1,17})?([eE][-+]?[0-9]{1,3})?$)"}),
  };
  return kFields;
}

std::span<const FieldInfo> ThroughputModel::Fields() {
  using T = ThroughputModel;
  static constexpr FieldInfo kFields[] = {
      Field<&T::gpu_type>("gpuType", {.doc = "The GPU type that it is for.", .max_length = 63}),
      Field<&T::form>("form", {.doc = "Form of the model.", .max_length = 63}),
      Field<&T::parameters>("parameters",
                            {.doc = "Its parameters.", .max_items = 32, .list_type = "map", .list_map_key = "name"}),
      Field<&T::loo_error_percent>("looErrorPercent", {.doc = "Leave-one-out error: how far the model, fitted without "
                                                              "a point, is from that point; the mean over all points.",
                                                       .pattern = kDecimalPattern}),
      Field<&T::valid_max_gpus>("validMaxGpus", {.doc = "Highest number of GPUs that it predicts.", .minimum = 0}),
  };
  return kFields;
}

}  // namespace api
