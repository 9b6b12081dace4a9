// SPDX-License-Identifier: Apache-2.0
#include "crds/types/trial_job_status.h"

namespace api {

using kube::Field;
using kube::FieldInfo;

std::span<const std::string_view> EnumNames(CurveSource) {
  static constexpr std::string_view kNames[] = {"Unknown", "Measured", "Interpolated", "Extrapolated"};
  return kNames;
}

std::span<const std::string_view> EnumNames(Goal) {
  static constexpr std::string_view kNames[] = {"Fastest", "Cheapest", "Knee"};
  return kNames;
}

std::span<const FieldInfo> Trial::Fields() {
  using T = Trial;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name", {.doc = "Name of the trial's ElasticHorovodJob, or of its first pod.",
                               .required = true,
                               .min_length = 1,
                               .max_length = 63}),
      Field<&T::config>("config", {.doc = "What was to be measured.", .required = true}),
      Field<&T::phase>("phase", {.doc = "What the trial is doing.", .required = true}),
      Field<&T::reason>("reason", {.doc = "Why it is in this phase, in one word."}),
      Field<&T::message>("message", {.doc = "Why it is in this phase, for a person.", .max_length = 1024}),
      Field<&T::start_time>("startTime", {.doc = "When its job, or its first pod, was created."}),
      Field<&T::end_time>("endTime", {.doc = "When it ended."}),
      Field<&T::measured>("measured", {.doc = "What was measured, so far or in the end."}),
      Field<&T::gpu_seconds>("gpuSeconds",
                             {.doc = "GPU seconds: GPUs times the seconds that the trial held them.", .minimum = 0}),
      Field<&T::is_repeat>(
          "isRepeat",
          {.doc = "It was far slower than the other sizes say, and was measured once more.", .omit_zero = true}),
  };
  return kFields;
}

std::span<const FieldInfo> CurvePoint::Fields() {
  using T = CurvePoint;
  static constexpr FieldInfo kFields[] = {
      Field<&T::gpu_type>("gpuType",
                          {.doc = "GPU type. Missing: nodes of the workload's own choice.", .max_length = 63}),
      Field<&T::gpus>("gpus", {.doc = "Total number of GPUs.", .required = true, .minimum = 1}),
      Field<&T::batch_size>("batchSize",
                            {.doc = "Batch size. Missing: the workload's own.", .omit_zero = true, .minimum = 0}),
      Field<&T::source>("source", {.doc = "Measured by a trial, or predicted by the model between or beyond "
                                          "the measured sizes. Unknown: the model's interval is wider than "
                                          "spec.extrapolate.maxIntervalRatio, so there is no number.",
                                   .required = true}),
      Field<&T::throughput>("throughput",
                            {.doc = "Work per second, in status.throughputUnit.", .pattern = kDecimalPattern}),
      Field<&T::throughput_low>("throughputLow",
                                {.doc = "Lower end of its 90 % interval.", .pattern = kDecimalPattern}),
      Field<&T::throughput_high>("throughputHigh",
                                 {.doc = "Upper end of its 90 % interval.", .pattern = kDecimalPattern}),
      Field<&T::speed_up>("speedUp", {.doc = "Throughput compared with that of one GPU. If one GPU was not "
                                             "measured, the smallest size counts as perfectly scaled.",
                                      .pattern = kDecimalPattern}),
      Field<&T::efficiency>("efficiency",
                            {.doc = "Speed-up by GPUs: \"1\" is linear scaling.", .pattern = kDecimalPattern}),
  };
  return kFields;
}

std::span<const FieldInfo> Recommendation::Fields() {
  using T = Recommendation;
  static constexpr FieldInfo kFields[] = {
      Field<&T::goal>(
          "goal",
          {.doc =
               "Fastest: the highest throughput. Cheapest: the most work for a GPU second, or for the money if "
               "spec.space.gpuTypes have prices. Knee: the smallest size with nine tenths of the highest throughput.",
           .required = true}),
      Field<&T::gpus>("gpus",
                      {.doc = "Total number of GPUs. Missing: not known, and the message says why.", .minimum = 1}),
      Field<&T::gpu_type>("gpuType",
                          {.doc = "GPU type. Missing: nodes of the workload's own choice.", .max_length = 63}),
      Field<&T::batch_size>("batchSize",
                            {.doc = "Batch size. Missing: the workload's own.", .omit_zero = true, .minimum = 0}),
      Field<&T::source>("source", {.doc = "Whether this size was measured or predicted.", .required = true}),
      Field<&T::throughput>("throughput",
                            {.doc = "Work per second, in status.throughputUnit.", .pattern = kDecimalPattern}),
      Field<&T::speed_up>("speedUp", {.doc = "As in the curve.", .pattern = kDecimalPattern}),
      Field<&T::message>("message", {.doc = "The recommendation in a sentence.", .max_length = 1024}),
      Field<&T::size>("size", {.doc = "GPUs, their type, and x the batch size; or Unknown.", .max_length = 128}),
  };
  return kFields;
}

