// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/interference_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>

#include "clientlib/base/lower_case.h"
#include "clientlib/model/utf8.h"
#include "controllers/interference/co_run_samples.h"
#include "controllers/interference/known_features.h"
#include "controllers/kubectl/csv.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Result;

constexpr std::string_view kPointColumns = "job, with_job and speed";
constexpr std::string_view kPairColumns = "job and with_job";
constexpr std::string_view kPartnerPrefix = "with_", kSoloPrefix = "solo_";
constexpr std::size_t kMostQuestions = 20000;  // They cost the square of the co-runs each.

struct Feature {
  std::optional<double> SoloFeatures::*member;
  bool can_be_zero;
  std::span<const std::string_view> names;  // The first is ours.
};
constexpr std::string_view kUtilizationNames[] = {"gpu_utilization",
                                                  "gpu_utilization_percent",
                                                  "gpu_utilization_pct",
                                                  "gpu_utilisation",
                                                  "gpu_util_percent",
                                                  "gpu_util_pct",
                                                  "gpu_util",
                                                  "utilization",
                                                  "utilisation",
                                                  "util"};
constexpr std::string_view kBandwidthNames[] = {"memory_bandwidth",
                                                "memory_bandwidth_utilization",
                                                "memory_bandwidth_utilisation",
                                                "memory_bandwidth_percent",
                                                "memory_bandwidth_pct",
                                                "memory_bandwidth_util",
                                                "mem_bandwidth",
                                                "mem_bw",
                                                "mem_bw_util",
                                                "bandwidth",
                                                "bandwidth_util",
                                                "bw",
                                                "memory_utilization",
                                                "memory_util",
                                                "memory_util_pct",
                                                "mem_util",
                                                "mem_util_pct"};
constexpr std::string_view kMemoryNames[] = {
    "memory",     "memory_mib",     "memory_mb",     "memory_gib",     "memory_gb",     "memory_bytes",
    "gpu_memory", "gpu_memory_mib", "gpu_memory_mb", "gpu_memory_gib", "gpu_memory_gb", "gpu_memory_bytes",
    "mem",        "mem_mib",        "mem_mb",        "mem_gib",        "mem_gb",        "mem_bytes"};
constexpr std::string_view kStepNames[] = {"step_time",         "step_time_s",      "step_time_ms",      "step_time_us",
                                           "step_seconds",      "step_s",           "step_milliseconds", "step_ms",
                                           "step_us",           "us_per_10_steps",  "iteration_time",    "iter_time",
                                           "iteration_time_ms", "iteration_time_s", "iter_time_ms",      "iter_time_s"};
constexpr std::string_view kBatchNames[] = {"batch_size", "batchsize", "batch", "bs", "local_bsz"};
constexpr Feature kFeatures[] = {{&SoloFeatures::gpu_utilization, true, kUtilizationNames},
                                 {&SoloFeatures::memory_bandwidth, true, kBandwidthNames},
                                 {&SoloFeatures::memory_mebibytes, false, kMemoryNames},
                                 {&SoloFeatures::step_milliseconds, false, kStepNames},
                                 {&SoloFeatures::batch_size, false, kBatchNames}};
constexpr std::size_t kFeatureCount = std::size(kFeatures);

// What the end of a feature's name says of its unit: how many MiB or milliseconds it is. GB are taken for GiB, as many
// tools call them so. No unit, MiB, milliseconds and percents: 1.
struct Unit {
  std::string_view name_end;
  double factor;
};
constexpr Unit kUnits[] = {{"_gib", 1024}, {"_gb", 1024},  {"_bytes", 1.0 / (1 << 20)}, {"_seconds", 1000},
                           {"_s", 1000},   {"_us", 0.001}, {"us_per_10_steps", 0.0001}};

struct UnitColumn {
  std::size_t index = 0;
  double factor = 1;
};
using FeatureColumns = std::array<std::optional<UnitColumn>, kFeatureCount>;
struct PairColumns {
  std::size_t job = 0, with_job = 0;
  FeatureColumns features = {}, with_features = {};
  std::optional<UnitColumn> gpu_type = {}, count = {};
};

bool TakePrefix(std::string_view& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return true;
}

