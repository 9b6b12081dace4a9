// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/trial_fit.h"

#include <cmath>
#include <vector>

#include "controllers/kubectl/csv.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Result;

constexpr std::string_view kSizeColumns = "num_nodes, num_replicas and local_bsz";
constexpr std::string_view kMeasurementColumns = "num_nodes, num_replicas, local_bsz and step_time";

constexpr double kMostReplicas = 1e6;

struct Columns {
  std::size_t nodes = 0, replicas = 0, batch = 0;
};

Result<Columns> FindSizeColumns(const CsvTable& table, std::string_view wanted) {
  Columns columns;
  const std::pair<const char*, std::size_t*> kWanted[] = {
      {"num_nodes", &columns.nodes}, {"num_replicas", &columns.replicas}, {"local_bsz", &columns.batch}};
  for (const auto& [name, index] : kWanted) {
    const Result<std::size_t> found = FindColumn(table, name, wanted);
    if (!found) return found.error();
    *index = *found;
  }
  return columns;
}

Result<int> CountAt(const CsvTable& table, const CsvRow& row, std::size_t column) {
  double count = 0;  // Other programs may write 2.0.
  if (!ParseNumber(row.fields[column], count) || !(count >= 1) || count > kMostReplicas || count != std::floor(count)) {
    return BadField(table, row, column, "is not a whole number from 1 to 1000000");
  }
  return static_cast<int>(count);
}

Result<double> PositiveAt(const CsvTable& table, const CsvRow& row, std::size_t column, std::string_view remedy) {
  double number = 0;
  if (!ParseNumber(row.fields[column], number) || number <= 0) {
    return BadField(table, row, column, "is not a positive number; " + std::string(remedy));
  }
  return number;
}

Result<JobSize> SizeAt(const CsvTable& table, const CsvRow& row, const Columns& columns) {
  const Result<int> nodes = CountAt(table, row, columns.nodes);
  if (!nodes) return nodes.error();
  const Result<int> replicas = CountAt(table, row, columns.replicas);
  if (!replicas) return replicas.error();
  if (*replicas < *nodes) {
    return BadField(table, row, columns.replicas, "is less than num_nodes; each node holds at least one replica");
  }
  const Result<double> batch = PositiveAt(table, row, columns.batch, "give the samples per replica and step");
  if (!batch) return batch.error();
  return JobSize{*nodes, *replicas, *batch};
}

Result<std::vector<Measurement>> ReadMeasurements(const CsvText& csv) {
  const Result<CsvTable> table = ParseCsv(csv.text, csv.name);
  if (!table) return table.error();
  const Result<Columns> columns = FindSizeColumns(*table, kMeasurementColumns);
  if (!columns) return columns.error();
  const Result<std::size_t> step_time = FindColumn(*table, "step_time", kMeasurementColumns);
  if (!step_time) return step_time.error();
  std::vector<Measurement> measurements;
  for (const CsvRow& row : table->rows) {
    const Result<JobSize> size = SizeAt(*table, row, *columns);
    if (!size) return size.error();
    const Result<double> seconds =
        PositiveAt(*table, row, *step_time, "give the seconds of one step, or leave the line out");
    if (!seconds) return seconds.error();
    measurements.push_back({*size, *seconds});
  }
  if (measurements.empty()) {
    return Error(ErrorCode::kDecode, csv.name + ":2: no measurement below the header; add a line for each size tried");
  }
  return measurements;
}

}  // namespace

Result<std::string> PredictFromCsv(const CsvText& measurements, const CsvText& wanted, const FitOptions& options) {
  const Result<std::vector<Measurement>> points = ReadMeasurements(measurements);
  if (!points) return points.error();
  const Result<CsvTable> table = ParseCsv(wanted.text, wanted.name);
  if (!table) return table.error();
  const Result<Columns> columns = FindSizeColumns(*table, kSizeColumns);
  if (!columns) return columns.error();

  const Result<ThroughputFit> fit = FitThroughput(*points, options);
  if (!fit) return Error(fit.error()).with(measurements.name);
  std::string answer = "num_nodes,num_replicas,local_bsz,step_time,low,high,source\n";
  for (const CsvRow& row : table->rows) {
    const Result<JobSize> size = SizeAt(*table, row, *columns);
    if (!size) return size.error();
    const Result<Prediction> p = Predict(*fit, *size);
    if (!p) return Error(p.error()).with(wanted.name + ":" + std::to_string(row.line));
    for (const std::size_t column : {columns->nodes, columns->replicas, columns->batch}) {
      answer += row.fields[column] + ",";
    }
    answer += Number(p->step_seconds) + "," + Number(p->low) + "," + Number(p->high) + "," +
              std::string(ToString(p->source)) + "\n";
  }
  return answer;
}

}  // namespace grus
