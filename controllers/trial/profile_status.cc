// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/profile_status.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "controllers/frame/kstatus.h"
#include "controllers/policy/decimal.h"
#include "controllers/policy/profile_drift.h"
#include "controllers/policy/wording.h"
#include "controllers/throughput/curve.h"
#include "controllers/trial/trial_numbers.h"

namespace grus {
namespace {

constexpr int kUsualGpusPerNode = 8;  // If no point says how many nodes it was on.

// Batch sizes are whole numbers; those computed from rounded speeds are only close to one.
double NearestWhole(double batch) {
  const double whole = std::round(batch);
  return whole >= 1 && std::abs(whole - batch) <= 0.02 * batch ? whole : batch;
}

int GpusPerNode(const api::WorkloadProfileSpec& profile, const std::string& gpu_type) {
  int most = 0;
  for (const api::ProfilePoint& point : profile.points) {
    if (point.config.gpu_type != gpu_type || point.config.nodes <= 0) continue;
    most = std::max(most, (point.config.gpus + point.config.nodes - 1) / point.config.nodes);
  }
  return most > 0 ? most : kUsualGpusPerNode;
}

int NodesOf(const api::TrialConfig& config, int gpus_per_node) {
  const int nodes = config.nodes > 0 ? config.nodes : (config.gpus - 1) / gpus_per_node + 1;
  return std::min(nodes, config.gpus);
}

int LargestOf(const api::WorkloadProfileSpec& profile, const std::string& gpu_type) {
  int largest = 1;
  for (const api::ProfilePoint& point : profile.points) {
    if (point.config.gpu_type == gpu_type) largest = std::max(largest, point.config.gpus);
  }
  return largest;
}

struct Step {
  double seconds = 0;
  double local_batch = 0;  // Samples of one GPU; 0 if the point does not say.
};

Step StepOf(const api::WorkloadProfileSpec& profile, const api::ProfilePoint& point, int largest) {
  const int gpus = point.config.gpus;
  const double throughput = ParseDecimal(point.measured.throughput).value_or(0);
  const double seconds = ParseDecimal(point.measured.step_milliseconds).value_or(0) / 1000;
  switch (profile.throughput_unit) {
    case api::ThroughputUnit::kSamplesPerSecond: {
      if (seconds > 0) return {seconds, NearestWhole(throughput * seconds / gpus)};
      // The source gives only samples (a rate in Prometheus, say): a step is of the batch size that was tried.
      const double batch = std::max(1, point.config.batch_size);
      return throughput > 0 ? Step{batch * gpus / throughput, batch} : Step{};
    }
    case api::ThroughputUnit::kStepsPerSecond: return {seconds, static_cast<double>(largest) / gpus};
    default: return {seconds, 1};
  }
}

double Spread(const std::vector<Measurement>& points, double (*value)(const Measurement&)) {
  const auto [low, high] = std::minmax_element(points.begin(), points.end(),
                                               [&](const auto& a, const auto& b) { return value(a) < value(b); });
  return value(*high) / value(*low);
}

double Local(const Measurement& m) { return m.size.local_batch_size; }
double Total(const Measurement& m) { return m.size.local_batch_size * m.size.replicas; }

double Median(const std::vector<Measurement>& points, double (*value)(const Measurement&)) {
  std::vector<double> values;
  for (const Measurement& point : points) values.push_back(value(point));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

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
  question.sizes.push_back({NodesOf({gpu_type, 2 * largest}, GpusPerNode(profile, gpu_type)), 2 * largest});
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

TypeMeasurements MeasurementsOf(const api::WorkloadProfileSpec& profile, const std::string& gpu_type) {
  TypeMeasurements result;
  const int gpus_per_node = GpusPerNode(profile, gpu_type), largest = LargestOf(profile, gpu_type);
  std::map<std::int32_t, std::vector<Measurement>> by_batch;
  for (const api::ProfilePoint& point : profile.points) {
    if (point.config.gpu_type != gpu_type || point.config.gpus <= 0) continue;
    const auto [step, local] = StepOf(profile, point, largest);
    const Measurement measurement{{NodesOf(point.config, gpus_per_node), point.config.gpus, local}, step};
    if (!(step > 0) || !(local > 0) || WhyNoSize(measurement.size)) continue;
    result.all.push_back(measurement);
    by_batch[point.config.batch_size].push_back(measurement);
  }
  for (auto& [batch, points] : by_batch) {
    if (points.size() >= result.chosen.size()) result.chosen = std::move(points);
  }
  if (result.chosen.empty()) return result;
  result.is_total_fixed = Spread(result.chosen, Total) < Spread(result.chosen, Local);
  result.batch_size = Median(result.chosen, result.is_total_fixed ? Total : Local);
  return result;
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
