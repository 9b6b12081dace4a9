// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_results.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "controllers/measure/measured_work.h"
#include "controllers/policy/decimal.h"
#include "controllers/policy/profile_drift.h"
#include "controllers/throughput/curve.h"
#include "controllers/throughput/throughput_fit.h"
#include "controllers/trial/trial_scope.h"
#include "controllers/trial/trial_space.h"

namespace grus {
namespace {

constexpr double kHalfWidths = 1.645;  // Standard errors in half of a 90 % interval.
constexpr int kMaxSizes = 64;          // Of one curve.
// Stands for an unknown number of samples of all GPUs together: any number that is divisible among many GPUs.
constexpr double kAnyTotal = 1 << 20;

struct Series {
  std::string gpu_type;
  int batch_size = 0;
};

// A TrialJob's batch size as the model takes it. A replica of the model is a GPU here.
struct Batch {
  FixedBatch fixed;
  double size;

  double local(int gpus) const { return fixed == FixedBatch::kPerReplica ? size : size / gpus; }
};

Batch BatchOf(const api::TrialSpace& space, int batch_size) {
  if (space.batch_size_scope == api::BatchSizeScope::kPerGpu)
    return {FixedBatch::kPerReplica, std::max(1, batch_size) * 1.0};
  return {FixedBatch::kTotal, batch_size > 0 ? batch_size : kAnyTotal};
}

// Throughput in the unit of the status, for one sample a second of the model.
double Factor(const Batch& batch, int batch_size, api::ThroughputUnit unit) {
  const bool counts_samples =
      unit == api::ThroughputUnit::kSamplesPerSecond || unit == api::ThroughputUnit::kTokensPerSecond;
  return counts_samples && batch_size > 0 ? 1 : 1 / batch.size;
}

// Those that it ran on, else as few as can hold it.
int NodesOf(const TrialView& view, const api::TrialConfig& config) {
  return config.nodes > 0 ? config.nodes : FewestNodes(view.nodes, config.gpu_type, config.gpus);
}

struct MeasuredSize {
  Interval throughput;
  int nodes = 1;
};

struct TypeData {
  std::vector<Measurement> measurements;
  std::map<int, std::map<int, MeasuredSize>> measured;  // By batch size and GPUs.
  int largest = 0;
};

std::map<std::string, TypeData> Gather(const TrialView& view, const api::TrialJobStatus& status) {
  std::map<std::string, TypeData> types;
  for (const api::Trial& trial : status.trials) {
    if (!HasSpeedOfJob(trial)) continue;
    const std::optional<Interval> throughput = ThroughputOf(*trial.measured);
    if (!throughput) continue;
    const api::TrialConfig& config = trial.config;
    const Batch batch = BatchOf(view.job->spec.space, config.batch_size);
    const double samples = batch.local(config.gpus) * config.gpus;
    const double rate = throughput->mean / Factor(batch, config.batch_size, status.throughput_unit);
    Measurement one;
    const int nodes = NodesOf(view, config);
    one.size = {nodes, config.gpus, std::max(1.0, batch.local(config.gpus))};
    one.step_seconds = samples / rate;
    const double half = std::max(throughput->high - throughput->mean, throughput->mean - throughput->low);
    one.relative_error = std::min(0.5, half / throughput->mean / kHalfWidths);
    TypeData& data = types[config.gpu_type];
    data.measurements.push_back(one);
    const auto [at, is_first] = data.measured[config.batch_size].try_emplace(config.gpus, *throughput, nodes);
    if (!is_first && nodes < at->second.nodes) at->second = {*throughput, nodes};
    data.largest = std::max(data.largest, config.gpus);
  }
  return types;
}

std::vector<CurveSize> SizesFor(const TrialView& view, const std::string& gpu_type, int batch_size,
                                const TypeData& data, const std::vector<api::TrialConfig>& configs) {
  const int per_worker = std::max(1, view.workload ? view.workload->gpus_per_worker : 1);
  const int most = view.job->spec.extrapolate.max_gpus.value_or(data.largest);
  std::set<int> counts;
  std::map<int, int> nodes_of;  // Measured sizes take precedence.
  if (const auto found = data.measured.find(batch_size); found != data.measured.end()) {
    for (const auto& [gpus, measured] : found->second) nodes_of.emplace(gpus, measured.nodes);
  }
  for (const api::TrialConfig& config : configs) {
    if (config.gpu_type == gpu_type && config.batch_size == batch_size && config.gpus <= most)
      counts.insert(config.gpus);
  }
  for (int n = per_worker; n <= most; n = n > most / 2 ? most + 1 : 2 * n) counts.insert(n);
  if (most % per_worker == 0) counts.insert(most);
  for (auto it = counts.begin(); it != counts.end() && nodes_of.size() < kMaxSizes; ++it) {
    nodes_of.emplace(*it, FewestNodes(view.nodes, gpu_type, *it));
  }
  std::vector<CurveSize> sizes;
  for (const auto& [gpus, nodes] : nodes_of) sizes.push_back({nodes, gpus});
  return sizes;
}

api::CurveSource SourceOf(PredictionSource source) {
  switch (source) {
    case PredictionSource::kMeasured: return api::CurveSource::kMeasured;
    case PredictionSource::kInterpolated: return api::CurveSource::kInterpolated;
    case PredictionSource::kExtrapolated: return api::CurveSource::kExtrapolated;
    case PredictionSource::kUnknown: break;
  }
  return api::CurveSource::kUnknown;
}

api::CurvePoint PointOf(const Series& series, const CurvePoint& from, double factor, const Interval* measured) {
  api::CurvePoint point;
  point.gpu_type = series.gpu_type;
  point.batch_size = series.batch_size;
  point.gpus = from.size.replicas;
  point.source = SourceOf(from.source);
  Interval throughput{from.throughput * factor, from.low * factor, from.high * factor};
  if (measured != nullptr) {
    point.source = api::CurveSource::kMeasured;
    throughput = *measured;
  }
  point.throughput_low = Decimal(throughput.low);
  point.throughput_high = Decimal(throughput.high);
  if (point.source == api::CurveSource::kUnknown) return point;  // The band alone.
  point.throughput = Decimal(throughput.mean);
  point.speed_up = Decimal(from.speed_up);
  point.efficiency = Decimal(from.efficiency);
  return point;
}

api::ThroughputModel ModelOf(const std::string& gpu_type, const ThroughputFit& fit) {
  api::ThroughputModel model;
  model.gpu_type = gpu_type;
  model.form = std::string(fit.best().form.name);
  for (const FittedParameter& parameter : BestParameters(fit)) {
    // Leave out parameters that the measurements put at zero.
    const std::string value = Decimal(parameter.value);
    if (!value.empty()) model.parameters.push_back({std::string(parameter.name), value});
  }
  if (fit.measurements.size() > 1) model.loo_error_percent = Decimal(100 * fit.best().leave_one_out_error);
  model.valid_max_gpus = fit.largest_valid_replicas;
  return model;
}

struct Curve {
  Series series;
  std::vector<CurvePoint> points;  // In the unit of the status.
};

std::string SizeText(const Series& series, int gpus) {
  return ToText(api::TrialConfig{series.gpu_type, gpus, 0, series.batch_size});
}

// "8 A100 x 64"
std::string SizeName(const api::Recommendation& r) {
  if (!r.gpus) return "Unknown";
  std::string name = std::to_string(*r.gpus);
  if (!r.gpu_type.empty()) name += " " + r.gpu_type;
  if (r.batch_size > 0) name += " x " + std::to_string(r.batch_size);
  return name;
}

// What a GPU of the series costs in an hour; "1" without prices, so that GPUs are compared by their time.
double PriceOf(const api::TrialSpace& space, const std::string& gpu_type) {
  const auto found = std::ranges::find(space.gpu_types, gpu_type, &api::GpuType::name);
  return found == space.gpu_types.end() ? 1 : ParsePositive(found->price_per_hour).value_or(1);
}

bool HasPrices(const api::TrialSpace& space) {
  return std::ranges::any_of(space.gpu_types, [](const auto& type) { return !type.price_per_hour.empty(); });
}

std::string Cheapness(const api::TrialSpace& space, const api::Recommendation& r) {
  if (!HasPrices(space)) return "; no known size does more work per GPU second";
  return "; " + ToDecimal(*r.gpus * PriceOf(space, r.gpu_type), 2) +
         " an hour, and no known size does more work for the money";
}

// A knee may be known although its speed is not.
std::string SpeedOf(const api::Recommendation& r, const CurvePoint& point) {
  return r.throughput.empty() ? Decimal(point.low) + " to " + Decimal(point.high) : r.throughput;
}

std::string Sentence(Goal goal, const api::Recommendation& r, const CurvePoint& point, const Curve& curve,
                     const api::TrialSpace& space, api::ThroughputUnit unit) {
  std::string text = SizeText(curve.series, *r.gpus) + ": " + SpeedOf(r, point) + " " + std::string(UnitText(unit));
  if (*r.gpus > 1 && !r.speed_up.empty()) text += ", " + r.speed_up + " times one GPU";
  if (r.source != api::CurveSource::kMeasured) text += " (predicted, not measured)";
  const bool is_last = *r.gpus == curve.points.back().size.replicas;
  switch (goal) {
    case Goal::kFastest: return text + "; no known size is faster";
    case Goal::kCheapest: return text + Cheapness(space, r);
    case Goal::kKnee: break;
  }
  // No size beyond the last one was asked about.
  return text + (is_last ? "; it is the largest size of the curve, and more GPUs may be faster"
                         : "; more GPUs add less than 12 %");
}

std::string NotKnown(const Recommendation& r, const Series& series) {
  std::string text = "not known";
  if (r.rival) {
    text += ": " + SizeText(series, r.rival->size.replicas) +
            " may be better, but the prediction is too uncertain; measure that size, or one nearer to it";
  }
  if (r.best_known) text += "; the best known size is " + SizeText(series, r.best_known->size.replicas);
  return text;
}

// The best curve by `score` of its best point or, where that is not known, of the best of those known: the answer is
// then Unknown, and not a lesser curve. Of equals, the first.
template <typename Score>
const std::pair<const Curve*, Recommendation>* Best(const std::vector<std::pair<const Curve*, Recommendation>>& all,
                                                    Score score) {
  const std::pair<const Curve*, Recommendation>* best = nullptr;
  double highest = -1;
  for (const auto& one : all) {
    const std::optional<CurvePoint>& point = one.second.best ? one.second.best : one.second.best_known;
    const double here = point ? score(*one.first, *point) : -1;
    if (best != nullptr && here <= highest) continue;
    best = &one;
    highest = here;
  }
  return best;
}

double Peak(const Curve& curve) {
  double peak = 0;
  for (const CurvePoint& point : curve.points) {
    if (point.source != PredictionSource::kUnknown) peak = std::max(peak, point.throughput);
  }
  return peak;
}

// Takes a straggler's own speed out of the curve, and tells so on its trial.
void LeaveOut(const Straggler& straggler, const TrialView& view, const std::string& gpu_type, TypeData& data,
              api::TrialJobStatus& status) {
  const JobSize& size = straggler.measurement.size;
  for (api::Trial& trial : status.trials) {
    const api::TrialConfig& config = trial.config;
    const Batch batch = BatchOf(view.job->spec.space, config.batch_size);
    const bool is_it = trial.phase == api::TrialPhase::kSucceeded && trial.measured && config.gpu_type == gpu_type &&
                       config.gpus == size.replicas && std::max(1.0, batch.local(config.gpus)) == size.local_batch_size;
    const int nodes = NodesOf(view, config);
    if (!is_it || nodes != size.nodes) continue;
    auto& measured = data.measured[config.batch_size];
    if (const auto at = measured.find(config.gpus); at != measured.end() && at->second.nodes == nodes) {
      measured.erase(at);
    }
    if (trial.message.view().find(kStraggler) != std::string::npos) continue;
    trial.message = trial.message + kStraggler + Decimal(straggler.times) +
                    " times as slow as the other sizes say, and left out of the curve" +
                    (trial.is_repeat ? ", twice" : "");
  }
}

// Nothing is recommended while one of the speeds may be wrong by a factor: any other might be better, or worse.
void SetNotKnown(const Doubt& doubt, api::TrialJobStatus& status) {
  for (const Goal goal : {Goal::kFastest, Goal::kCheapest, Goal::kKnee}) {
    api::Recommendation& r = status.recommendation.emplace_back();
    r.goal = static_cast<api::Goal>(goal);
    r.gpu_type = doubt.gpu_type;
    r.batch_size = doubt.batch_size;
    r.message = "not known: " + doubt.why;
    if (r.message.size() > kLongestMessage) r.message.resize(kLongestMessage);
    r.size = SizeName(r);
  }
}

void SetRecommendations(const std::vector<Curve>& curves, const api::TrialSpace& space, api::TrialJobStatus& status) {
  using Candidate = std::pair<const Curve*, Recommendation>;
  for (const Goal goal : {Goal::kFastest, Goal::kCheapest, Goal::kKnee}) {
    std::vector<Candidate> candidates;
    for (const Curve& curve : curves) {
      for (const Recommendation& r : Recommend(curve.points, curve.points.back().size.replicas)) {
        if (r.goal == goal) candidates.emplace_back(&curve, r);
      }
    }
    const Candidate* best = Best(candidates, [&](const Curve& curve, const CurvePoint& point) {
      if (goal == Goal::kKnee) return Peak(curve);
      if (goal == Goal::kFastest) return point.throughput;
      return point.throughput / point.size.replicas / PriceOf(space, curve.series.gpu_type);
    });
    if (best == nullptr) continue;
    const Series& series = best->first->series;
    api::Recommendation r;
    r.goal = static_cast<api::Goal>(goal);
    r.gpu_type = series.gpu_type;
    r.batch_size = series.batch_size;
    if (best->second.best) {
      const CurvePoint& point = *best->second.best;
      r.gpus = point.size.replicas;
      const bool has_speed = point.source != PredictionSource::kUnknown;
      r.source = has_speed ? SourceOf(point.source) : api::CurveSource::kExtrapolated;
      if (has_speed) r.throughput = Decimal(point.throughput);
      if (has_speed) r.speed_up = Decimal(point.speed_up);
      r.message = Sentence(goal, r, point, *best->first, space, status.throughput_unit);
    } else {
      r.message = NotKnown(best->second, series);
    }
    r.size = SizeName(r);
    status.recommendation.push_back(std::move(r));
  }
}

using Measured = std::vector<std::pair<api::TrialConfig, api::Measurement>>;

Measured MeasuredIn(const api::TrialJobStatus& status) {
  Measured measured;
  for (const api::Trial& trial : status.trials) {
    if (trial.phase == api::TrialPhase::kSucceeded && trial.measured)
      measured.emplace_back(trial.config, *trial.measured);
  }
  return measured;
}

}  // namespace

void UpdateResults(const TrialView& view, const std::vector<api::TrialConfig>& configs, api::TrialJobStatus& status) {
  const bool is_new_spec = view.job->status.observed_generation != view.generation();
  if (!is_new_spec && MeasuredIn(view.job->status) == MeasuredIn(status)) return;
  status.curve.clear();
  status.model.reset();
  status.recommendation.clear();
  FitOptions options;
  if (const auto ratio = ParsePositive(view.job->spec.extrapolate.max_interval_ratio)) {
    options.max_interval_ratio = std::max(1.0, *ratio);
  }
  std::vector<Curve> curves;
  std::map<std::string, api::ThroughputModel> models;
  auto types = Gather(view, status);
  for (auto& [gpu_type, data] : types) {
    const kube::Result<ThroughputFit> fit = FitThroughput(data.measurements, options);
    if (!fit) continue;  // Measurements are positive numbers, and so there is always a fit.
    for (const Straggler& straggler : fit->stragglers) LeaveOut(straggler, view, gpu_type, data, status);
    models.emplace(gpu_type, ModelOf(gpu_type, *fit));
    for (const auto& [batch_size, measured] : data.measured) {
      const Batch batch = BatchOf(view.job->spec.space, batch_size);
      const double factor = Factor(batch, batch_size, status.throughput_unit);
      const auto points = CurveOf(*fit, {SizesFor(view, gpu_type, batch_size, data, configs), batch.fixed, batch.size});
      if (!points) continue;
      Curve curve{{gpu_type, batch_size}, *points};
      for (CurvePoint& point : curve.points) {
        const auto found = measured.find(point.size.replicas);
        const Interval* own = found != measured.end() ? &found->second.throughput : nullptr;
        if (static_cast<std::int64_t>(status.curve.size()) < api::kMaxCurvePoints) {
          status.curve.push_back(PointOf(curve.series, point, factor, own));
        }
        point.throughput = own != nullptr ? own->mean : point.throughput * factor;
        point.low *= factor;
        point.high *= factor;
        if (own != nullptr) point.source = PredictionSource::kMeasured;
      }
      curves.push_back(std::move(curve));
    }
  }
  if (const auto doubt = FindDoubt(view.job->spec.space, status)) SetNotKnown(*doubt, status);
  else if (!curves.empty()) SetRecommendations(curves, view.job->spec.space, status);
  if (curves.empty()) return;
  const auto knee = std::find_if(status.recommendation.begin(), status.recommendation.end(),
                                 [](const api::Recommendation& r) { return r.goal == api::Goal::kKnee; });
  const std::string type = knee != status.recommendation.end() ? knee->gpu_type : curves.front().series.gpu_type;
  if (const auto found = models.find(type); found != models.end()) status.model = found->second;
}

}  // namespace grus
