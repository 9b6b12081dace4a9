// SPDX-License-Identifier: Apache-2.0
#include "crds/types/trial_measure.h"

namespace api {

using kube::Field;
using kube::FieldInfo;

std::span<const std::string_view> EnumNames(MeasureSource) {
  static constexpr std::string_view kNames[] = {"Logs", "Prometheus", "Push"};
  return kNames;
}

std::span<const std::string_view> EnumNames(SpeedKind) {
  static constexpr std::string_view kNames[] = {"Step",  "SamplesPerSecond", "StepSeconds",
                                                "Epoch", "TokensPerSecond",  "SamplesPerStep"};
  return kNames;
}

std::span<const std::string_view> EnumNames(SpeedScope) {
  static constexpr std::string_view kNames[] = {"", "PerGpu", "PerProcess", "PerJob"};
  return kNames;
}

std::span<const FieldInfo> LogPattern::Fields() {
  using T = LogPattern;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name", {.doc = "Name, for messages.", .required = true, .min_length = 1, .max_length = 63}),
      Field<&T::regex>("regex",
                       {.doc = "Regular expression (RE2 syntax) for a line of the log. Its first group is the number.",
                        .required = true,
                        .min_length = 1,
                        .max_length = 1024}),
      Field<&T::kind>("kind", {.doc = "What the number is. Step: the step reached. SamplesPerSecond, TokensPerSecond: "
                                      "a rate. StepSeconds: seconds of a step. SamplesPerStep: the batch. Epoch: the "
                                      "epoch reached.",
                               .required = true}),
      Field<&T::scope>("scope", {.doc = "Whose the rate or the batch is: of one GPU, of one process, or of all GPUs "
                                        "of the job. If not set, the speeds of several sizes have to show it."}),
  };
  return kFields;
}

std::span<const FieldInfo> PrometheusQuery::Fields() {
  using T = PrometheusQuery;
  static constexpr FieldInfo kFields[] = {
      Field<&T::query>("query", {.doc = "PromQL expression with one series as its result. $NAMESPACE and "
                                        "$JOB in it stand for the namespace and the name of the trial's job.",
                                 .required = true,
                                 .min_length = 1,
                                 .max_length = 2048}),
      Field<&T::kind>(
          "kind", {.doc = "What its value is; as in measure.patterns. A rate is of the whole job.", .required = true}),
  };
  return kFields;
}

std::span<const FieldInfo> PrometheusSource::Fields() {
  using T = PrometheusSource;
  static constexpr FieldInfo kFields[] = {
      Field<&T::url>("url", {.doc = "Where Prometheus answers: http://prometheus.monitoring:9090. It has to be one of "
                                    "those that the administrator of grus lists (grus-manager --prometheus-servers).",
                             .required = true,
                             .max_length = 512,
                             .pattern = "^https?://[^/]+"}),
      Field<&T::queries>("queries", {.doc = "What to ask for; the first that has a result counts.",
                                     .required = true,
                                     .min_items = 1,
                                     .max_items = 8,
                                     .list_type = "atomic"}),
  };
  return kFields;
}

std::span<const FieldInfo> TrialMeasure::Fields() {
  using T = TrialMeasure;
  static constexpr FieldInfo kFields[] = {
      Field<&T::source>(
          "source", {.doc = "Where the speed comes from. Logs: what the training prints. Prometheus: what it exports. "
                            "Push: annotations that the training itself keeps up to date on its job or pod.",
                     .default_json = "\"Logs\""}),
      Field<&T::patterns>(
          "patterns", {.doc = "How to read the log. If not set, the formats of the usual frameworks are recognised.",
                       .max_items = 16,
                       .list_type = "map",
                       .list_map_key = "name"}),
      Field<&T::warmup_seconds>("warmupSeconds",
                                {.doc = "What is printed in this time after the first step does not count. "
                                        "If not set, the warm-up is found in the measurements.",
                                 .minimum = 0,
                                 .maximum = 86400}),
      Field<&T::startup_seconds>("startupSeconds",
                                 {.doc = "How long a trial may hold its GPUs before it prints a speed. Until then, "
                                         "output that cannot be read is only told.",
                                  .minimum = 1,
                                  .maximum = 86400,
                                  .default_json = "600"}),
      Field<&T::window_seconds>("windowSeconds", {.doc = "A trial is measured for at most this long after its warm-up.",
                                                  .minimum = 1,
                                                  .maximum = 86400,
                                                  .default_json = "60"}),
      Field<&T::precision_percent>("precisionPercent",
                                   {.doc = "With earlyStop, a trial ends before that, as soon as the 90 % "
                                           "interval of its speed is within this much of the mean.",
                                    .minimum = 1,
                                    .maximum = 50,
                                    .default_json = "5"}),
      Field<&T::prometheus>("prometheus", {.doc = "The Prometheus to ask, for source Prometheus."}),
  };
  return kFields;
}

}  // namespace api
