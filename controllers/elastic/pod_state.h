// SPDX-License-Identifier: Apache-2.0
// The pods of a job, as far as its plan looks. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/core_v1.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {

// Whether the workers are members of the job's PodGroup.
enum class Gang {
  kNone,     // Gangs are switched off, or were when these workers were started.
  kUngated,  // No competitor existed when they were started, or the pods are made for an autoscaler to see.
  kGated,    // Born with the gang's gate, which the PodGroup's controller lifts.
};

// On workers that are born with the gang's gate: one that is lifted within moments leaves no other trace.
inline constexpr char kBornGatedAnnotation[] = "ai.centauruscloud.io/born-gated";
// On workers and the launcher's Job: status.usage.restarts when they were made; none: 0. What was made before the last
// restart is deleted, and never part of the job again.
inline constexpr char kRestartsAnnotation[] = "ai.centauruscloud.io/restarts";

// A pod of the job, as far as the plan looks.
struct PodState {
  std::string name, uid;
  bool is_bound = false;         // Has a node.
  bool is_ending = false;        // Being deleted, or ended; another one replaces it.
  bool has_ended = false;        // Ended, and not being deleted.
  bool has_lost_node = false;    // Its node is not in the cluster any more.
  bool is_left_over = false;     // Made before the job last gave everything back.
  std::string trouble;           // Why it does not run, in the kubelet's words; empty: nothing is known to be wrong.
  std::string silent_scheduler;  // See SilentSchedulerOf().
  std::string end;               // How its container failed last: "exit code 137 (OOMKilled)"; empty: it did not.
  bool is_leaving() const { return is_ending || has_lost_node || is_left_over; }
  bool is_on_node() const { return is_bound && !is_leaving(); }
};

struct Worker : PodState {
  int ordinal = 0;
  std::string node;  // Empty: none.
  std::string resource_version;
  bool is_ready = false;
  std::string address;  // IPv4, as Horovod needs it; empty: none yet, or none of that kind.
  Gang gang = Gang::kNone;
  std::optional<kube::Time> created, leaves_by;  // By then it should be gone, if it is being deleted.
  std::optional<kube::Time> asked_since, unschedulable_since, bound_since, ready_since;  // Asked: the scheduler got it.
  std::optional<kube::Time> unready_since;  // Bound, and not ready since then.
  std::optional<kube::Time> silent_since;   // Its container has run since then, and its ssh server does not answer.
  bool is_gated = false;                    // By the gang's gate.
  std::string foreign_gate;                 // Another controller's: it cannot start whatever we do. Empty: none.
  bool has_filled_security = false;         // By FillPodSecurity().
  bool has_started = false;                 // Its node has reported a running container.
  // Its containers were ready when its node was last heard of, but the node is silent: it may well train on.
  bool is_cut_off = false;
  bool is_let_go() const { return !is_gated && foreign_gate.empty(); }  // The scheduler may have it.
  // Horovod may use it.
  bool is_usable() const { return is_ready && !is_leaving() && !address.empty(); }
};

using WorkerSet = std::set<const Worker*>;  // Into View::pods.
struct LauncherPod : PodState {
  bool is_running = false;
  std::int64_t hosts_revision = 0;  // Last revision of the host list pushed into the pod; 0: none.
  std::string told_deadline;        // Of the job's preemption, in its annotation; empty: none.
  std::optional<kube::Time> created, running_since;
  std::optional<kube::Time> ended;         // When its container ended, if known.
  std::optional<kube::Time> silent_since;  // It has printed nothing for longer than the job's limit.
  bool trains() const { return is_running && !is_ending; }
};

// Made before the job last gave everything back.
bool IsLeftOver(const kube::ObjectMeta& child, const api::ElasticHorovodJob& job);
int RestartsOf(const api::ElasticHorovodJob& job);
Worker ReadWorker(const kube::Pod& pod, int ordinal, bool has_node);
LauncherPod ReadLauncherPod(const kube::Pod& pod, bool has_node);
// In the order in which a job keeps them: ready ones, those on the nodes with most of its workers, low ordinals. What
// is left then talks across few nodes, and whole nodes come free.
void SortByWorth(std::vector<const Worker*>& workers);
// The ordinal in "bert-workers-12" for "bert-workers"; nullopt if it is another's pod.
std::optional<int> OrdinalOf(std::string_view pod_name, std::string_view workers_name);

}  // namespace grus
