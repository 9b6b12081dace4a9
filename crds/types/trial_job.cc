// SPDX-License-Identifier: Apache-2.0
#include "crds/types/trial_job.h"

namespace api {

using kube::CelRule;
using kube::Field;
using kube::FieldInfo;

std::span<const std::string_view> EnumNames(BatchSizeScope) {
  static constexpr std::string_view kNames[] = {"PerGpu", "PerJob"};
  return kNames;
}

std::span<const std::string_view> EnumNames(StrategyType) {
  static constexpr std::string_view kNames[] = {"Ladder", "Grid"};
  return kNames;
}

std::span<const std::string_view> EnumNames(CachePolicy) {
  static constexpr std::string_view kNames[] = {"Use", "Refresh", "Off"};
  return kNames;
}

std::span<const std::string_view> EnumNames(Placement) {
  static constexpr std::string_view kNames[] = {"Packed", "Spread"};
  return kNames;
}

std::span<const std::string_view> EnumNames(ApplyPolicy) {
  static constexpr std::string_view kNames[] = {"Recommend", "Apply"};
  return kNames;
}

std::span<const std::string_view> EnumNames(TrialCleanup) {
  static constexpr std::string_view kNames[] = {"Always", "OnSuccess", "Never"};
  return kNames;
}

std::span<const FieldInfo> JobRef::Fields() {
  using T = JobRef;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name", {.doc = "Name of the job, in the namespace of the TrialJob.",
                               .required = true,
                               .min_length = 1,
                               .max_length = 253}),
  };
  return kFields;
}

std::span<const FieldInfo> TrialTemplate::Fields() {
  using T = TrialTemplate;
  static constexpr FieldInfo kFields[] = {
      Field<&T::spec>("spec", {.doc = "The spec of an ElasticHorovodJob. Each trial sets the numbers of replicas.",
                               .required = true}),
  };
  return kFields;
}

std::span<const FieldInfo> TrialWorkload::Fields() {
  using T = TrialWorkload;
  static constexpr FieldInfo kFields[] = {
      Field<&T::job_ref>(
          "jobRef", {.doc = "An ElasticHorovodJob to measure. It may be suspended, and is only read; only apply: Apply "
                            "sets its size, in the end. Each trial is a job of its own, created from its spec."}),
      Field<&T::job_template>("template", {.doc = "A job to measure that need not exist: its spec."}),
      Field<&T::pod_template>(
          "podTemplate",
          {.doc =
               "A pod template: each trial is a pod of its own. The container that asks for GPUs, or else the first, "
               "does the training, and a trial of n GPUs gives it n. If its command runs torchrun without "
               "--standalone and --nnodes, or space.placements or space.nodeCounts is set, a trial may also be a "
               "gang of pods, one on each node, with the variables that torchrun reads. The pods never restart, and "
               "labels and annotations are kept."}),
  };
  return kFields;
}

std::span<const FieldInfo> GpuType::Fields() {
  using T = GpuType;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name", {.doc = "Name of the GPU type: the value of the node label nvidia.com/gpu.product, or "
                                      "any name if nodeSelector says which nodes it means.",
                               .required = true,
                               .min_length = 1,
                               .max_length = 63,
                               .pattern = "^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"}),
      Field<&T::node_selector>("nodeSelector",
                               {.doc = "Labels of the nodes with this GPU type. nvidia.com/gpu.product with "
                                       "the name as its value if not set.",
                                .max_items = 16}),
      Field<&T::price_per_hour>(
          "pricePerHour",
          {.doc = "What a GPU of this type costs in an hour, \"2.50\", in the same currency for all. With it, Cheapest "
                  "is the size that does most work for the money; without, for a GPU second.",
           .pattern = kDecimalPattern}),
  };
  return kFields;
}

