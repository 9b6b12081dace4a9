// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/pollux_application.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "bench/sim/csv_rows.h"

namespace grus {
namespace {

constexpr int kMostGpus = 64;  // Of the cluster that was measured.
constexpr ApplicationRules kApplications[] = {
    {"bert", 2, kMostGpus, 0},      {"cifar10", 100, kMostGpus, 0},    {"ncf", 10, 1, 0},
    {"imagenet", 90, kMostGpus, 0}, {"deepspeech2", 80, kMostGpus, 0}, {"yolov3", 50, kMostGpus, 8},
};

struct PlacementRow {
  int placement = 0;
  double local_batch = 0, step_s = 0, sync_s = 0;
};

struct ScalabilityRow {
  int nodes = 0, gpus = 0;
  double local_batch = 0, step_s = 0, sync_s = 0;
};

kube::Error Invalid(std::string message) { return {kube::ErrorCode::kInvalidArgument, std::move(message)}; }

// A ring of nodes has no first one: the smallest of its rotations stands for all.
std::string PlacementKey(std::span<const int> gpus_by_node) {
  std::string digits;
  for (const int gpus : gpus_by_node) digits += std::to_string(gpus);
  std::string smallest = digits;
  for (std::size_t i = 1; i < digits.size(); ++i) {
    std::rotate(digits.begin(), digits.begin() + 1, digits.end());
    smallest = std::min(smallest, digits);
  }
  return smallest;
}

StepTime Mix(const StepTime& a, const StepTime& b, double share_of_b) {
  return {std::lerp(a.step_s, b.step_s, share_of_b), std::lerp(a.sync_s, b.sync_s, share_of_b)};
}

// Straight between the neighbours of `x` in `table`, flat beyond its ends.
template <typename Key, typename Value, typename Evaluate>
StepTime Between(const std::map<Key, Value>& table, double x, const Evaluate& evaluate) {
  auto above = table.lower_bound(static_cast<Key>(std::ceil(x)));
  if constexpr (!std::is_integral_v<Key>) above = table.lower_bound(x);
  if (above == table.end()) return evaluate(*table.rbegin());
  if (above == table.begin() || static_cast<double>(above->first) == x) return evaluate(*above);
  const auto below = std::prev(above);
  const double share = (x - static_cast<double>(below->first)) / static_cast<double>(above->first - below->first);
  return Mix(evaluate(*below), evaluate(*above), share);
}

}  // namespace

std::span<const ApplicationRules> KnownApplications() { return kApplications; }

kube::Result<Application> Application::Load(const std::filesystem::path& folder, const ApplicationRules& rules) {
  Application application;
  application.name_ = rules.name;
  application.epochs_ = rules.epochs;
  application.max_gpus_ = rules.max_gpus;
  if (kube::Status read = application.ReadStepTimes(folder); !read) return read.error();
  if (rules.max_local_batch > 0) application.max_local_batch_ = rules.max_local_batch;
  if (kube::Status read = application.ReadValidations(folder); !read) return read.error();
  return application;
}

kube::Status Application::ReadStepTimes(const std::filesystem::path& folder) {
  const double none = std::numeric_limits<double>::min();  // Times are above 0.
  const auto placements =
      ReadCsvRows<PlacementRow>((folder / "placements.csv").string(), {{"placement", &PlacementRow::placement, 1},
                                                                       {"local_bsz", &PlacementRow::local_batch, 1},
                                                                       {"step_time", &PlacementRow::step_s, none},
                                                                       {"sync_time", &PlacementRow::sync_s, 0}});
  if (!placements) return placements.error();
  const auto scalability = ReadCsvRows<ScalabilityRow>((folder / "scalability.csv").string(),
                                                       {{"num_nodes", &ScalabilityRow::nodes, 1},
                                                        {"num_replicas", &ScalabilityRow::gpus, 1},
                                                        {"local_bsz", &ScalabilityRow::local_batch, 1},
                                                        {"step_time", &ScalabilityRow::step_s, none},
                                                        {"sync_time", &ScalabilityRow::sync_s, 0}});
  if (!scalability) return scalability.error();

  std::map<std::pair<int, int>, std::map<double, std::vector<StepTime>>> measured;
  double smallest = std::numeric_limits<double>::max(), largest = 0;
  for (const PlacementRow& row : *placements) {
    const std::string digits = std::to_string(row.placement);
    const int gpus = std::accumulate(digits.begin(), digits.end(), 0, [](int sum, char c) { return sum + c - '0'; });
    by_placement_[digits][row.local_batch] = {row.step_s, row.sync_s};
    measured[{static_cast<int>(digits.size()), gpus}][row.local_batch].push_back({row.step_s, row.sync_s});
    smallest = std::min(smallest, row.local_batch);
    largest = std::max(largest, row.local_batch);
  }
  for (const ScalabilityRow& row : *scalability) {
    measured[{row.nodes, row.gpus}][row.local_batch].push_back({row.step_s, row.sync_s});
  }
  for (const auto& [size, by_batch] : measured) {
    for (const auto& [local_batch, times] : by_batch) {
      StepTime& mean = by_nodes_gpus_[size.first][size.second][local_batch];
      for (const StepTime& time : times) {
        mean.step_s += time.step_s / static_cast<double>(times.size());
        mean.sync_s += time.sync_s / static_cast<double>(times.size());
      }
    }
  }
  min_local_batch_ = static_cast<int>(smallest);
  max_local_batch_ = static_cast<int>(largest);
  return {};
}

kube::Status Application::ReadValidations(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    int batch = 0;
    if (std::sscanf(entry.path().filename().c_str(), "validation-%d.csv", &batch) != 1 || batch < 1) continue;
    auto rows = ReadCsvRows<ValidatedEpoch>(entry.path().string(), {{"progress", &ValidatedEpoch::progress, 0},
                                                                    {"grad_sqr", &ValidatedEpoch::square, 0},
                                                                    {"grad_var", &ValidatedEpoch::variance, 0}});
    if (!rows) return rows.error();
    if (static_cast<int>(rows->size()) < epochs_) {
      return Invalid(entry.path().string() + ": has " + std::to_string(rows->size()) + " rows; write one for each of " +
                     std::to_string(epochs_) + " epochs");
    }
    validations_[batch] = *std::move(rows);
  }
  if (validations_.empty()) {
    return Invalid(folder.string() + ": has no files validation-BATCH.csv; take those of the traces' source");
  }
  for (std::size_t epoch = 0; epoch < static_cast<std::size_t>(epochs_); ++epoch) {
    double end = std::numeric_limits<double>::max();
    for (const auto& [batch, epochs] : validations_) end = std::min(end, epochs[epoch].progress);
    epoch_ends_.push_back(end);
  }
  return {};
}