std::optional<std::size_t> FeatureNamed(std::string_view name) {
  for (std::size_t f = 0; f < kFeatureCount; ++f) {
    if (std::ranges::find(kFeatures[f].names, name) != kFeatures[f].names.end()) return f;
  }
  return std::nullopt;
}

double FactorOf(std::string_view name) {
  const auto unit = std::ranges::find_if(kUnits, [&](const Unit& u) { return name.ends_with(u.name_end); });
  return unit == std::end(kUnits) ? 1 : unit->factor;
}

// Takes the column for what its name says. False: nothing of ours. Error: there is already one for that.
Result<bool> TakeOptionalColumn(const CsvTable& table, std::size_t column, PairColumns& columns) {
  const std::string lower = kube::LowerCase(table.header.fields[column]);
  std::optional<UnitColumn>* place = nullptr;
  if (lower == "gpu_type" || lower == "gpu") place = &columns.gpu_type;
  if (lower == "count") place = &columns.count;
  std::string_view name = lower;
  const bool is_partners = TakePrefix(name, kPartnerPrefix);
  TakePrefix(name, kSoloPrefix);
  if (const auto feature = FeatureNamed(name)) {
    place = &(is_partners ? columns.with_features : columns.features)[*feature];
  }
  if (place == nullptr) return false;
  if (*place) {
    return Error(ErrorCode::kDecode, table.name + ":" + std::to_string(table.header.line) + ": columns " +
                                         table.header.fields[(*place)->index] + " and " + table.header.fields[column] +
                                         " say the same; remove one");
  }
  *place = UnitColumn{column, FactorOf(name)};
  return true;
}

Result<PairColumns> FindColumns(const CsvTable& table, std::string_view wanted, std::vector<std::string>& notes) {
  PairColumns columns;
  const Result<std::size_t> job = FindColumn(table, "job", wanted);
  if (!job) return job.error();
  const Result<std::size_t> with_job = FindColumn(table, "with_job", wanted);
  if (!with_job) return with_job.error();
  columns.job = *job;
  columns.with_job = *with_job;
  std::string unused;
  for (std::size_t i = 0; i < table.header.fields.size(); ++i) {
    const std::string& name = table.header.fields[i];
    if (i == columns.job || i == columns.with_job || name == "speed") continue;
    const Result<bool> taken = TakeOptionalColumn(table, i, columns);
    if (!taken) return taken.error();
    if (!*taken) unused += (unused.empty() ? "" : ", ") + name;
  }
  if (!unused.empty()) notes.push_back(table.name + ": not used: column " + unused);
  return columns;
}

kube::Status ReadFeatures(const CsvTable& table, const CsvRow& row, const FeatureColumns& columns, SoloFeatures& solo) {
  for (std::size_t f = 0; f < kFeatureCount; ++f) {
    if (!columns[f] || row.fields[columns[f]->index].empty()) continue;
    double number = 0;
    const bool is_number = ParseNumber(row.fields[columns[f]->index], number);
    number *= columns[f]->factor;
    if (!is_number || !std::isfinite(number) || number < 0 || (number == 0 && !kFeatures[f].can_be_zero)) {
      return BadField(table, row, columns[f]->index,
                      kFeatures[f].can_be_zero ? "is not a number of 0 or more; leave it empty if it is not known"
                                               : "is not a positive number; leave it empty if it is not known");
    }
    solo.*kFeatures[f].member = number;
  }
  return {};
}

// The name is that of the family, if a batch size stands beside it.
SharedJob JobNamed(const std::string& name, const SoloFeatures& solo) {
  SharedJob job{name, "", solo};
  if (!name.empty() && solo.batch_size) {
    job.family = name;
    job.fingerprint = name + " (batch size " + Number(*solo.batch_size) + ")";
  }
  return job;
}

Result<PairQuestion> PairAt(const CsvTable& table, const CsvRow& row, const PairColumns& columns) {
  SoloFeatures solo, with_solo;
  if (auto read = ReadFeatures(table, row, columns.features, solo); !read) return read.error();
  if (auto read = ReadFeatures(table, row, columns.with_features, with_solo); !read) return read.error();
  return PairQuestion{JobNamed(row.fields[columns.job], solo), JobNamed(row.fields[columns.with_job], with_solo),
                      columns.gpu_type ? row.fields[columns.gpu_type->index] : ""};
}

