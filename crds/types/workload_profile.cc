// SPDX-License-Identifier: Apache-2.0
#include "crds/types/workload_profile.h"

namespace api {

using kube::CelRule;
using kube::Field;
using kube::FieldInfo;

std::span<const FieldInfo> ProfiledWorkload::Fields() {
  using T = ProfiledWorkload;
  static constexpr FieldInfo kFields[] = {
      Field<&T::image>("image", {.doc = "Image of the workers, by its digest where that is known.", .max_length = 512}),
      Field<&T::command>(
          "command",
          {.doc = "Words of the training command. Everybody who may read profiles can read them.", .max_items = 256}),
      Field<&T::args>("args",
                      {.doc = "Arguments of the container, if the workload lists them separately.", .max_items = 256}),
      Field<&T::resources>("resources", {.doc = "What each worker asks for besides its GPUs.", .max_items = 32}),
      Field<&T::gpus_per_worker>("gpusPerWorker",
                                 {.doc = "GPUs of each worker.", .minimum = 0, .maximum = 64, .default_json = "1"}),
      Field<&T::ns>("namespace",
                    {.doc = "Whose measurements these are, and who may use them. Empty: everybody.", .max_length = 63}),
      Field<&T::model>("model", {.doc = "What is trained, if the workload says so.", .max_length = 253}),
      Field<&T::dataset>("dataset", {.doc = "What it is trained on, if the workload says so.", .max_length = 253}),
  };
  return kFields;
}

std::span<const FieldInfo> ProfilePoint::Fields() {
  using T = ProfilePoint;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name", {.doc = "Name of the configuration; one point for each.",
                               .required = true,
                               .min_length = 1,
                               .max_length = 128}),
      Field<&T::config>("config", {.doc = "What it was measured on.", .required = true}),
      Field<&T::measured>("measured", {.doc = "What was measured.", .required = true}),
      Field<&T::gpu_seconds>("gpuSeconds", {.doc = "GPU seconds that the measurement has cost.", .minimum = 0}),
      Field<&T::measured_by>(
          "measuredBy", {.doc = "The TrialJob that measured it: NAMESPACE/NAME; or the job that showed it while it "
                                "ran: elastichorovodjob/NAMESPACE/NAME.",
                         .max_length = 317}),
      Field<&T::time>("time", {.doc = "When it was measured.", .required = true}),
  };
  return kFields;
}

namespace {

constexpr CelRule kFingerprintRules[] = {
    {"self == oldSelf", "fingerprint must not change: it is the profile's identity"}};
constexpr CelRule kWorkloadRules[] = {
    {"self == oldSelf", "workload must not change: another workload has another fingerprint, and a profile of its own"},
};
constexpr CelRule kUnitRules[] = {
    {"self == oldSelf", "throughputUnit must not change: the points are in it"},
};

}  // namespace

std::span<const FieldInfo> WorkloadProfileSpec::Fields() {
  using T = WorkloadProfileSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::fingerprint>(
          "fingerprint",
          {.doc = "Of the workload: all that can change its speed on given GPUs. Also the name of the profile.",
           .required = true,
           .min_length = 1,
           .max_length = 63,
           .pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
           .cel = kFingerprintRules}),
      Field<&T::workload>("workload",
                          {.doc = "What was measured, for people.", .default_json = "{}", .cel = kWorkloadRules}),
      Field<&T::throughput_unit>(
          "throughputUnit",
          {.doc = "Unit of every throughput here. BatchesPerSecond: batches of one GPU, when the samples in "
                  "a batch are not known. StepsPerSecond: the same, when all GPUs share one batch.",
           .cel = kUnitRules}),
      Field<&T::points>("points", {.doc = "The measurements; of a configuration, the newest.",
                                   .max_items = kMaxProfilePoints,
                                   .list_type = "map",
                                   .list_map_key = "name"}),
      Field<&T::runs>("runs", {.doc = "The last runs of the workload, and what they used.",
                               .max_items = kMaxProfileRuns,
                               .list_type = "map",
                               .list_map_key = "uid"}),
      Field<&T::features>("features", {.doc = "What it uses on each GPU type, by its runs.",
                                       .max_items = kMaxProfileFeatures,
                                       .list_type = "atomic"}),
      Field<&T::co_runs>("coRuns", {.doc = "How fast it was on GPUs that it shared with one other workload; of each "
                                           "partner and GPU type, the mean.",
                                    .max_items = kMaxCoRuns,
                                    .list_type = "map",
                                    .list_map_key = "name"}),
  };
  return kFields;
}

std::span<const FieldInfo> GpuTypeProfile::Fields() {
  using T = GpuTypeProfile;
  static constexpr FieldInfo kFields[] = {
      Field<&T::model>("model", {.doc = "The model made of its points."}),
      Field<&T::points>("points", {.doc = "Points that are about this GPU type.", .minimum = 0}),
      Field<&T::knee_gpus>(
          "kneeGpus", {.doc = "Smallest number of GPUs with nine tenths of the highest throughput. Missing: not known.",
                       .minimum = 1}),
  };
  return kFields;
}

std::span<const FieldInfo> ProfileDrift::Fields() {
  using T = ProfileDrift;
  static constexpr FieldInfo kFields[] = {
      Field<&T::job>("job", {.doc = "The job whose speed differs: NAMESPACE/NAME.", .max_length = 317}),
      Field<&T::config>("config", {.doc = "What it runs on, as in the measurement that it differs from."}),
      Field<&T::expected>("expected", {.doc = "Its speed according to this profile."}),
      Field<&T::observed>("observed", {.doc = "Its speed as observed."}),
      Field<&T::time>("time", {.doc = "When it was observed."}),
  };
  return kFields;
}

std::span<const FieldInfo> WorkloadProfileStatus::Fields() {
  using T = WorkloadProfileStatus;
  static constexpr FieldInfo kFields[] = {
      Field<&T::observed_generation>("observedGeneration", {.doc = "The generation this status is about."}),
      Field<&T::conditions>("conditions",
                            {.doc = "Ready: it has measurements. Drifted: a running job is not as fast as measured.",
                             .max_items = 16,
                             .list_type = "map",
                             .list_map_key = "type"}),
      Field<&T::gpus>("gpus", {.doc = "The GPU types of the points, joined by commas.", .max_length = 1024}),
      Field<&T::knee>(
          "knee", {.doc = "GPUs at the knee of each of them, joined by commas. \"?\": not known; \"8+\": 8 or more, "
                          "the largest size measured.",
                   .max_length = 128}),
      Field<&T::points>("points", {.doc = "Number of points.", .minimum = 0}),
      Field<&T::gpu_types>("gpuTypes",
                           {.doc = "What the points of each GPU type say.", .max_items = 16, .list_type = "atomic"}),
      Field<&T::drift>("drift", {.doc = "The job whose speed differs from the measurement. Removed when it agrees "
                                        "again, or when the new speed has replaced the measurement."}),
  };
  return kFields;
}

const kube::Kind& WorkloadProfile::ResourceKind() {
  using T = WorkloadProfile;
  static constexpr FieldInfo kFields[] = {
      Field<&T::spec>("spec", {.doc = "What was measured.", .required = true}),
      Field<&T::status>("status", {.doc = "What grus derives from the measurements."}),
  };
  static const kube::Kind kKind = kube::MakeKind<T>({.group = "ai.centauruscloud.io",
                                                     .version = "v1alpha1",
                                                     .kind = "WorkloadProfile",
                                                     .plural = "workloadprofiles",
                                                     .is_namespaced = false,
                                                     .fields = kFields});
  return kKind;
}

}  // namespace api