namespace {

constexpr CelRule kPriceRules[] = {
    {"self.all(t, has(t.pricePerHour)) || !self.exists(t, has(t.pricePerHour))",
     "space.gpuTypes must all have a pricePerHour, or none: GPUs without a price cannot be compared with others"},
    {"self.all(t, !has(t.pricePerHour) || double(t.pricePerHour) > 0.0)",
     "space.gpuTypes[].pricePerHour must be more than 0"},
};
constexpr CelRule kGpuCountRules[] = {
    {"self.all(n, n >= 1 && n <= 65536)", "space.gpuCounts must be numbers from 1 to 65536"},
};
constexpr CelRule kNodeCountRules[] = {
    {"self.all(n, n >= 1 && n <= 1024)", "space.nodeCounts must be numbers from 1 to 1024"},
};
constexpr CelRule kBatchSizeRules[] = {
    {"self.all(n, n >= 1)", "space.batchSizes must be numbers of at least 1"},
};
constexpr CelRule kSpaceRules[] = {
    {"!has(self.batchSizes) || size(self.batchSizes) < 2 || has(self.batchSizeEnv) || "
     "has(self.batchSizeOption)",
     "space.batchSizes with more than one size needs space.batchSizeEnv or space.batchSizeOption, so that "
     "the size reaches the training"},
    // Without gpuCounts there are at most 14: the powers of two up to the 10000 workers of a job.
    {"(has(self.gpuTypes) && size(self.gpuTypes) > 0 ? size(self.gpuTypes) : 1) * (has(self.gpuCounts) && "
     "size(self.gpuCounts) > 0 ? size(self.gpuCounts) : 14) * (has(self.batchSizes) && size(self.batchSizes) "
     "> 0 ? size(self.batchSizes) : 1) * (1 + (has(self.nodeCounts) ? size(self.nodeCounts) : 0) + "
     "(has(self.placements) ? size(self.placements) : 0)) <= 10000",
     "space must have at most 10000 configurations: gpuTypes times gpuCounts times batchSizes, for each of placements "
     "and nodeCounts"},
};
constexpr CelRule kMeasureRules[] = {
    {"self.source != 'Prometheus' || has(self.prometheus)", "measure.source Prometheus needs measure.prometheus"},
    {"self.source == 'Prometheus' || !has(self.prometheus)", "measure.prometheus needs measure.source Prometheus"},
    {"self.source == 'Logs' || !has(self.patterns) || size(self.patterns) == 0",
     "measure.patterns needs measure.source Logs"},
};
constexpr CelRule kWorkloadRules[] = {
    {"[has(self.jobRef), has(self.template), has(self.podTemplate)].filter(given, given).size() == 1",
     "workload needs exactly one of jobRef, template and podTemplate"},
};
constexpr CelRule kSpecRules[] = {
    {"!has(self.workload.template) || self.workload.template.spec.workersSpec.gpusPerWorker >= 1",
     "workload.template.spec.workersSpec.gpusPerWorker must be at least 1: a trial measures GPUs"},
    {"!has(self.workload.template) || !has(self.space.gpuCounts) || "
     "self.workload.template.spec.workersSpec.gpusPerWorker < 1 || self.space.gpuCounts.all(n, n % "
     "self.workload.template.spec.workersSpec.gpusPerWorker == 0)",
     "space.gpuCounts must be multiples of workload.template.spec.workersSpec.gpusPerWorker"},
    {"self.apply == 'Recommend' || has(self.workload.jobRef)",
     "apply: Apply needs workload.jobRef, the job to apply the recommendation to"},
};

}  // namespace