std::span<const FieldInfo> TrialCost::Fields() {
  using T = TrialCost;
  static constexpr FieldInfo kFields[] = {
      Field<&T::gpu_seconds>("gpuSeconds", {.doc = "GPUs times the seconds that trials held them.", .minimum = 0}),
      Field<&T::wall_seconds>("wallSeconds",
                              {.doc = "Seconds since the first trial began, without suspended time.", .minimum = 0}),
      Field<&T::time>("time", {.doc = "When this was counted."}),
  };
  return kFields;
}

std::span<const FieldInfo> CacheSavings::Fields() {
  using T = CacheSavings;
  static constexpr FieldInfo kFields[] = {
      Field<&T::gpu_seconds>("gpuSeconds", {.doc = "GPU seconds that the reused measurements had cost.", .minimum = 0}),
      Field<&T::trials>("trials", {.doc = "Trials that were not run because the cache had them.", .minimum = 0}),
  };
  return kFields;
}

std::span<const FieldInfo> TrialJobStatus::Fields() {
  using T = TrialJobStatus;
  static constexpr FieldInfo kFields[] = {
      Field<&T::observed_generation>("observedGeneration", {.doc = "The generation this status is about."}),
      Field<&T::phase>("phase", {.doc = "What the TrialJob is doing. Waiting: the next trial does not fit, "
                                        "or spec.idleOnly keeps it waiting."}),
      Field<&T::conditions>("conditions",
                            {.doc = "Ready: the result is there; False, its reason and message say why not. "
                                    "Reconciling: trials run or wait. Stalled: somebody has to help, or nothing was "
                                    "measured. Suspended: spec.suspend stops it. Complete, Failed: it has ended.",
                             .max_items = 16,
                             .list_type = "map",
                             .list_map_key = "type"}),
      Field<&T::progress>("progress", {.doc = "Ended trials, and the number planned: \"5/8\".", .max_length = 15}),
      Field<&T::eta>("eta",
                     {.doc = "When it is done, if its other trials take as long as those that succeeded. Missing: "
                             "none has succeeded yet, or none runs."}),
      Field<&T::eta_latest>("etaLatest", {.doc = "When it is done if each trial takes as long as it may. Time in which "
                                                 "trials wait for GPUs comes on top."}),
      Field<&T::throughput_unit>(
          "throughputUnit",
          {.doc = "Unit of every throughput here. BatchesPerSecond: batches of one GPU, when the samples in "
                  "a batch are not known. StepsPerSecond: the same, when all GPUs share one batch."}),
      Field<&T::trials>("trials", {.doc = "The trials, in the order of their start.",
                                   .max_items = kMaxTrials,
                                   .list_type = "map",
                                   .list_map_key = "name"}),
      Field<&T::curve>("curve", {.doc = "Throughput over GPUs, for each GPU type and batch size.",
                                 .max_items = kMaxCurvePoints,
                                 .list_type = "atomic"}),
      Field<&T::model>("model", {.doc = "The model behind the curve, of the GPU type that the knee is on."}),
      Field<&T::recommendation>("recommendation", {.doc = "What to run the workload on, one for each goal.",
                                                   .max_items = 3,
                                                   .list_type = "map",
                                                   .list_map_key = "goal"}),
      Field<&T::spent>("spent", {.doc = "What the trials have cost."}),
      Field<&T::saved_by_cache>("savedByCache", {.doc = "What the cache has saved."}),
      Field<&T::fingerprint>("fingerprint",
                             {.doc = "Of the workload: all that can change its speed. The WorkloadProfile of "
                                     "the same fingerprint keeps its measurements.",
                              .max_length = 64}),
      Field<&T::start_time>("startTime", {.doc = "When the first trial began."}),
      Field<&T::completion_time>("completionTime", {.doc = "When the last trial ended."}),
  };
  return kFields;
}

}  // namespace api
