// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/model_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "clientlib/model/field.h"
#include "clientlib/model/json_reader.h"
#include "clientlib/model/json_writer.h"
#include "controllers/interference/co_run_samples.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Field;
using kube::FieldInfo;

constexpr kube::JsonLimits kLimits = {.max_bytes = kMaxModelBytes, .max_depth = 8, .max_values = 200000};

struct FileJob {
  std::string fingerprint = {}, family = {};
  std::optional<double> gpu_utilization = {}, memory_bandwidth = {}, memory_mebibytes = {};
  std::optional<double> step_milliseconds = {}, batch_size = {};
  static std::span<const FieldInfo> Fields() {
    using T = FileJob;
    static constexpr FieldInfo kFields[] = {
        Field<&T::fingerprint>("fingerprint"),
        Field<&T::family>("family"),
        Field<&T::gpu_utilization>("gpuUtilizationPercent"),
        Field<&T::memory_bandwidth>("memoryBandwidthPercent"),
        Field<&T::memory_mebibytes>("memoryMebibytes"),
        Field<&T::step_milliseconds>("stepMilliseconds"),
        Field<&T::batch_size>("batchSize"),
    };
    return kFields;
  }
};

struct FileCoRun {
  std::int64_t job = -1, partner = -1;  // Among the jobs of the file.
  std::string gpu_type = {};
  double speed = 0, count = 1;
  static std::span<const FieldInfo> Fields() {
    using T = FileCoRun;
    static constexpr FieldInfo kFields[] = {
        Field<&T::job>("job"),     Field<&T::partner>("partner"), Field<&T::gpu_type>("gpuType"),
        Field<&T::speed>("speed"), Field<&T::count>("count"),
    };
    return kFields;
  }
};

struct FileModel {
  std::int64_t version = 0;
  std::vector<FileJob> jobs = {};
  std::optional<std::vector<FileCoRun>> co_runs =
      {};  // Optional, so that a file that lacks it is told from one with none.
  std::vector<double> with_features = {}, without_features = {};
  std::optional<std::vector<double>> known_jobs_widths = {};
  std::optional<double> features_weight = {}, new_job_width = {}, new_family_width = {};
  static std::span<const FieldInfo> Fields() {
    using T = FileModel;
    static constexpr FieldInfo kFields[] = {
        Field<&T::version>("version"),
        Field<&T::jobs>("jobs"),
        Field<&T::co_runs>("coRuns"),
        Field<&T::with_features>("scalesWithFeatures"),
        Field<&T::without_features>("scalesWithoutFeatures"),
        Field<&T::features_weight>("featuresWeight"),
        Field<&T::known_jobs_widths>("knownJobsWidths"),
        Field<&T::new_job_width>("newJobWidth"),
        Field<&T::new_family_width>("newFamilyWidth"),
    };
    return kFields;
  }
};

// Read first, so that a file of another version is named as such, whatever else stands in it.
struct FileVersion {
  std::int64_t version = 0;
  static std::span<const FieldInfo> Fields() {
    static constexpr FieldInfo kFields[] = {Field<&FileVersion::version>("version")};
    return kFields;
  }
};

FileJob ToFile(const SharedJob& job) {
  return {job.fingerprint,           job.family,
          job.solo.gpu_utilization,  job.solo.memory_bandwidth,
          job.solo.memory_mebibytes, job.solo.step_milliseconds,
          job.solo.batch_size};
}

SharedJob FromFile(const FileJob& job) {
  return {job.fingerprint,
          job.family,
          {job.gpu_utilization, job.memory_bandwidth, job.memory_mebibytes, job.step_milliseconds, job.batch_size}};
}

bool IsBetween(double value, double low, double high) { return value >= low && value <= high; }  // False for NaN.

std::optional<std::string> ReadScales(const std::vector<double>& values, const char* field, PairScales& scales) {
  if (values.size() != scales.size() || !std::ranges::all_of(values, [](double v) { return IsBetween(v, -20, 20); })) {
    return std::string(field) + ": expected " + std::to_string(scales.size()) + " numbers from -20 to 20";
  }
  std::ranges::copy(values, scales.begin());
  return std::nullopt;
}