std::span<const FieldInfo> TrialSpace::Fields() {
  using T = TrialSpace;
  static constexpr FieldInfo kFields[] = {
      Field<&T::gpu_types>("gpuTypes",
                           {.doc = "GPU types to measure on. If not set, any node that the workload may run on.",
                            .max_items = 16,
                            .list_type = "map",
                            .list_map_key = "name",
                            .cel = kPriceRules}),
      Field<&T::gpu_counts>(
          "gpuCounts",
          {.doc = "Numbers of GPUs, in any order; multiples of the workload's gpusPerWorker. If not set, 1, "
                  "2, 4, ... workers up to its maxReplicas, or up to 8 if it has none.",
           .max_items = 128,
           .list_type = "set",
           .cel = kGpuCountRules}),
      Field<&T::placements>(
          "placements",
          {.doc =
               "How the workers, or pods, of a trial are placed. Packed: on as few nodes as have room. Spread: on "
               "twice as "
               "many, the same number on each, which shows what the network between nodes costs. If neither this "
               "nor nodeCounts is set, Packed; and one more trial on two nodes, if the curve asks for more GPUs than "
               "a node has and no trial would need a second one.",
           .max_items = 2,
           .list_type = "set"}),
      Field<&T::node_counts>(
          "nodeCounts",
          {.doc = "Numbers of nodes to spread the workers over, the same number "
                  "on each; of a podTemplate, numbers of pods. Sizes that cannot be divided so are left out.",
           .max_items = 8,
           .list_type = "set",
           .cel = kNodeCountRules}),
      Field<&T::batch_sizes>("batchSizes", {.doc = "Batch sizes. A single one may also just say which one the workload "
                                                   "has. If not set, the workload keeps its own, unknown batch size.",
                                            .max_items = 64,
                                            .list_type = "set",
                                            .cel = kBatchSizeRules}),
      Field<&T::batch_size_env>(
          "batchSizeEnv",
          {.doc = "Environment variable with the batch size, set in the launcher and the workers, or in the training's "
                  "container of a podTemplate. The training reads it, or its command uses it: as $NAME in a job, whose "
                  "command is run by a shell, and as $(NAME) in a pod.",
           .max_length = 63,
           .pattern = "^[A-Za-z_][A-Za-z0-9_]*$"}),
      Field<&T::batch_size_option>(
          "batchSizeOption",
          {.doc = "Option that passes the batch size to the training: a trial's command is the workload's, followed by "
                  "this option and the size (of a podTemplate the args, or else the command). \"--batch-size\" becomes "
                  "\"--batch-size 64\"; an option that ends in \"=\" is joined with the size. If an option is given "
                  "twice, most programs use the last.",
           .max_length = 63,
           .pattern = "^-[-A-Za-z0-9_.]*=?$"}),
      Field<&T::batch_size_scope>("batchSizeScope",
                                  {.doc = "What a batch size counts. PerGpu: the samples of one GPU in a "
                                          "step. PerJob: those of all GPUs together.",
                                   .default_json = "\"PerGpu\""}),
  };
  return kFields;
}

std::span<const FieldInfo> TrialStrategy::Fields() {
  using T = TrialStrategy;
  static constexpr FieldInfo kFields[] = {
      Field<&T::type>("type", {.doc = "Ladder: small sizes first, larger ones while they can still change "
                                      "the result. Grid: every configuration of the space.",
                               .default_json = "\"Ladder\""}),
      Field<&T::max_trials>(
          "maxTrials", {.doc = "Highest number of trials.", .minimum = 1, .maximum = kMaxTrials, .default_json = "16"}),
      Field<&T::parallelism>("parallelism", {.doc = "Trials that may run at the same time. They can slow "
                                                    "each other down where they share nodes or network.",
                                             .minimum = 1,
                                             .maximum = 64,
                                             .default_json = "1"}),
  };
  return kFields;
}

std::span<const FieldInfo> TrialBudget::Fields() {
  using T = TrialBudget;
  static constexpr FieldInfo kFields[] = {
      Field<&T::wall_seconds>("wallSeconds", {.doc = "Seconds for all trials together. With 0 no trial is run, and the "
                                                     "result comes from the cache. No limit if not set.",
                                              .minimum = 0}),
      Field<&T::gpu_seconds>("gpuSeconds", {.doc = "GPU seconds for all trials together. With 0 no trial is run, and "
                                                   "the result comes from the cache. No limit if not set.",
                                            .minimum = 0}),
      Field<&T::per_trial_seconds>("perTrialSeconds",
                                   {.doc = "A trial that is not measured this long after its pods started fails.",
                                    .minimum = 1,
                                    .maximum = 86400,
                                    .default_json = "600"}),
  };
  return kFields;
}

std::span<const FieldInfo> Extrapolation::Fields() {
  using T = Extrapolation;
  static constexpr FieldInfo kFields[] = {
      Field<&T::max_gpus>("maxGpus",
                          {.doc = "The curve extends to this many GPUs. If not set, to the largest measured size.",
                           .minimum = 1,
                           .maximum = 65536}),
      Field<&T::max_interval_ratio>(
          "maxIntervalRatio",
          {.doc = "Where the upper end of the 90 % interval is more than this many times the lower end, the "
                  "curve says Unknown instead of a number. At least 1.",
           .max_length = 8,
           .pattern = R"(^[1-9][0-9]{0,2}(\.[0-9]{1,3})?$)",
           .default_json = "\"2.0\""}),
  };
  return kFields;
}

