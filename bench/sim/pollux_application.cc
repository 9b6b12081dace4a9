// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/pollux_application.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>

#include "bench/sim/csv_rows.h"
#include "controllers/policy/decimal.h"

namespace grus {
namespace {

constexpr int kMostGpus = 64, kMostNodes = 16, kMostGpusPerNode = 4;  // Of the cluster that was measured.
// Far from any measurement, and from where sums overflow.
constexpr double kMostBatch = 1e6, kShortestStep = 1e-6, kLongestStep = 1e6, kMostProgress = 1e12,
                 kLargestGradient = 1e30;
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

// What is wrong with a row beside its single fields: nothing, or column and reason.
struct Complaint {
  std::string_view column, what;
};

std::optional<Complaint> ComplaintAbout(const PlacementRow& row) {
  for (int digits = row.placement; digits > 0; digits /= 10) {
    if (digits % 10 >= 1 && digits % 10 <= kMostGpusPerNode) continue;
    return Complaint{"placement", "is wrong; write a digit from 1 to 4 for each node"};
  }
  return std::nullopt;
}

std::optional<Complaint> ComplaintAbout(const ScalabilityRow& row) {
  if (row.gpus >= row.nodes && row.gpus <= row.nodes * kMostGpusPerNode) return std::nullopt;
  return Complaint{"num_replicas", "is wrong; write from 1 to 4 for each of num_nodes"};
}

// `columns`, and those that say how long a step takes.
template <typename Row>
kube::Result<std::vector<Row>> ReadStepTimesOf(const std::filesystem::path& path, std::vector<CsvColumn<Row>> columns) {
  columns.push_back({"local_bsz", &Row::local_batch, 1, kMostBatch});
  columns.push_back({"step_time", &Row::step_s, kShortestStep, kLongestStep});
  columns.push_back({"sync_time", &Row::sync_s, 0, kLongestStep});
  const kube::Result<CsvTable> table = ReadCsvFile(path.string());
  if (!table) return table.error();
  kube::Result<std::vector<Row>> rows = RowsOf(*table, columns);
  if (!rows) return rows;
  for (std::size_t i = 0; i < rows->size(); ++i) {
    std::optional<Complaint> wrong = ComplaintAbout((*rows)[i]);
    if ((*rows)[i].sync_s > (*rows)[i].step_s)
      wrong = {"sync_time", "is wrong; write at most step_time, of which it is a part"};
    if (wrong) return BadFieldOf(*table, i, wrong->column, wrong->what);
  }
  return rows;
}

// Of a file validation-BATCH.csv; none: it is another file.
std::optional<int> BatchOf(std::string_view file) {
  constexpr std::string_view kPrefix = "validation-", kSuffix = ".csv";
  if (!file.starts_with(kPrefix) || !file.ends_with(kSuffix)) return std::nullopt;
  const auto batch = ParseInteger(file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size()));
  return batch && *batch >= 1 && *batch <= static_cast<std::int64_t>(kMostBatch)
             ? std::optional(static_cast<int>(*batch))
             : std::nullopt;
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
  const auto placements =
      ReadStepTimesOf<PlacementRow>(folder / "placements.csv", {{"placement", &PlacementRow::placement, 1}});
  if (!placements) return placements.error();
  const auto scalability = ReadStepTimesOf<ScalabilityRow>(
      folder / "scalability.csv",
      {{"num_nodes", &ScalabilityRow::nodes, 1, kMostNodes}, {"num_replicas", &ScalabilityRow::gpus, 1, kMostGpus}});
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

kube::Result<std::vector<Application::ValidatedEpoch>> Application::ReadEpochs(const std::string& path) {
  const kube::Result<CsvTable> table = ReadCsvFile(path);
  if (!table) return table.error();
  auto epochs = RowsOf<ValidatedEpoch>(*table, {{"progress", &ValidatedEpoch::progress, 0, kMostProgress},
                                                {"grad_sqr", &ValidatedEpoch::square, 0, kLargestGradient},
                                                {"grad_var", &ValidatedEpoch::variance, 0, kLargestGradient}});
  if (!epochs) return epochs;
  double before = 0;
  for (std::size_t i = 0; i < epochs->size(); ++i) {
    const ValidatedEpoch& epoch = (*epochs)[i];
    if (epoch.progress <= before) {
      return BadFieldOf(*table, i, "progress", "is wrong; write more than in the row before, and more than 0");
    }
    if (epoch.square + epoch.variance <= 0) {
      return BadFieldOf(*table, i, "grad_var", "is wrong; write more than 0, or give grad_sqr more than 0");
    }
    before = epoch.progress;
  }
  return epochs;
}

kube::Status Application::ReadValidations(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::optional<int> batch = BatchOf(entry.path().filename().string());
    if (!batch) continue;
    auto epochs = ReadEpochs(entry.path().string());
    if (!epochs) return epochs.error();
    if (static_cast<int>(epochs->size()) < epochs_) {
      return Invalid(entry.path().string() + ": has " + std::to_string(epochs->size()) +
                     " rows; write one for each of " + std::to_string(epochs_) + " epochs");
    }
    validations_[*batch] = *std::move(epochs);
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