Result<double> SpeedAt(const CsvTable& table, const CsvRow& row, std::size_t column) {
  double speed = 0;
  if (!ParseNumber(row.fields[column], speed)) {
    return BadField(table, row, column, "is not a number; give the speed as a share of solo, such as 0.85");
  }
  if (const auto why = WhyNoSpeed(speed)) return BadField(table, row, column, *why);
  return speed;
}

Result<double> MeasurementsAt(const CsvTable& table, const CsvRow& row, const std::optional<UnitColumn>& column) {
  double count = 1;
  if (!column || row.fields[column->index].empty()) return count;
  if (!ParseNumber(row.fields[column->index], count) || !(count >= 1 && count <= kMaxCount)) {
    return BadField(table, row, column->index, "is not a number of 1 or more, up to 1e12; leave it empty for 1");
  }
  return count;
}

std::string CountOf(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// Says what filling in and merging do, and does it.
void FillAndMerge(const std::string& name, CoRunTable& co_runs) {
  if (const std::size_t jobs = FillFeatures(KnownFeatures(co_runs.samples), co_runs.samples); jobs > 0) {
    co_runs.notes.push_back(name + ": features of " + CountOf(jobs, "job") + " taken from the co-runs");
  }
  const auto [least, most] = std::ranges::minmax(co_runs.samples, {}, &CoRunSample::speed);
  if (co_runs.samples.size() > 1 && least.speed == most.speed) {
    co_runs.notes.push_back(name + ": all speeds are " + Number(least.speed) + ", which tells no job from another");
  }
  const std::size_t before = co_runs.samples.size();
  co_runs.samples = MergeSamples(std::move(co_runs.samples));
  if (const std::size_t repeated = before - co_runs.samples.size(); repeated > 0) {
    co_runs.notes.push_back(name + ": " + CountOf(repeated, "row") +
                            " of pairs that other rows have as well: the mean of their speeds counts");
  }
  if (co_runs.samples.size() > kMaxCoRunSamples) {
    co_runs.notes.push_back(name + ": " + CountOf(co_runs.samples.size(), "pair") + ", of which " +
                            std::to_string(kMaxCoRunSamples) + " are used, drawn evenly from each GPU type");
  }
}

// Names of jobs go into JSON, which is UTF-8. Required columns are found in capitals as well.
Result<CsvTable> ParseTable(const CsvText& csv) {
  const std::string_view text = csv.text;
  const std::string_view header = text.substr(0, text.find_first_of("\r\n"));
  if (header.find(',') == header.npos && header.find_first_of(";\t") != header.npos) {
    return Error(ErrorCode::kDecode, csv.name + ":1: a header of one column; separate with commas");
  }
  Result<CsvTable> table = ParseCsv(csv.text, csv.name);
  if (!table) return table;
  int line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (!kube::IsValidUtf8(text.substr(begin, end - begin))) {
      return Error(ErrorCode::kDecode, csv.name + ":" + std::to_string(line) + ": is no UTF-8; save the file as UTF-8");
    }
    begin = end + 1;
  }
  for (std::string& name : table->header.fields) {
    const std::string lower = kube::LowerCase(name);
    if (lower == "job" || lower == "with_job" || lower == "speed") name = lower;
  }
  return table;
}

// Smallest, mean and largest of a feature.
struct FeatureRange {
  double least = INFINITY, mean = 0, most = 0, count = 0;
  void Add(const std::optional<double>& value) {
    if (!value) return;
    least = std::min(least, *value);
    most = std::max(most, *value);
    mean += (*value - mean) / ++count;
  }
};

template <typename Pair>
FeatureRange RangeOf(const std::vector<Pair>& pairs, std::optional<double> SoloFeatures::*member) {
  FeatureRange range;
  for (const Pair& pair : pairs) {
    range.Add(pair.job.solo.*member);
    range.Add(pair.partner.solo.*member);
  }
  return range;
}

}  // namespace