std::span<const FieldInfo> TrialCache::Fields() {
  using T = TrialCache;
  static constexpr FieldInfo kFields[] = {
      Field<&T::policy>("policy",
                        {.doc = "Use: configurations in the WorkloadProfile are not measured again. Refresh: all are "
                                "measured again and kept there. Off: the profile is neither read nor written.",
                         .default_json = "\"Use\""}),
      Field<&T::max_age_seconds>(
          "maxAgeSeconds",
          {.doc = "Older measurements are not used. 30 days if not set.", .minimum = 0, .default_json = "2592000"}),
  };
  return kFields;
}

std::span<const FieldInfo> TrialJobSpec::Fields() {
  using T = TrialJobSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::workload>(
          "workload",
          {.doc = "What to measure. Fixed once trials have begun.", .required = true, .cel = kWorkloadRules}),
      Field<&T::space>("space", {.doc = "The configurations to measure; may change at any time. Trials that the new "
                                        "space still contains are not run again.",
                                 .default_json = "{}",
                                 .cel = kSpaceRules}),
      Field<&T::strategy>("strategy", {.doc = "Which configurations of the space are run.", .default_json = "{}"}),
      // The API server tries the rules on this default before it fills in those below it.
      Field<&T::measure>(
          "measure",
          {.doc = "How the speed is measured.", .default_json = R"({"source":"Logs"})", .cel = kMeasureRules}),
      Field<&T::budget>("budget", {.doc = "What the trials may cost.", .default_json = "{}"}),
      Field<&T::early_stop>("earlyStop", {.doc = "Ends a trial once its speed is known to measure.precisionPercent, "
                                                 "and the ladder once more GPUs cannot help.",
                                          .default_json = "true"}),
      Field<&T::idle_only>("idleOnly",
                           {.doc = "Trials use only GPUs that nobody waits for, and give them back when somebody does.",
                            .default_json = "false"}),
      Field<&T::extrapolate>("extrapolate",
                             {.doc = "How far the curve goes beyond what was measured.", .default_json = "{}"}),
      Field<&T::cache>("cache", {.doc = "Whether measurements of the same workload are reused.", .default_json = "{}"}),
      Field<&T::apply>("apply", {.doc = "Recommend: the result is in the status. Apply: grus also sets the size of the "
                                        "knee in the job of workload.jobRef.",
                                 .default_json = "\"Recommend\""}),
      Field<&T::cleanup>("cleanup",
                         {.doc = "When the job, or the pods, of an ended trial are deleted. Always: at once. "
                                 "OnSuccess: those of failed trials are kept, so that their logs can be read. Never: "
                                 "all are kept. What is kept holds no GPUs and is deleted with the TrialJob.",
                          .default_json = "\"Always\""}),
      Field<&T::suspend>("suspend",
                         {.doc = "Stops the trials; they hold no GPU until set to false.", .default_json = "false"}),
  };
  return kFields;
}

const kube::Kind& TrialJob::ResourceKind() {
  using T = TrialJob;
  static constexpr FieldInfo kFields[] = {
      Field<&T::spec>("spec", {.doc = "What the user wants.", .required = true, .cel = kSpecRules}),
      // What a new one shows until grus has looked at it: to kstatus it is under way, not ready.
      Field<&T::status>("status",
                        {.doc = "What grus observed.",
                         .default_json = R"({"phase":"Pending","conditions":[{"type":"Reconciling","status":"True",)"
                                         R"("reason":"Pending","message":"waiting for grus-manager",)"
                                         R"("lastTransitionTime":"1970-01-01T00:00:00Z"}]})"}),
  };
  static const kube::Kind kKind = kube::MakeKind<T>({.group = "ai.centauruscloud.io",
                                                     .version = "v1alpha1",
                                                     .kind = "TrialJob",
                                                     .plural = "trialjobs",
                                                     .fields = kFields});
  return kKind;
}

}  // namespace api
