// SPDX-License-Identifier: Apache-2.0
// All that the plan may know of one job, as one value.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "clientlib/model/batch_v1.h"
#include "clientlib/model/core_v1.h"
#include "controllers/cluster/owners.h"
#include "controllers/elastic/host_list.h"
#include "controllers/policy/cluster_ledger.h"
#include "controllers/policy/waited.h"
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

// A pod of the job, as far as the plan looks.
struct PodState {
  std::string name, uid;
  bool is_bound = false;       // Has a node.
  bool is_ending = false;      // Being deleted, or ended; another one replaces it.
  bool has_ended = false;      // Ended, and not being deleted.
  bool has_lost_node = false;  // Its node is not in the cluster any more.
  std::string trouble;         // Why it does not run, in the kubelet's words; empty: nothing is known to be wrong.
  std::string end;             // How its container failed last: "exit code 137 (OOMKilled)"; empty: it did not.
  bool is_leaving() const { return is_ending || has_lost_node; }
  bool is_on_node() const { return is_bound && !is_leaving(); }
};

struct Worker : PodState {
  int ordinal = 0;
  std::string resource_version;
  bool is_ready = false;
  std::string address;  // IPv4, as Horovod needs it; empty: none yet, or none of that kind.
  Gang gang = Gang::kNone;
  std::optional<kube::Time> created, leaves_by;  // By then it should be gone, if it is being deleted.
  std::optional<kube::Time> asked_since, unschedulable_since, bound_since, ready_since;  // Asked: the scheduler got it.
  std::optional<kube::Time> unready_since;  // Bound, and not ready since then.
  std::optional<kube::Time> silent_since;   // Its container has run since then, and its ssh server does not answer.
  bool has_started = false;                 // Its node has reported a running container.
  // Horovod may use it.
  bool is_usable() const { return is_ready && !is_leaving() && !address.empty(); }
};

using WorkerSet = std::set<const Worker*>;  // Into View::pods.

struct LauncherPod : PodState {
  bool is_running = false;
  std::int64_t hosts_revision = 0;  // Last revision of the host list pushed into the pod; 0: none.
  std::optional<kube::Time> created, running_since;
  std::optional<kube::Time> ended;         // When its container ended, if known.
  std::optional<kube::Time> silent_since;  // It has printed nothing for longer than the job's limit.
  bool trains() const { return is_running && !is_ending; }
};

// Why pods cannot be made: Pod Security, a quota or a webhook refuses them.
struct Refusal {
  std::string text;
  kube::Time since{};
};

// Our last decision about the workers.
struct WorkersState {
  int granted = 0;  // How many may run.
  Gang gang = Gang::kNone;
  friend bool operator==(const WorkersState&, const WorkersState&) = default;
};

// How many workers the ResourceQuotas of the namespace admit, including those that exist.
struct QuotaLimit {
  int workers = 0;
  std::string quota, resource, why;               // See QuotaRoom. If the API server refused a pod, `why` alone is set.
  bool is_of_launcher = false;                    // The launcher does not fit.
  std::optional<kube::Duration> look_again = {};  // Set if the limit may widen without a change of a quota.
};

// What keeps the launcher from being placed: room, or any node that could hold it.
enum class LauncherLacks { kNothing, kRoom, kAnyNode };

enum class LauncherState { kAbsent, kActive, kSucceeded, kFailed };

struct View {
  std::shared_ptr<const api::ElasticHorovodJob> job;
  kube::Time now;
  bool may_start = true;  // The planner found places for the minimum; view.room.copies says how many.
  std::string refusal;    // Why the API server would refuse the workers; empty: nothing known.
  std::optional<Refusal> refused_workers, refused_launcher;
  bool may_make_workers = true;   // False: a create was refused a moment ago.
  WorkersState workers;           // Of this run: ReadWorkersState().
  std::optional<HostList> hosts;  // Of the ConfigMap, if there is one.
  LauncherState launcher = LauncherState::kAbsent;
  bool is_launcher_ending = false;  // The Job is being deleted.
  std::string launcher_message;     // Why it failed.
  std::vector<Worker> pods;         // By ordinal.
  std::vector<LauncherPod> launcher_pods;
  bool has_stray_launcher = false;         // A launcher's pod has not ended, and belongs to no Job that we see.
  std::optional<api::JobProfile> profile;  // Of the WorkloadProfile that spec.profile means, if there is one.
  int failed_tries = 0;                    // Starts and growths in a row for which the scheduler found no nodes.
  bool has_unknown_pods = false;           // The API server could not say what the pods will be.
  std::string pod_refusal;                 // Why the API server refuses such pods; empty: it does not.
  std::string pod_changes;  // What a worker asks for, if the API server changes what its template says: "cpu 40".
  std::string why_no_room;  // Why a start waits: WhyNoRoom(), or the problem of its volumes or devices.
  LauncherLacks launcher_lacks = LauncherLacks::kNothing;
  Room room;                           // For workers beyond those granted, without the places of others.
  bool makes_gangs = false;            // Workers that start become members of a PodGroup.
  bool must_protect_places = false;    // Of a start: see ClusterAccount::MustProtect().
  std::optional<QuotaLimit> quota;     // nullopt: quotas admit all wanted workers.
  bool lacks_places = false;           // A member of its gang has lost its place: no gated member starts.
  bool do_others_have_places = false;  // Their room looks free to the scheduler.
  std::string reserved_for;            // Who waits for room that more workers could take; empty: nobody.
  // When a waiting start may get another answer though no event tells: of the planner; of the API server, about its
  // pods.
  std::optional<kube::Duration> queue_looks_again, pods_look_again;

  bool has_workers() const { return workers.granted > 0; }
  int granted() const { return workers.granted; }
  int alive() const;                // Workers that exist and are not leaving.
  int HoldingOn() const;            // Workers that leave and still have what their replacements need.
  int bound() const;                // Of these, those that have a node.
  bool has_bound_launcher() const;  // Likewise.
  const kube::Condition* ready() const { return kube::FindCondition(job->status.conditions, "Ready"); }
};

Worker ReadWorker(const kube::Pod& pod, int ordinal, bool has_node);
LauncherPod ReadLauncherPod(const kube::Pod& pod, bool has_node);
// REQUIRES: view.job and view.pods. What the status says was granted, and at least the workers that exist: after a
// crash between a create and the write of the status there are more, after one between that write and a deletion as
// well.
WorkersState ReadWorkersState(const View& view);
// The ordinal in "bert-workers-12" for "bert-workers"; nullopt if it is another's pod.
std::optional<int> OrdinalOf(std::string_view pod_name, std::string_view workers_name);

}  // namespace grus
