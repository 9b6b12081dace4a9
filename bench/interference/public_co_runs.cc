// SPDX-License-Identifier: Apache-2.0
#include "bench/interference/public_co_runs.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "controllers/kubectl/csv.h"
#include "controllers/kubectl/text_file.h"

namespace grus {
namespace {

using Row = std::map<std::string, std::string>;  // By column.

kube::Result<std::vector<Row>> LoadRows(const std::filesystem::path& path) {
  const auto file = ReadFile(path.string());
  if (!file) return file.error();
  const auto table = ParseCsv(file->text, file->name);
  if (!table) return table.error();
  std::vector<Row> rows;
  for (const CsvRow& fields : table->rows) {
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < fields.fields.size(); ++i) row[table->header.fields[i]] = fields.fields[i];
  }
  return rows;
}

double NumberIn(const Row& row, const std::string& column) { return std::strtod(row.at(column).c_str(), nullptr); }

SharedJob AlnairJob(const Row& row, const std::string& prefix) {
  const std::string name = row.at(prefix + "job");
  SharedJob job{name + ":" + row.at(prefix + "batch"), name, {}};
  job.solo.gpu_utilization = NumberIn(row, prefix + "solo_gpu_util_pct");
  job.solo.step_milliseconds = NumberIn(row, prefix + "solo_us_per_10_steps") / 1e4;
  job.solo.batch_size = NumberIn(row, prefix + "batch");
  return job;
}

}  // namespace

kube::Result<std::vector<CoRunSample>> LoadAlnair(const std::filesystem::path& data) {
  const auto rows = LoadRows(data / "alnair/interference_matrix_mps.csv");
  if (!rows) return rows.error();
  std::vector<CoRunSample> samples;
  for (const Row& row : *rows) {
    const double speed = NumberIn(row, "solo_us_per_10_steps") / NumberIn(row, "packed_us_per_10_steps");
    samples.push_back({AlnairJob(row, ""), AlnairJob(row, "with_"), "", speed, 1});
  }
  return samples;
}

kube::Result<std::vector<CoRunSample>> LoadGavel(const std::filesystem::path& data,
                                                 const std::vector<std::string>& gpu_types, bool hides_names) {
  const auto rows = LoadRows(data / "gavel/pair_throughputs.csv");
  if (!rows) return rows.error();
  std::map<std::string, char> letters;
  const auto job_named = [&](const std::string& name) {
    const char letter = letters.emplace(name, static_cast<char>('a' + letters.size())).first->second;
    return SharedJob{hides_names ? std::string(1, letter) : name, "", {}};
  };
  std::vector<CoRunSample> samples;
  for (const Row& row : *rows) {
    if (std::ranges::count(gpu_types, row.at("gpu_type")) == 0) continue;
    const double speed = NumberIn(row, "steps_per_second") / NumberIn(row, "solo_steps_per_second");
    samples.push_back({job_named(row.at("job")), job_named(row.at("with_job")), row.at("gpu_type"), speed, 1});
  }
  return samples;
}

}  // namespace grus
