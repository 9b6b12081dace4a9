// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/profile_status.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "controllers/frame/kstatus.h"
#include "controllers/measure/measured_work.h"
#include "controllers/policy/decimal.h"
#include "controllers/policy/profile_drift.h"
#include "controllers/queues/wording.h"
#include "controllers/throughput/curve.h"
#include "controllers/throughput/profile_measurements.h"

namespace grus {
namespace {

// The measured sizes, and the sizes within them that workers of `gpus_per_worker` GPUs can form.
std::vector<CurveSize> SizesWithin(const std::vector<Measurement>& measured, int gpus_per_worker, int gpus_per_node) {
  std::map<int, int> nodes_of;
  int largest = 0;
  for (const Measurement& m : measured) largest = std::max(largest, m.size.replicas);
  const int worker = std::max(1, gpus_per_worker);
  for (const CurveSize& size : DoublingSizes(largest / worker, 1)) {
    const int gpus = size.replicas * worker;
    nodes_of[gpus] = (gpus - 1) / gpus_per_node + 1;
  }
  for (const Measurement& m : measured) nodes_of[m.size.replicas] = m.size.nodes;
  std::vector<CurveSize> sizes;
  for (const auto& [gpus, nodes] : nodes_of) sizes.push_back({nodes, gpus});
  return sizes;
}

// The knee among the sizes of the question, if it is known.
std::optional<std::int32_t> KneeAmong(const ThroughputFit& fit, const CurveQuestion& question) {
  const kube::Result<std::vector<CurvePoint>> curve = CurveOf(fit, question);
  if (!curve) return std::nullopt;
  for (const Recommendation& r : Recommend(*curve, curve->back().size.replicas)) {
    if (r.goal == Goal::kKnee && r.best) return r.best->size.replicas;
  }
  return std::nullopt;
}

struct Knee {
  std::optional<std::int32_t> gpus;
  bool is_least = false;  // It is the largest size measured, and more GPUs may be faster.
};

Knee KneeOf(const ThroughputFit& fit, const TypeMeasurements& measured, const api::WorkloadProfileSpec& profile,
            const std::string& gpu_type) {
  CurveQuestion question;
  question.sizes = SizesWithin(measured.chosen, profile.workload.gpus_per_worker, GpusPerNode(profile, gpu_type));
  question.fixed = measured.is_total_fixed ? FixedBatch::kTotal : FixedBatch::kPerReplica;
  question.batch_size = measured.batch_size;
  // One size shows no knee: more GPUs may double the speed.
  if (question.sizes.size() < 2) return {};
  const int largest = question.sizes.back().replicas;
  const std::optional<std::int32_t> knee = KneeAmong(fit, question);
  if (!knee || *knee < largest) return {knee};
  if (largest > std::numeric_limits<int>::max() / 2) return {knee, true};
  question.sizes.push_back({(2 * largest - 1) / GpusPerNode(profile, gpu_type) + 1, 2 * largest});
  return {knee, KneeAmong(fit, question) != knee};
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

api::ThroughputModel ModelOf(const ThroughputFit& fit, const std::string& gpu_type) {
  api::ThroughputModel model;
  model.gpu_type = gpu_type;
  model.form = std::string(fit.best().form.name);
  for (const FittedParameter& parameter : BestParameters(fit)) {
    if (std::isfinite(parameter.value))
      model.parameters.push_back({std::string(parameter.name), Number(parameter.value)});
  }
  model.loo_error_percent = ToDecimal(100 * fit.best().leave_one_out_error, 2);
  model.valid_max_gpus = fit.largest_valid_replicas;
  return model;
}

struct TypeResult {
  api::GpuTypeProfile profile;
  Knee knee;
};

TypeResult TypeProfile(const api::WorkloadProfileSpec& profile, const std::string& gpu_type) {
  TypeResult result;
  api::GpuTypeProfile& type = result.profile;
  type.model.gpu_type = gpu_type;
  type.points = static_cast<std::int32_t>(std::count_if(profile.points.begin(), profile.points.end(),
                                                        [&](const auto& p) { return p.config.gpu_type == gpu_type; }));
  const TypeMeasurements measured = MeasurementsOf(profile, gpu_type);
  const kube::Result<ThroughputFit> fit = FitThroughput(measured.all);
  if (!fit) return result;
  type.model = ModelOf(*fit, gpu_type);
  result.knee = KneeOf(*fit, measured, profile, gpu_type);
  if (!result.knee.is_least) type.knee_gpus = result.knee.gpus;
  return result;
}

std::string NameOf(const api::GpuTypeProfile& type) {
  return type.model.gpu_type.empty() ? "any" : type.model.gpu_type;
}

bool IsMeasuredSince(const api::WorkloadProfileSpec& profile, const api::ProfileDrift& drift) {
  const api::ProfilePoint* point = FindPoint(profile, drift.config);
  return point && point->time > drift.time;
}

}  // namespace

std::string DriftMessage(const api::ProfileDrift& drift, api::ThroughputUnit unit) {
  return "expected " + SpeedText(drift.expected, unit) + " on " + ToText(drift.config) + ", " + drift.job +
         " runs at " + drift.observed.throughput;
}

api::WorkloadProfileStatus ProfileStatusOf(const api::WorkloadProfile& profile, kube::WallTime now) {
  api::WorkloadProfileStatus status = profile.status;
  status.observed_generation = profile.metadata.generation;
  status.points = static_cast<std::int32_t>(profile.spec.points.size());
  status.gpu_types.clear();
  status.gpus = status.knee = "";
  std::set<std::string> types;
  for (const api::ProfilePoint& point : profile.spec.points) types.insert(point.config.gpu_type);
  std::string knees;
  for (const std::string& name : types) {
    if (status.gpu_types.size() == kMaxProfileGpuTypes) break;
    const auto [result, knee] = TypeProfile(profile.spec, name);
    const api::GpuTypeProfile& type = status.gpu_types.emplace_back(result);
    const std::string comma = status.gpu_types.size() > 1 ? "," : "";
    status.gpus += comma + NameOf(type);
    status.knee += comma + (knee.gpus ? std::to_string(*knee.gpus) + (knee.is_least ? "+" : "") : "?");
    if (!knee.gpus) continue;
    knees += (knees.empty() ? "" : ", ") + Count(*knee.gpus, "GPU") + (knee.is_least ? " or more" : "");
    if (!type.model.gpu_type.empty()) knees += " on " + type.model.gpu_type;
  }

  Kstatus conditions(status.conditions, profile.metadata.generation, kube::Time{now});
  const bool has_points = status.points > 0;
  conditions.Set("Ready", has_points, has_points ? "Measured" : "NothingMeasured",
                 !has_points
                     ? "no measurement yet"
                     : Count(status.points, "measurement") + (knees.empty() ? "; knee not known" : "; knee: " + knees));
  const kube::Condition* before = kube::FindCondition(status.conditions, "Drifted");
  if (status.drift) {
    const std::string message = DriftMessage(*status.drift, profile.spec.throughput_unit);
    if (IsMeasuredSince(profile.spec, *status.drift)) {
      conditions.Set("Drifted", false, kReasonMeasuredAgain, "measured again; before: " + message);
      status.drift.reset();
    } else {
      conditions.Set("Drifted", true, IsSlower(*status.drift) ? kReasonSlower : kReasonFaster, message);
    }
  } else if (before && before->is_true()) {
    conditions.Set("Drifted", false, kReasonAgrees, "");
  }
  return status;
}

}  // namespace grus
