// SPDX-License-Identifier: Apache-2.0
// PodGroup (pg): pods that start together or not at all. The kind of the coscheduling plugin of
// kubernetes-sigs/scheduler-plugins, with its fields, phases and names, and some fields of our own; also in the API
// group of that plugin's first versions (scheduling.sigs.k8s.io).
//
// A label (kPodGroupLabel) puts a pod into a group of its namespace; a scheduling gate (kGangGate) makes it wait.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/model/condition.h"
#include "clientlib/model/kind.h"
#include "clientlib/model/quantity.h"

namespace api {

inline constexpr char kPodGroupLabel[] = "scheduling.x-k8s.io/pod-group";
inline constexpr char kLegacyPodGroupLabel[] = "pod-group.scheduling.sigs.k8s.io";
inline constexpr std::int64_t kLongestRuntime = 315'360'000;  // Seconds: ten years.
// On a PodGroup: the GpuQueue that it is in, and its class, one of WorkloadClass. Of an ElasticHorovodJob, its spec
// says both.
inline constexpr char kQueueNameLabel[] = "ai.centauruscloud.io/queue-name";
inline constexpr char kWorkloadClassLabel[] = "ai.centauruscloud.io/workload-class";
inline constexpr char kGangGate[] = "scheduling.x-k8s.io/gang";
// When the gate was lifted, written by the same patch; omitted on pods whose owner planned for them and that waited
// only a moment (adr/0008). On others it also tells a later pass, or another process, that grus may delete the pod if
// the gang stays incomplete.
inline constexpr char kGangLiftedAnnotation[] = "scheduling.ai.centauruscloud.io/lifted";

// What to do about a gang that does not fit.
enum class WhenUnschedulable { kWait, kUngate };
std::span<const std::string_view> EnumNames(WhenUnschedulable);

struct PodGroupSpec {
  std::int32_t min_member = 1;
  std::map<std::string, kube::Quantity> min_resources;
  std::optional<std::int32_t> schedule_timeout_seconds;
  std::optional<std::int64_t> expected_runtime_seconds;
  WhenUnschedulable when_unschedulable = WhenUnschedulable::kWait;
  static std::span<const kube::FieldInfo> Fields();
};

struct PodGroupStatus {
  std::string phase;
  std::string occupied_by;
  std::int32_t scheduled = 0, running = 0, succeeded = 0, failed = 0;  // Members; ended ones count as scheduled.
  std::optional<kube::Time> schedule_start_time;
  std::int32_t attempts = 0;  // Roll-backs since the gang last ran; while it runs, of extra members.
  std::optional<kube::Time> next_attempt_time;
  std::int32_t started_min_member = 0;  // minMember when the gang last came together; 0: it does not run.
  // Where its queue limits how long it runs:
  std::int64_t run_seconds = 0;             // That members have had nodes, until runningSince.
  std::optional<kube::Time> running_since;  // While members have nodes.
  std::int64_t observed_generation = 0;
  std::vector<kube::Condition> conditions;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const PodGroupStatus&, const PodGroupStatus&) = default;
};

struct PodGroup : kube::Object {
  PodGroupSpec spec;
  PodGroupStatus status;
  static const kube::Kind& ResourceKind();
};

// The same under scheduling.sigs.k8s.io.
struct LegacyPodGroup : PodGroup {
  static const kube::Kind& ResourceKind();
};

}  // namespace api
