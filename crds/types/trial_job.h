// SPDX-License-Identifier: Apache-2.0
// TrialJob (tj): short measured runs of a training on several numbers and types of GPUs, before the long run. This is
// the spec; the status is in trial_job_status.h.
//
// A configuration is one GPU type, one number of GPUs and one batch size. spec.space says which there are,
// spec.strategy which of them are run. Each run is a trial: an ElasticHorovodJob of fixed size, or a Pod, made from the
// workload and deleted afterwards. Its image and command stay as they are; a batch size reaches the training as an
// environment variable or as an option after the command.
//
// Decimal numbers are strings ("2.0"); a number has its unit in its name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "crds/types/elastic_horovod_job.h"
#include "crds/types/trial_job_status.h"
#include "crds/types/trial_measure.h"

namespace api {

// A trial is named NAME-SUFFIX, and the name of an ElasticHorovodJob has at most 44 characters.
inline constexpr std::size_t kMaxTrialJobName = 32, kMaxTrialSuffix = 11;

struct JobRef {
  std::string name;
  static std::span<const kube::FieldInfo> Fields();
};

struct TrialTemplate {
  ElasticHorovodJobSpec spec;
  static std::span<const kube::FieldInfo> Fields();
};

// Exactly one of the three.
struct TrialWorkload {
  std::optional<JobRef> job_ref;
  std::optional<TrialTemplate> job_template;
  kube::Json pod_template;  // Null: not given.
  static std::span<const kube::FieldInfo> Fields();
};

struct GpuType {
  std::string name = {};
  std::map<std::string, std::string> node_selector = {};
  std::string price_per_hour = {};  // Of one GPU, a decimal number in the currency of the others; empty: not known.
  static std::span<const kube::FieldInfo> Fields();
};

// What a batch size counts: the samples of one GPU, or of all GPUs of the job together, in one step.
enum class BatchSizeScope { kPerGpu, kPerJob };
std::span<const std::string_view> EnumNames(BatchSizeScope);

// Of the workers of a trial: on as few nodes as have room, or on twice as many.
enum class Placement { kPacked, kSpread };
std::span<const std::string_view> EnumNames(Placement);

struct TrialSpace {
  std::vector<GpuType> gpu_types;
  std::vector<std::int32_t> gpu_counts, node_counts, batch_sizes;
  std::vector<Placement> placements;
  std::string batch_size_env, batch_size_option;
  BatchSizeScope batch_size_scope = BatchSizeScope::kPerGpu;
  static std::span<const kube::FieldInfo> Fields();
};

enum class StrategyType { kLadder, kGrid };
std::span<const std::string_view> EnumNames(StrategyType);

struct TrialStrategy {
  StrategyType type = StrategyType::kLadder;
  std::int32_t max_trials = 16, parallelism = 1;
  static std::span<const kube::FieldInfo> Fields();
};

struct TrialBudget {
  std::optional<std::int64_t> wall_seconds, gpu_seconds;
  std::int32_t per_trial_seconds = 600;
  static std::span<const kube::FieldInfo> Fields();
};

struct Extrapolation {
  std::optional<std::int32_t> max_gpus;
  std::string max_interval_ratio = "2.0";
  static std::span<const kube::FieldInfo> Fields();
};

enum class CachePolicy { kUse, kRefresh, kOff };
std::span<const std::string_view> EnumNames(CachePolicy);

struct TrialCache {
  CachePolicy policy = CachePolicy::kUse;
  std::int64_t max_age_seconds = 2592000;
  static std::span<const kube::FieldInfo> Fields();
};

enum class ApplyPolicy { kRecommend, kApply };
std::span<const std::string_view> EnumNames(ApplyPolicy);

enum class TrialCleanup { kAlways, kOnSuccess, kNever };
std::span<const std::string_view> EnumNames(TrialCleanup);

struct TrialJobSpec {
  TrialWorkload workload;
  TrialSpace space;
  TrialStrategy strategy;
  TrialMeasure measure;
  TrialBudget budget;
  bool early_stop = true, idle_only = false;
  Extrapolation extrapolate;
  TrialCache cache;
  ApplyPolicy apply = ApplyPolicy::kRecommend;
  TrialCleanup cleanup = TrialCleanup::kAlways;
  bool suspend = false;
  static std::span<const kube::FieldInfo> Fields();
};

struct TrialJob : kube::Object {
  TrialJobSpec spec;
  TrialJobStatus status;
  static const kube::Kind& ResourceKind();
};

}  // namespace api