Result<CoRunTable> ReadCoRuns(const CsvText& csv) {
  const Result<CsvTable> table = ParseTable(csv);
  if (!table) return table.error();
  CoRunTable co_runs;
  const Result<PairColumns> columns = FindColumns(*table, kPointColumns, co_runs.notes);
  if (!columns) return columns.error();
  const Result<std::size_t> speed_column = FindColumn(*table, "speed", kPointColumns);
  if (!speed_column) return speed_column.error();
  std::size_t unknown = 0;
  for (const CsvRow& row : table->rows) {
    if (row.fields[*speed_column].empty()) {
      ++unknown;
      continue;
    }
    Result<PairQuestion> pair = PairAt(*table, row, *columns);
    if (!pair) return pair.error();
    const Result<double> speed = SpeedAt(*table, row, *speed_column);
    if (!speed) return speed.error();
    const Result<double> count = MeasurementsAt(*table, row, columns->count);
    if (!count) return count.error();
    co_runs.samples.push_back(
        {std::move(pair->job), std::move(pair->partner), std::move(pair->gpu_type), std::min(*speed, 1.0), *count});
  }
  if (unknown > 0) co_runs.notes.push_back(csv.name + ": left out " + CountOf(unknown, "row") + " without a speed");
  if (co_runs.samples.empty()) {
    return Error(ErrorCode::kDecode,
                 csv.name + ":2: no co-run below the header; add a line for each that was measured");
  }
  FillAndMerge(csv.name, co_runs);
  return co_runs;
}

Result<PairTable> ReadPairs(const CsvText& csv) {
  const Result<CsvTable> table = ParseTable(csv);
  if (!table) return table.error();
  if (table->rows.size() > kMostQuestions) {
    return Error(ErrorCode::kTooLarge, csv.name + ": " + std::to_string(table->rows.size()) + " rows, at most " +
                                           std::to_string(kMostQuestions) + " are predicted at a time; split it");
  }
  PairTable pairs;
  const Result<PairColumns> columns = FindColumns(*table, kPairColumns, pairs.notes);
  if (!columns) return columns.error();
  for (const CsvRow& row : table->rows) {
    Result<PairQuestion> pair = PairAt(*table, row, *columns);
    if (!pair) return pair.error();
    pairs.questions.push_back(*std::move(pair));
  }
  if (pairs.questions.empty()) pairs.notes.push_back(csv.name + ": no rows below the header");
  return pairs;
}

std::vector<std::string> NotesOn(const std::string& name, const InterferenceModel& model,
                                 const std::vector<PairQuestion>& questions) {
  constexpr double kFar = 10;
  std::vector<std::string> notes;
  std::vector<PairQuestion> filled = questions;
  if (const std::size_t jobs = FillFeatures(model.known_features(), filled); jobs > 0) {
    notes.push_back(name + ": features of " + CountOf(jobs, "job") + " taken from the co-runs");
  }
  std::set<std::string> types, unknown_types;
  for (const CoRunSample& sample : model.samples()) types.insert(sample.gpu_type);
  for (const PairQuestion& question : questions) {
    if (!question.gpu_type.empty() && !types.contains(question.gpu_type)) unknown_types.insert(question.gpu_type);
  }
  for (const std::string& type : unknown_types) notes.push_back(name + ": no co-run is of GPU type " + type);
  for (const Feature& feature : kFeatures) {
    const FeatureRange known = RangeOf(model.samples(), feature.member), asked = RangeOf(questions, feature.member);
    if (known.count == 0 || asked.count == 0) continue;
    if (asked.most >= known.mean / kFar && asked.most <= known.most * kFar) continue;
    notes.push_back(name + ": " + std::string(feature.names.front()) + " is " + Number(asked.least) + " to " +
                    Number(asked.most) + ", but " + Number(known.least) + " to " + Number(known.most) +
                    " in the co-runs; give both in one unit");
  }
  return notes;
}

std::string SpeedsAsCsv(const std::vector<SpeedShare>& speeds) {
  std::string csv = "speed,low,high\n";
  for (const SpeedShare& share : speeds) {
    csv += Number(share.speed) + "," + Number(share.low) + "," + Number(share.high) + "\n";
  }
  return csv;
}

}  // namespace grus