StepTime Application::At(const ByLocalBatch& times, double local_batch) {
  return Between(times, local_batch, [](const auto& entry) { return entry.second; });
}

StepTime Application::At(const std::map<int, ByLocalBatch>& by_gpus, double gpus, double local_batch) const {
  return Between(by_gpus, gpus, [&](const auto& entry) { return At(entry.second, local_batch); });
}

StepTime Application::StepTimeOf(std::span<const int> gpus_by_node, double local_batch) const {
  const auto found = by_placement_.find(PlacementKey(gpus_by_node));
  if (found != by_placement_.end()) return At(found->second, local_batch);
  const auto nodes = static_cast<double>(gpus_by_node.size());
  const double gpus_per_node = std::accumulate(gpus_by_node.begin(), gpus_by_node.end(), 0) / nodes;
  return Between(by_nodes_gpus_, nodes,
                 [&](const auto& entry) { return At(entry.second, entry.first * gpus_per_node, local_batch); });
}

GradientStatistics Application::GradientsIn(int epoch, double batch) const {
  const auto index = static_cast<std::size_t>(epoch);
  const auto above = validations_.lower_bound(static_cast<int>(std::ceil(batch)));
  const ValidatedEpoch& high = above->second[index];
  if (above->first == batch) return {high.square, high.variance};
  const auto below = std::prev(above);
  const ValidatedEpoch& low = below->second[index];
  const double share = (batch - below->first) / (above->first - below->first);
  return {std::lerp(low.square, high.square, share), std::lerp(low.variance, high.variance, share)};
}

}  // namespace grus
