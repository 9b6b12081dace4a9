// SPDX-License-Identifier: Apache-2.0
// Speeds that do not come from logs: what trainings push, and what Prometheus says.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "clientlib/model/core_v1.h"
#include "controllers/trial/trial_reconciler.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using api::TrialJob;
using kube::Status;

constexpr kube::Duration kAskEvery = std::chrono::seconds(2);
constexpr kube::Duration kUnansweredWait = std::chrono::seconds(20);
// An unchanged number counts as a new measurement after this time; before, it may be the same scrape.
constexpr kube::Duration kSameIsNews = std::chrono::seconds(15);
constexpr double kMostMib = 1e9;

std::string LineOf(api::SpeedKind kind, double value) {
  char number[40];
  std::snprintf(number, sizeof number, "%.9g", value);
  switch (kind) {
    case api::SpeedKind::kStep: return std::string("step ") + number;
    case api::SpeedKind::kSamplesPerSecond: return std::string("samples per second ") + number;
    case api::SpeedKind::kStepSeconds: return std::string("seconds of a step ") + number;
    case api::SpeedKind::kEpoch: return std::string("epoch ") + number;
  }
  return {};
}

}  // namespace

void TrialReconciler::ReadPushed(const TrialJob& job, const std::string& trial, const TrialRun& run) {
  const auto child = caches_.jobs.Get<ElasticHorovodJob>({job.metadata.ns, trial});
  const auto launcher = NewestPod(job, trial, run.pods.launcher);
  for (const kube::ObjectMeta* metadata :
       {child ? &child->metadata : nullptr, launcher ? &launcher->metadata : nullptr}) {
    if (metadata == nullptr) continue;
    const auto push = [&](const char* annotation, api::SpeedKind kind, double factor) {
      const std::string text(metadata->Annotation(annotation).substr(0, 40));
      if (!text.empty())
        measurements_.AddLine(job.metadata.Key(), trial, LineOf(kind, factor * std::strtod(text.c_str(), nullptr)));
      return !text.empty();
    };
    if (!push(kPushedSamplesAnnotation, api::SpeedKind::kSamplesPerSecond, 1)) {
      push(kPushedStepAnnotation, api::SpeedKind::kStepSeconds, 1e-3);
    }
  }
}

// Not every cluster has a dcgm-exporter, so a missing answer is not an error.
GpuUse TrialReconciler::AskGpuUse(const std::string& url, const std::string& ns, const std::string& trial,
                                  kube::Duration since_start, std::stop_token stop) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(since_start).count();
  GpuUse use;
  const auto memory = prometheus_.Ask(url, PeakMemoryQuery(ns, trial, seconds), stop);
  if (!memory) return use;
  if (const double mib = memory->value_or(-1); mib >= 0 && mib < kMostMib) {
    use.peak_memory_bytes = static_cast<std::int64_t>(mib * (1 << 20));
  }
  const auto utilization = prometheus_.Ask(url, UtilizationQuery(ns, trial, seconds), std::move(stop));
  if (!utilization) return use;
  if (const double percent = utilization->value_or(-1); percent >= 0 && percent <= 100) {
    use.utilization_percent = static_cast<std::int32_t>(std::lround(percent));
  }
  return use;
}

void TrialReconciler::AskPrometheus(TrialView& view, std::stop_token stop) {
  const api::TrialJob& job = *view.job;
  const bool is_still =
      job.spec.suspend || (job.status.completion_time && job.status.observed_generation == view.generation());
  if (!job.spec.measure.prometheus || is_still) return;
  const bool is_due = memory_.With(job.metadata, [&](Memory& kept) {
    if (kept.asked && clock_.Now() - *kept.asked < kAskEvery) {
      view.source_error = kept.source_error;
      return false;
    }
    kept.asked = clock_.Now();
    return true;
  });
  if (!is_due) return;
  const api::PrometheusSource& source = *job.spec.measure.prometheus;
  bool is_asked = false;
  Status answered;
  for (auto& [name, run] : view.runs) {
    if (!run.child || !run.child->is_ours || run.child->is_ending || !run.pods.launcher_started) continue;
    is_asked = true;
    for (const api::PrometheusQuery& query : source.queries) {
      const auto value = prometheus_.Ask(source.url, ExpandQuery(query.query, job.metadata.ns, name), stop);
      if (!value) {
        answered = value.error();
        break;
      }
      if (!*value) continue;
      measurements_.AddLine(job.metadata.Key(), name, LineOf(query.kind, **value), kSameIsNews);
      break;
    }
    if (!answered) break;
    run.gpu_use = AskGpuUse(source.url, job.metadata.ns, name, view.now.value - run.pods.launcher_started->value, stop);
  }
  if (!is_asked) {
    // Before taking GPUs, check that Prometheus answers and accepts the queries. No trial has that name, so a correct
    // query has no result yet.
    for (const api::PrometheusQuery& query : source.queries) {
      const std::string text = ExpandQuery(query.query, job.metadata.ns, job.metadata.name + "-none");
      if (const auto value = prometheus_.Ask(source.url, text, stop); !value) answered = value.error();
      if (!answered) break;
    }
  }
  memory_.With(job.metadata, [&](Memory& kept) {
    kept.source_error.clear();
    if (answered) {
      kept.unanswered_since.reset();
      return;
    }
    if (!kept.unanswered_since) kept.unanswered_since = clock_.Now();
    // One missing answer does not end running trials.
    if (is_asked && clock_.Now() - *kept.unanswered_since < kUnansweredWait) return;
    kept.source_error = view.source_error = answered.error().message();
  });
}

}  // namespace grus
