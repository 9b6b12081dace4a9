// SPDX-License-Identifier: Apache-2.0
// WorkloadProfile (wp): how fast one workload trains on which GPUs, kept for its namespace, or for all. TrialJobs write
// their measurements and read those of others; people read the knee.
//
// The measurements are the spec: they cannot be repeated without GPU hours, so backups, `kubectl apply` to another
// cluster and GitOps must keep them. grus derives the status from them alone; it may be lost.
//
// Running jobs refresh them: a point that a job measured while it trained has cost no GPU seconds, and says so in
// measuredBy. What they used of their nodes is in `runs` and `features`; how fast they were beside other workloads on
// their GPUs, in `coRuns`.
//
// Workloads are the same when their fingerprints are. The name is the fingerprint, so two profiles are never about one
// workload, even if created at the same time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/model/condition.h"
#include "clientlib/model/kind.h"
#include "clientlib/model/quantity.h"
#include "crds/types/co_run.h"
#include "crds/types/measurement.h"
#include "crds/types/workload_usage.h"

namespace api {

// etcd takes 1.5 MB; so many points, with their managedFields, are 0.7 MB.
inline constexpr std::int64_t kMaxProfilePoints = 512;

// All that can change the speed of a workload on given GPUs.
struct ProfiledWorkload {
  std::string image = {};  // By digest where it is known.
  std::vector<std::string> command = {}, args = {};
  std::map<std::string, kube::Quantity> resources = {};  // Of a worker, without its GPUs.
  std::int32_t gpus_per_worker = 1;
  std::string model = {}, dataset = {};
  std::string ns = {};  // Whose measurements they are; empty: everybody's.
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const ProfiledWorkload&, const ProfiledWorkload&) = default;
};

struct ProfilePoint {
  std::string name = {};
  TrialConfig config = {};
  Measurement measured = {};
  std::int64_t gpu_seconds = 0;
  std::string measured_by = {};
  kube::Time time = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const ProfilePoint&, const ProfilePoint&) = default;
};

struct WorkloadProfileSpec {
  std::string fingerprint = {};
  ProfiledWorkload workload = {};
  ThroughputUnit throughput_unit = ThroughputUnit::kNotKnown;
  std::vector<ProfilePoint> points = {};
  std::vector<WorkloadRun> runs = {};          // The last ones.
  std::vector<GpuTypeFeatures> features = {};  // What the runs say.
  std::vector<CoRun> co_runs = {};             // How fast it was beside others on its GPUs.
  static std::span<const kube::FieldInfo> Fields();
};

// What the points of one GPU type say.
struct GpuTypeProfile {
  ThroughputModel model = {};
  std::int32_t points = 0;
  std::optional<std::int32_t> knee_gpus = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const GpuTypeProfile&, const GpuTypeProfile&) = default;
};

// A running job that is not as fast as was measured.
struct ProfileDrift {
  std::string job = {};
  TrialConfig config = {};  // Of the point.
  Measurement expected = {}, observed = {};
  kube::Time time = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const ProfileDrift&, const ProfileDrift&) = default;
};

struct WorkloadProfileStatus {
  std::int64_t observed_generation = 0;
  std::vector<kube::Condition> conditions = {};
  std::string gpus = {}, knee = {};  // For the columns: "A100,H100" and "8,16".
  std::int32_t points = 0;
  std::vector<GpuTypeProfile> gpu_types = {};
  std::optional<ProfileDrift> drift = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const WorkloadProfileStatus&, const WorkloadProfileStatus&) = default;
};

struct WorkloadProfile : kube::Object {
  WorkloadProfileSpec spec;
  WorkloadProfileStatus status;
  static const kube::Kind& ResourceKind();
};

}  // namespace api
