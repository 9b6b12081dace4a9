// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/trial_export.h"

#include <set>
#include <utility>

#include "clientlib/model/json.h"
#include "controllers/kubectl/csv.h"
#include "controllers/policy/decimal.h"
#include "controllers/policy/profile_drift.h"
#include "controllers/throughput/profile_measurements.h"

namespace grus {
namespace {

using kube::Json;

struct Field {
  const char* column;
  std::string text;
  bool is_number = true;
};
using Row = std::vector<Field>;

// Quoted where a reader would take it for more than one field.
std::string InCsv(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::vector<Row> RowsOf(const api::WorkloadProfileSpec& measured, const std::string& gpu_type) {
  std::vector<Row> rows;
  for (const api::ProfilePoint& point : measured.points) {
    const auto one = MeasurementOf(measured, point);
    const auto throughput = ThroughputOf(point.measured);
    if (!one || !throughput || (!gpu_type.empty() && point.config.gpu_type != gpu_type)) continue;
    rows.push_back({{"gpu_type", point.config.gpu_type, false},
                    {"num_nodes", std::to_string(one->size.nodes)},
                    {"num_replicas", std::to_string(one->size.replicas)},
                    {"local_bsz", Number(one->size.local_batch_size)},
                    {"step_time", Number(one->step_seconds)},
                    {"batch_size", std::to_string(point.config.batch_size)},
                    {"throughput", Number(throughput->mean)},
                    {"low", Number(throughput->low)},
                    {"high", Number(throughput->high)},
                    {"unit", std::string(UnitText(measured.throughput_unit)), false}});
  }
  return rows;
}

std::string AsCsv(const std::vector<Row>& rows) {
  std::string text;
  const auto add_line = [&text](const Row& row, auto part) {
    for (const Field& field : row) text += (&field == &row.front() ? "" : ",") + InCsv(part(field));
    text += "\n";
  };
  add_line(rows.front(), [](const Field& field) { return std::string(field.column); });
  for (const Row& row : rows) add_line(row, [](const Field& field) { return field.text; });
  return text;
}

std::string AsJson(const std::vector<Row>& rows) {
  Json all = Json::MakeArray();
  for (const Row& row : rows) {
    Json one = Json::MakeObject();
    for (const Field& field : row) {
      if (!field.is_number) one[field.column] = field.text;
      else if (auto number = kube::ParseJson(field.text)) one[field.column] = *std::move(number);
    }
    all.Append(std::move(one));
  }
  return kube::ToText(all) + "\n";
}

std::set<std::string> TypesIn(const api::WorkloadProfileSpec& measured) {
  std::set<std::string> types;
  for (const api::ProfilePoint& point : measured.points) types.insert(point.config.gpu_type);
  return types;
}

}  // namespace

api::WorkloadProfileSpec MeasuredBy(const api::TrialJob& trial) {
  api::WorkloadProfileSpec measured;
  measured.throughput_unit = trial.status.throughput_unit;
  for (const api::Trial& one : trial.status.trials) {
    if (one.phase != api::TrialPhase::kSucceeded || !one.measured || one.measured->is_scope_unknown) continue;
    api::ProfilePoint& point = measured.points.emplace_back();
    point.name = one.name;
    point.config = one.config;
    point.measured = *one.measured;
  }
  return measured;
}

kube::Result<std::string> ExportPoints(const api::WorkloadProfileSpec& measured, const std::string& name,
                                       const ExportOptions& options) {
  const std::vector<Row> rows = RowsOf(measured, options.gpu_type);
  if (rows.empty()) {
    const std::string on = options.gpu_type.empty() ? "" : " on " + options.gpu_type;
    return kube::Error(kube::ErrorCode::kNotFound, name + ": nothing was measured" + on + " yet");
  }
  return options.is_json ? AsJson(rows) : AsCsv(rows);
}

kube::Result<std::string> ChooseType(const api::WorkloadProfileSpec& measured, const std::string& name,
                                     const std::string& asked) {
  const std::set<std::string> types = TypesIn(measured);
  if (types.empty() || (!asked.empty() && types.contains(asked))) return asked;
  if (types.size() == 1 && asked.empty()) return *types.begin();
  std::string all;
  for (const std::string& type : types) all += (all.empty() ? "" : ", ") + (type.empty() ? "(any)" : type);
  return kube::Error(kube::ErrorCode::kInvalidArgument,
                     name + (asked.empty() ? " has several GPU types" : " was not measured on " + asked) +
                         "; choose one with --gpu-type: " + all);
}

}  // namespace grus
