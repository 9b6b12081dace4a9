// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/interference_parameters.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

namespace grus {
namespace {

constexpr double kNinetyPercent = 1.645;
constexpr std::size_t kFewestGroups = 3;  // With fewer, a group that is left out is most of what is known.
constexpr double kWidest = 1.5;
constexpr std::size_t kMostCheckedTogether = 1024;

// The same points, left out in the same way, by both processes.
struct LeftOutPoints {
  std::vector<std::size_t> points = {};
  PairGuesses with_features = {}, without_features = {};
};

void Append(PairGuesses& to, const PairGuesses& more) {
  to.means.insert(to.means.end(), more.means.begin(), more.means.end());
  to.deviations.insert(to.deviations.end(), more.deviations.begin(), more.deviations.end());
}

// Positions in `block` of the points in which a family, or a job, takes part.
std::vector<PointIndices> GroupsOf(const PairTargets& known, const PointIndices& block, bool by_family) {
  std::map<int, PointIndices> groups;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const PairPoint& point = known.points[block[i]];
    const int job = by_family ? point.job_family : point.job;
    const int partner = by_family ? point.partner_family : point.partner;
    if (job >= 0) groups[job].push_back(i);
    if (partner >= 0 && partner != job) groups[partner].push_back(i);
  }
  std::vector<PointIndices> result;
  for (auto& [name, group] : groups) result.push_back(std::move(group));
  return result;
}

// Positions of both orders of a pair on a GPU type: measured together, and so missing together.
std::vector<PointIndices> PairsOf(const PairTargets& known, const PointIndices& block) {
  std::map<std::tuple<int, int, int>, PointIndices> pairs;
  std::vector<PointIndices> result;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const PairPoint& point = known.points[block[i]];
    const auto [first, second] = std::minmax(point.job, point.partner);
    if (first < 0) {
      result.push_back({i});
    } else {
      pairs[{first, second, point.gpu_type}].push_back(i);
    }
  }
  for (auto& [names, pair] : pairs) result.push_back(std::move(pair));
  return result;
}

void LeaveOutGroups(const PairTargets& known, const PointIndices& block, const std::vector<PointIndices>& groups,
                    const InterferenceParameters& parameters, LeftOutPoints& all) {
  for (const PointIndices& group : groups) {
    for (const std::size_t i : group) all.points.push_back(block[i]);
  }
  Append(all.with_features, LeaveOut(known, block, parameters.with_features, groups));
  if (parameters.with_features == parameters.without_features) {
    all.without_features = all.with_features;
  } else {
    Append(all.without_features, LeaveOut(known, block, parameters.without_features, groups));
  }
}

double Mixed(double weight, const std::vector<double>& a, const std::vector<double>& b, std::size_t i) {
  return weight * a[i] + (1 - weight) * b[i];
}

// That with the least mean error of slow-downs, as a share of them.
double BestWeight(const PairTargets& known, const std::vector<double>& deviations, const LeftOutPoints& left_out) {
  constexpr int kSteps = 10;
  double best = 1, least = INFINITY;
  for (int step = kSteps; step >= 0; --step) {
    const double weight = static_cast<double>(step) / kSteps;
    double error = 0;
    for (std::size_t i = 0; i < left_out.points.size(); ++i) {
      const std::size_t p = left_out.points[i];
      const double off =
          Mixed(weight, left_out.with_features.means, left_out.without_features.means, i) - known.targets[p];
      error += std::abs(std::expm1(deviations[p] * off));
    }
    if (error < least) {
      least = error;
      best = weight;
    }
  }
  return best;
}

// How much wider intervals must be to hold nine in ten of the targets, for which there are enough to say it; 1 if they
// do, or if there are too few. `gpu_type`: only of its co-runs.
double WidthFor(const PairTargets& known, double weight, const LeftOutPoints& left_out, std::optional<int> gpu_type) {
  constexpr std::size_t kFewestErrors = 20;
  std::vector<double> errors;
  for (std::size_t i = 0; i < left_out.points.size(); ++i) {
    if (gpu_type && known.points[left_out.points[i]].gpu_type != *gpu_type) continue;
    const double off = Mixed(weight, left_out.with_features.means, left_out.without_features.means, i) -
                       known.targets[left_out.points[i]];
    errors.push_back(std::abs(off) /
                     Mixed(weight, left_out.with_features.deviations, left_out.without_features.deviations, i));
  }
  if (errors.size() < kFewestErrors) return 1;
  const auto ninth = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() * 9 / 10);
  std::nth_element(errors.begin(), ninth, errors.end());
  return std::max(1.0, *ninth / kNinetyPercent);
}

// Student's t over the normal distribution, both at 95 %: the width is itself known from few families.
double WidthByFew(std::size_t families) {
  const double freedom = std::max(1.0, static_cast<double>(families) - 1);
  return std::min(kWidest, 1 + 0.93 / freedom + 0.87 / (freedom * freedom));
}

}  // namespace

InterferenceParameters LearnParameters(const PairTargets& known, const std::vector<double>& deviations) {
  const std::vector<PointIndices> blocks = BlocksOf(known.points.size());
  InterferenceParameters learned;
  learned.without_features = LearnScales(known, blocks, false);
  const bool has_features = std::ranges::any_of(
      known.points, [](const PairPoint& point) { return std::ranges::count(point.is_known, true) > 0; });
  learned.with_features = has_features ? LearnScales(known, blocks, true) : learned.without_features;

  // The more is known, the surer a process is, and the wider its intervals must be made if it is wrong: all points
  // together say it best, if their number allows it.
  std::vector<PointIndices> checked = blocks;
  if (known.points.size() <= kMostCheckedTogether) {
    checked.assign(1, PointIndices(known.points.size()));
    std::iota(checked[0].begin(), checked[0].end(), std::size_t{0});
  }
  std::size_t families = 0;
  LeftOutPoints by_group, by_pair;
  for (const PointIndices& block : checked) {
    std::vector<PointIndices> groups = GroupsOf(known, block, true);
    families = std::max(families, groups.size());
    if (groups.size() < kFewestGroups) groups = GroupsOf(known, block, false);
    if (groups.size() >= kFewestGroups) LeaveOutGroups(known, block, groups, learned, by_group);
    LeaveOutGroups(known, block, PairsOf(known, block), learned, by_pair);
  }
  learned.features_weight = has_features ? BestWeight(known, deviations, by_group) : 0;
  int types = 0;
  for (const PairPoint& point : known.points) types = std::max(types, point.gpu_type + 1);
  for (int type = 0; type < types; ++type) {
    learned.known_jobs_widths.push_back(WidthFor(known, learned.features_weight, by_pair, type));
  }
  learned.new_job_width = WidthFor(known, learned.features_weight, by_group, {});
  learned.new_family_width = learned.new_job_width * WidthByFew(families);
  return learned;
}

}  // namespace grus
