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
#include "crds/types/pod_group.h"

namespace api {

// The scheduling gate with which an older grus kept the ordinals of workers that were not to run.
inline constexpr char kParkGate[] = "ai.centauruscloud.io/parked";

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

// Counts of worker replicas.
struct ReplicaStatus {
  std::int32_t min = 0, max = 0;  // What the spec says, defaults filled in.
  std::int32_t wanted = 0;        // What the user or the allocator asked for.
  std::int32_t granted = 0;       // How many may run now.
  std::int32_t created = 0;       // Pods that exist and are not being deleted.
  std::int32_t ready = 0;
  std::int32_t unschedulable = 0;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const ReplicaStatus&, const ReplicaStatus&) = default;
};

struct LastScale {
  std::int32_t from = 0, to = 0;
  std::string reason;
  kube::Time time;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const LastScale&, const LastScale&) = default;
};

// Progress of the training, written by other tools; grus does not write it.
struct Progress {
  std::optional<std::int64_t> step, epoch;
  std::string metric;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const Progress&, const Progress&) = default;
};

// What was measured of the job's workload before.
struct JobProfile {
  std::string name;                       // Of the WorkloadProfile.
  std::optional<std::int32_t> knee_gpus;  // On the GPU type that the job runs on, if that is known.
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const JobProfile&, const JobProfile&) = default;
};

struct ElasticHorovodJobStatus {
  std::vector<kube::Condition> conditions;
  std::string phase;
  std::int64_t observed_generation = 0;
  std::int32_t available_replicas = 0;
  std::string launcher, workers;  // As in the original: "job.batch/NAME", "pods -l SELECTOR".
  ReplicaStatus replicas;
  std::optional<LastScale> last_scale;
  std::optional<Progress> progress;
  std::optional<JobProfile> profile;
  std::string selector;
  std::optional<kube::Time> start_time, completion_time;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const ElasticHorovodJobStatus&, const ElasticHorovodJobStatus&) = default;
};

struct ElasticHorovodJob : kube::Object {
  ElasticHorovodJobSpec spec;
  ElasticHorovodJobStatus status;
  static const kube::Kind& ResourceKind();
};

}  // namespace api
