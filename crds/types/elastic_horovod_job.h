// SPDX-License-Identifier: Apache-2.0
// ElasticHorovodJob (ehj): elastic training with Horovod. The API as C++ structs, described once; the CRD in
// crds/generated/ and the reader and writer of objects come from the same tables.
//
// Every manifest of the original Alnair applies unchanged: launcherSpec{image, pythonCommand} and workersSpec{image,
// minReplicas, maxReplicas, targetReplicas} mean what they meant there, and its containers and volumes at the
// top of the spec are merged into the pods.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clientlib/model/condition.h"
#include "clientlib/model/json.h"
#include "clientlib/model/kind.h"
#include "crds/types/elastic_job_status.h"
#include "crds/types/pod_group.h"

namespace api {

struct LauncherSpec {
  std::string image;
  std::vector<std::string> python_command;
  kube::Json pod_template;
  static std::span<const kube::FieldInfo> Fields();
};

inline constexpr int kMostReplicas = 10000;

struct WorkersSpec {
  std::string image;
  std::optional<std::int32_t> min_replicas, max_replicas, target_replicas;
  std::int32_t gpus_per_worker = 1;
  kube::Json pod_template;
  static std::span<const kube::FieldInfo> Fields();
};

enum class CleanPodPolicy { kRunning, kAll, kNone };
std::span<const std::string_view> EnumNames(CleanPodPolicy);

// By the names of Kubeflow's jobs.
struct SchedulingPolicy {
  std::optional<std::int32_t> min_available, schedule_timeout_seconds;
  WhenUnschedulable when_unschedulable = WhenUnschedulable::kWait;
  static std::span<const kube::FieldInfo> Fields();
};

struct RunPolicy {
  bool suspend = false;
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kRunning;
  std::int32_t backoff_limit = 1;
  std::optional<std::int64_t> active_deadline_seconds;
  std::optional<std::int32_t> ttl_seconds_after_finished;
  std::int32_t progress_deadline_seconds = 600;
  SchedulingPolicy scheduling_policy;
  std::string managed_by;
  static std::span<const kube::FieldInfo> Fields();
};

struct ElasticPolicy {
  std::int32_t unschedulable_grace_seconds = 15;
  bool scale_up = true;
  std::int32_t cooldown_seconds = 30;
  std::int32_t shrink_grace_seconds = 30;
  std::optional<std::int32_t> timeout_seconds, reset_limit;
  static std::span<const kube::FieldInfo> Fields();
};

enum class WorkloadClass { kUnattended, kInteractive, kInference };
std::span<const std::string_view> EnumNames(WorkloadClass);

struct ElasticHorovodJobSpec {
  LauncherSpec launcher;
  WorkersSpec workers;
  RunPolicy run_policy;
  ElasticPolicy elastic;
  std::string queue_name;
  WorkloadClass workload_class = WorkloadClass::kUnattended;
  std::string priority_class_name;
  std::string profile = "Auto";
  std::vector<kube::Json> containers, volumes;  // The original's: mounts for every container, volumes for every pod.
  static std::span<const kube::FieldInfo> Fields();
};

struct ElasticHorovodJob : kube::Object {
  ElasticHorovodJobSpec spec;
  ElasticHorovodJobStatus status;
  static const kube::Kind& ResourceKind();
};

}  // namespace api
