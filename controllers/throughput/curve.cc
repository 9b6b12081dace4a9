// SPDX-License-Identifier: Apache-2.0
#include "controllers/throughput/curve.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

namespace grus {
namespace {

double PerReplica(const CurvePoint& point) { return point.throughput / point.size.replicas; }

// The first of the largest; nullptr if there is none.
template <typename Score>
const CurvePoint* Largest(const std::vector<CurvePoint>& points, Score score) {
  const auto largest = std::max_element(points.begin(), points.end(),
                                        [&](const CurvePoint& a, const CurvePoint& b) { return score(a) < score(b); });
  return largest == points.end() ? nullptr : &*largest;
}

const CurvePoint* Fastest(const std::vector<CurvePoint>& points) {
  return Largest(points, [](const CurvePoint& point) { return point.throughput; });
}

const CurvePoint* Choose(Goal goal, const std::vector<CurvePoint>& points) {
  const CurvePoint* fastest = Fastest(points);
  if (goal == Goal::kFastest || !fastest) return fastest;
  if (goal == Goal::kCheapest) return Largest(points, PerReplica);
  return &*std::find_if(points.begin(), points.end(),
                        [&](const CurvePoint& point) { return point.throughput >= kKneeShare * fastest->throughput; });
}

bool MightBeBetter(Goal goal, const CurvePoint& unknown, const CurvePoint& best) {
  switch (goal) {
    case Goal::kFastest: return unknown.high > best.throughput;
    case Goal::kCheapest: return PerReplica(unknown) > PerReplica(best);
    case Goal::kKnee: return kKneeShare * unknown.high > best.throughput;
  }
  return true;
}

bool IsKnown(Goal goal, const CurvePoint& point) {
  return point.source != PredictionSource::kUnknown || (goal == Goal::kKnee && point.counts_for_knee);
}

// The widest band of a size that counts in the choice of the knee.
double KneeBand(const ThroughputFit& fit, FixedBatch fixed) {
  std::set<int> nodes;
  for (const Measurement& m : fit.measurements) nodes.insert(m.size.nodes);
  const bool shows_network = nodes.size() >= kNodeCountsForKnee && fixed == FixedBatch::kPerReplica;
  return fit.options.max_interval_ratio * (shows_network ? kKneeBandFactor : 1);
}

kube::Result<CurvePoint> PointOf(const ThroughputFit& fit, const CurveQuestion& question, const CurveSize& at,
                                 double knee_band) {
  CurvePoint point;
  point.size = {at.nodes, at.replicas, question.batch_size};
  if (question.fixed == FixedBatch::kTotal && at.replicas > 0) {
    point.size.local_batch_size = question.batch_size / at.replicas;
  }
  const kube::Result<Prediction> step = Predict(fit, point.size);
  if (!step) return kube::Error(step.error()).with("curve: size of " + std::to_string(at.replicas) + " replicas");
  const double samples = point.size.local_batch_size * at.replicas;
  const bool is_possible = point.size.local_batch_size >= 1;
  point.source = is_possible ? step->source : PredictionSource::kUnknown;
  point.counts_for_knee = is_possible && step->high <= knee_band * step->low;
  point.throughput = samples / step->step_seconds;
  point.low = samples / step->high;
  point.high = samples / step->low;
  return point;
}

}  // namespace

std::vector<CurveSize> DoublingSizes(int most, int gpus_per_node) {
  std::vector<CurveSize> sizes;
  const auto add = [&](int replicas) { sizes.push_back({(replicas - 1) / gpus_per_node + 1, replicas}); };
  for (int replicas = 1; replicas < most; replicas = std::min(most, replicas > most / 2 ? most : 2 * replicas)) {
    add(replicas);
  }
  if (most >= 1) add(most);
  return sizes;
}

kube::Result<std::vector<CurvePoint>> CurveOf(const ThroughputFit& fit, const CurveQuestion& question) {
  if (question.sizes.empty()) return kube::Error(kube::ErrorCode::kInvalidArgument, "curve: there is no size");
  const double knee_band = KneeBand(fit, question.fixed);
  std::vector<CurvePoint> curve;
  for (const CurveSize& size : question.sizes) {
    if (!curve.empty() && size.replicas <= curve.back().size.replicas) {
      return kube::Error(kube::ErrorCode::kInvalidArgument, "curve: sizes do not ascend");
    }
    kube::Result<CurvePoint> point = PointOf(fit, question, size, knee_band);
    if (!point) return std::move(point).error();
    curve.push_back(*point);
  }
  const double per_replica = PerReplica(curve.front());
  for (CurvePoint& point : curve) {
    point.speed_up = point.throughput / per_replica;
    point.efficiency = point.speed_up / point.size.replicas;
  }
  return curve;
}

std::vector<Recommendation> Recommend(const std::vector<CurvePoint>& curve, int max_replicas) {
  std::vector<Recommendation> recommendations;
  for (const Goal goal : {Goal::kFastest, Goal::kCheapest, Goal::kKnee}) {
    std::vector<CurvePoint> known, unknown;
    for (const CurvePoint& point : curve) {
      const bool is_possible = point.size.local_batch_size >= 1;
      if (is_possible && point.size.replicas <= max_replicas) (IsKnown(goal, point) ? known : unknown).push_back(point);
    }
    Recommendation& r = recommendations.emplace_back();
    r.goal = goal;
    const CurvePoint* best = Choose(goal, known);
    if (!best) continue;
    r.best_known = *best;
    const auto rival = std::find_if(unknown.begin(), unknown.end(),
                                    [&](const CurvePoint& point) { return MightBeBetter(goal, point, *best); });
    if (rival == unknown.end()) r.best = *best;
    else r.rival = *rival;
  }
  return recommendations;
}

}  // namespace grus
