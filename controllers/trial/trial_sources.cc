// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_sources.h"

#include <cmath>
#include <cstdio>

#include "controllers/measure/measured_work.h"
#include "controllers/trial/trial_queries.h"

namespace grus {
namespace {

using api::TrialJob;
using kube::ObjectKey;
using kube::Status;

constexpr kube::Duration kAskEvery = std::chrono::seconds(2);
constexpr kube::Duration kUnansweredWait = std::chrono::seconds(20);
// An unchanged number counts as a new measurement after this time; before, it may be the same scrape.
constexpr kube::Duration kSameIsNews = std::chrono::seconds(15);
// With a pass every kPoll, at most half a minute passes from the first output to a message about it.
constexpr kube::Duration kPatience = std::chrono::seconds(30) - kPoll;
constexpr double kMostMib = 1e9;

// By api::SpeedKind, as the speed reader knows it: a number that does not come from a log is given to it as a line of
// these words and the number.
struct NumberLine {
  const char *series, *words;
};
constexpr NumberLine kLines[] = {
    {"step", "step "},   {"samples", "samples per second "}, {"seconds", "seconds of a step "},
    {"epoch", "epoch "}, {"tokens", "tokens per second "},   {"batch", "samples of a step "}};

std::string LineOf(api::SpeedKind kind, double value) {
  char number[40];
  std::snprintf(number, sizeof number, "%.9g", value);
  return std::string(kLines[static_cast<std::size_t>(kind)].words) + number;
}

std::vector<SpeedPattern> PatternsOf(const api::TrialMeasure& measure) {
  std::vector<SpeedPattern> patterns;
  if (measure.source == api::MeasureSource::kLogs) {
    for (const api::LogPattern& pattern : measure.patterns) patterns.push_back(PatternOf(pattern));
  } else {
    for (std::size_t kind = 0; kind < std::size(kLines); ++kind) {
      const auto& [name, words] = kLines[kind];
      patterns.push_back(PatternOf(
          {name, "^" + std::string(words) + "(.*)$", static_cast<api::SpeedKind>(kind), api::SpeedScope::kPerJob}));
    }
  }
  return patterns;
}

// Not every cluster has a dcgm-exporter, so a missing answer is not an error.
GpuUse AskGpuUse(Prometheus& prometheus, const std::string& url, const ObjectKey& trial, kube::Duration since_start,
                 std::stop_token stop) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(since_start).count();
  GpuUse use;
  const auto memory = prometheus.Ask(url, PeakMemoryQuery(trial.ns, trial.name, seconds), stop);
  if (!memory) return use;
  if (const double mib = memory->value_or(-1); mib >= 0 && mib < kMostMib) {
    use.peak_memory_bytes = static_cast<std::int64_t>(mib * (1 << 20));
  }
  const auto utilization = prometheus.Ask(url, UtilizationQuery(trial.ns, trial.name, seconds), std::move(stop));
  if (!utilization) return use;
  if (const double percent = utilization->value_or(-1); percent >= 0 && percent <= 100) {
    use.utilization_percent = static_cast<std::int32_t>(std::lround(percent));
  }
  return use;
}

}  // namespace

void TrialSources::Read(TrialView& view, std::stop_token stop) {
  const TrialJob& job = *view.job;
  const ObjectKey key = job.metadata.Key();
  view.pattern_error = pattern_errors_.With(job.metadata, [&](std::optional<std::string>& kept) {
    if (!kept) {
      const auto patterns = UserPatterns::Make(PatternsOf(job.spec.measure));
      kept = patterns ? "" : patterns.error().message();
    }
    return *kept;
  });
  const api::MeasureSource source = job.spec.measure.source;
  if (source == api::MeasureSource::kPrometheus) AskPrometheus(view, std::move(stop));
  for (auto& [name, run] : view.runs) {
    if (source == api::MeasureSource::kLogs) {
      run.is_log_awaited = run.pods.launcher_started && measurements_.IsLogAwaited(key, name);
    }
    if (source != api::MeasureSource::kPush) continue;
    for (const auto& pushed : {run.child ? run.child->pushed : std::nullopt, run.pods.pushed}) {
      if (pushed) measurements_.AddLine(key, name, LineOf(pushed->kind, pushed->value));
    }
  }
  for (auto& [name, seen] : measurements_.Look(key)) {
    if (const auto run = view.runs.find(name); run != view.runs.end()) run->second.speed = std::move(seen);
  }
}

