// SPDX-License-Identifier: Apache-2.0
// The status of ElasticHorovodJob.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clientlib/model/box.h"
#include "clientlib/model/condition.h"
#include "clientlib/model/field.h"
#include "clientlib/model/time.h"

namespace api {

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

// What the job has used so far: what queues and sizes are decided by. A restart of grus must not forget it.
struct JobUsage {
  std::int64_t gpu_seconds = 0;  // Until lastScale; since then the present workers use more.
  std::int64_t run_seconds = 0;  // With workers; likewise.
  std::int32_t resizes = 0;      // Changes of size while it ran.
  std::int32_t restarts = 0;     // How often all its workers were given back.
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const JobUsage&, const JobUsage&) = default;
};

// How far the training is, and when it is done: what its log says, or what it pushes. Of the launcher that ran last.
struct Progress {
  std::string summary;  // "42%", or "step 1200" where the end is not known.
  std::optional<std::int64_t> step, total_steps, epoch, total_epochs;
  std::optional<std::int32_t> percent;
  std::optional<kube::Time> eta, eta_earliest, eta_latest;
  std::optional<kube::Time> time;  // Of the line, or of the push, that says so.
  std::string metric;              // Written by other tools.
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
  std::optional<JobUsage> usage;
  kube::Box<Progress> progress;
  std::optional<JobProfile> profile;
  std::string selector;
  std::optional<kube::Time> start_time, completion_time;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const ElasticHorovodJobStatus&, const ElasticHorovodJobStatus&) = default;
};

}  // namespace api