std::optional<std::string> ReadParameters(const FileModel& file, InterferenceParameters& parameters) {
  if (auto why = ReadScales(file.with_features, "scalesWithFeatures", parameters.with_features)) return why;
  if (auto why = ReadScales(file.without_features, "scalesWithoutFeatures", parameters.without_features)) return why;
  if (!IsBetween(file.features_weight.value_or(-1), 0, 1)) return "featuresWeight: expected a number from 0 to 1";
  if (!file.known_jobs_widths) return "knownJobsWidths: expected a number for each GPU type";
  std::vector<double> widths = *file.known_jobs_widths;
  widths.insert(widths.end(), {file.new_job_width.value_or(0), file.new_family_width.value_or(0)});
  if (!std::ranges::all_of(widths, [](double width) { return IsBetween(width, 1, 1000); })) {
    return "a width of intervals is not from 1 to 1000";
  }
  parameters.features_weight = *file.features_weight;
  parameters.known_jobs_widths = *file.known_jobs_widths;
  parameters.new_job_width = *file.new_job_width;
  parameters.new_family_width = *file.new_family_width;
  return std::nullopt;
}

// REQUIRES: ReadParameters() took the file.
std::optional<std::string> ReadSamples(const FileModel& file, std::vector<CoRunSample>& samples) {
  if (!file.co_runs) return "coRuns: missing";
  if (file.co_runs->size() > kMaxCoRunSamples) {
    return "coRuns: " + std::to_string(file.co_runs->size()) + " items; at most " + std::to_string(kMaxCoRunSamples);
  }
  const auto jobs = static_cast<std::int64_t>(file.jobs.size());
  for (std::size_t i = 0; i < file.jobs.size(); ++i) {
    if (const auto why = WhyNoFeatures(FromFile(file.jobs[i]).solo)) return "jobs[" + std::to_string(i) + "]: " + *why;
  }
  std::set<std::string> types;
  for (std::size_t i = 0; i < file.co_runs->size(); ++i) {
    const FileCoRun& run = (*file.co_runs)[i];
    const std::string where = "coRuns[" + std::to_string(i) + "]: ";
    if (run.job < 0 || run.job >= jobs || run.partner < 0 || run.partner >= jobs) return where + "no such job";
    if (const auto why = WhyNoSpeed(run.speed)) return where + "speed " + *why;
    if (!IsBetween(run.count, 1, kMaxCount)) return where + "count: expected a number from 1 to 1e12";
    types.insert(run.gpu_type);
    samples.push_back({FromFile(file.jobs[static_cast<std::size_t>(run.job)]),
                       FromFile(file.jobs[static_cast<std::size_t>(run.partner)]), run.gpu_type, run.speed, run.count});
  }
  if (const std::size_t widths = file.known_jobs_widths->size(); widths != types.size()) {
    return "knownJobsWidths: " + std::to_string(widths) + " items; expected " + std::to_string(types.size()) +
           ", one for each GPU type";
  }
  return std::nullopt;
}

}  // namespace

std::string WriteModelFile(const InterferenceModel& model) {
  const InterferenceParameters& parameters = model.parameters();
  FileModel file;
  file.version = kModelFileVersion;
  std::map<SharedJob, std::int64_t> indices;
  file.co_runs.emplace();
  const auto index_of = [&](const SharedJob& job) {
    const auto [found, is_new] = indices.emplace(job, static_cast<std::int64_t>(indices.size()));
    if (is_new) file.jobs.push_back(ToFile(job));
    return found->second;
  };
  for (const CoRunSample& sample : model.samples()) {
    const std::int64_t job = index_of(sample.job), partner = index_of(sample.partner);
    file.co_runs->push_back({job, partner, sample.gpu_type, sample.speed, sample.count});
  }
  file.with_features.assign(parameters.with_features.begin(), parameters.with_features.end());
  file.without_features.assign(parameters.without_features.begin(), parameters.without_features.end());
  file.features_weight = parameters.features_weight;
  file.known_jobs_widths = parameters.known_jobs_widths;
  file.new_job_width = parameters.new_job_width;
  file.new_family_width = parameters.new_family_width;
  return kube::WriteText(file) + "\n";
}

kube::Result<InterferenceModel> ReadModelFile(std::string_view text, const std::string& name) {
  const auto refuse = [&](const std::string& why) {
    return Error(ErrorCode::kDecode, name + ": " + why + "; write it anew with kubectl grus interference fit --save");
  };
  const auto version = kube::ReadText<FileVersion>(text, kLimits);
  if (!version) return refuse("no interference model: " + version.error().message());
  if (version->version != kModelFileVersion) {
    return refuse("an interference model of version " + std::to_string(version->version) + ", but this grus reads " +
                  std::to_string(kModelFileVersion));
  }
  const auto file = kube::ReadText<FileModel>(text, kLimits);
  if (!file) return refuse(file.error().message());
  InterferenceParameters parameters;
  std::vector<CoRunSample> samples;
  if (const auto why = ReadParameters(*file, parameters)) return refuse(*why);
  if (const auto why = ReadSamples(*file, samples)) return refuse(*why);
  return InterferenceModel(std::move(samples), parameters);
}

}  // namespace grus