// The first query that has a result counts.
Status TrialSources::AskSpeed(const TrialJob& job, const std::string& trial, std::stop_token stop) {
  const api::PrometheusSource& source = *job.spec.measure.prometheus;
  for (const api::PrometheusQuery& query : source.queries) {
    const auto value = prometheus_.Ask(source.url, ExpandQuery(query.query, job.metadata.ns, trial), stop);
    if (!value) return value.error();
    if (!*value) continue;
    measurements_.AddLine(job.metadata.Key(), trial, LineOf(query.kind, **value), kSameIsNews);
    break;
  }
  return {};
}

void TrialSources::AskPrometheus(TrialView& view, std::stop_token stop) {
  const TrialJob& job = *view.job;
  if (!job.spec.measure.prometheus || job.spec.suspend || view.is_done()) return;
  const api::PrometheusSource& source = *job.spec.measure.prometheus;
  Record record = records_.Get(job.metadata);
  view.source_error = record.error;
  if (record.asked && clock_.Now() - *record.asked < kAskEvery) return;
  record.asked = clock_.Now();
  bool is_asked = false;
  Status answered;
  for (auto& [name, run] : view.runs) {
    if (!run.child || !run.child->is_ours || run.child->is_ending || !run.pods.launcher_started) continue;
    is_asked = true;
    answered = AskSpeed(job, name, stop);
    if (!answered) break;
    const kube::Duration since_start = view.now.value - run.pods.launcher_started->value;
    run.gpu_use = AskGpuUse(prometheus_, source.url, {job.metadata.ns, name}, since_start, stop);
  }
  // Before taking GPUs, check that Prometheus answers and accepts the queries. No trial has that name, so a correct
  // query has no result yet.
  for (const api::PrometheusQuery& query : source.queries) {
    if (is_asked || !answered) break;
    const std::string text = ExpandQuery(query.query, job.metadata.ns, job.metadata.name + "-none");
    if (const auto value = prometheus_.Ask(source.url, text, stop); !value) answered = value.error();
  }
  if (answered) record.unanswered_since.reset();
  else if (!record.unanswered_since) record.unanswered_since = clock_.Now();
  // One missing answer does not end running trials.
  const bool is_patient = answered || (is_asked && clock_.Now() - *record.unanswered_since < kUnansweredWait);
  view.source_error = record.error = is_patient ? std::string() : answered.error().message();
  records_.With(job.metadata, [&](Record& kept) { kept = std::move(record); });
}

void TrialSources::Measure(const TrialView& view, const TrialPlan& plan) {
  std::vector<MeasureTarget> targets;
  const api::TrialMeasure& measure = view.job->spec.measure;
  for (const std::string& name : plan.measure) {
    const TrialPods& pods = view.runs.at(name).pods;
    if (!pods.launcher_started) continue;
    MeasureTarget& target = targets.emplace_back();
    target.trial = name;
    target.pod = {view.job->metadata.ns, pods.launcher};
    target.pod_uid = pods.launcher_uid;
    target.container = pods.launcher_container;
    target.follows_log = measure.source == api::MeasureSource::kLogs;
    target.options.patterns = PatternsOf(measure);
    target.options.started = pods.launcher_started->value;
    target.options.precision = measure.precision_percent / 100.0;
    target.options.slice = std::chrono::hours(24 * 365);  // The slice is the plan's, from the first bound pod on.
    target.options.patience = kPatience;
    target.options.warm_up = std::chrono::seconds(measure.warmup_seconds.value_or(0));
  }
  measurements_.Measure(view.job->metadata.Key(), targets);
}

void TrialSources::Forget(const ObjectKey& trial_job) {
  measurements_.Measure(trial_job, {});
  records_.Forget(trial_job);
  pattern_errors_.Forget(trial_job);
}

}  // namespace grus
