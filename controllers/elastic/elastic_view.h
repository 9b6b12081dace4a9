// SPDX-License-Identifier: Apache-2.0
// All that the plan may know of one job, as one value.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/model/apps_v1.h"
#include "clientlib/model/batch_v1.h"
#include "clientlib/model/core_v1.h"
#include "controllers/cluster/owners.h"
#include "controllers/elastic/host_list.h"
#include "controllers/policy/cluster_ledger.h"
#include "controllers/policy/waited.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {

// A pod of the job, as far as the plan looks.
struct PodState {
  std::string name, uid;
  bool is_bound = false;       // Has a node.
  bool is_ending = false;      // Being deleted, or ended; its controller replaces it.
  bool has_lost_node = false;  // Its node is not in the cluster any more.
  std::string trouble;         // Why it does not run, in the kubelet's words; empty: nothing is known to be wrong.
  std::string end;             // How its container failed last: "exit code 137 (OOMKilled)"; empty: it did not.
  bool is_leaving() const { return is_ending || has_lost_node; }
  bool is_on_node() const { return is_bound && !is_leaving(); }
};

struct Worker : PodState {
  int ordinal = 0;
  std::string resource_version;
  bool is_gated = false;  // Parked: created, and kept from the scheduler by our gate.
  bool is_ready = false;
  std::string address;  // IPv4, as Horovod needs it; empty: none yet, or none of that kind.
  std::optional<kube::Time> asked_since, unschedulable_since, bound_since, ready_since;  // Asked: the scheduler got it.
  std::optional<kube::Time> unready_since;  // Bound, and not ready since then.
  std::optional<kube::Time> silent_since;   // Its container has run since then, and its ssh server does not answer.
  bool has_started = false;                 // Its node has reported a running container.
  // Horovod may use it.
  bool is_usable() const { return is_ready && !is_leaving() && !address.empty(); }
};

struct LauncherPod : PodState {
  bool is_running = false;
  std::int64_t hosts_revision = 0;  // Last revision of the host list pushed into the pod; 0: none.
  std::optional<kube::Time> created, running_since;
  std::optional<kube::Time> ended;         // When its container ended, if known.
  std::optional<kube::Time> silent_since;  // It has printed nothing for longer than the job's limit.
  bool trains() const { return is_running && !is_ending; }
};

// Why the controller of a child cannot make pods: Pod Security, a quota or a webhook refuses them.
struct Refusal {
  std::string text;
  kube::Time since{};
};

// Whether the workers are members of the job's PodGroup.
enum class Gang {
  kNone,     // Gangs are switched off, or were when these workers were started.
  kUngated,  // No competitor existed when they were started, or the pods are made for an autoscaler to see.
  kGated,    // Born with the gang's gate, which the PodGroup's controller lifts.
};

// What the StatefulSet says of our last decision about its size.
struct WorkersState {
  int replicas = 0;          // Ordinals that exist.
  int granted = 0;           // Of these, how many may run.
  bool is_gated = false;     // New pods are born with the gate.
  bool is_observed = false;  // Its controller has seen this spec.
  Gang gang = Gang::kNone;
  int promised = 0;  // Like `granted`, but not capped at `replicas`, which somebody may have scaled down by hand.
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
  std::optional<WorkersState> workers;  // Of the StatefulSet, if there is one.
  std::optional<HostList> hosts;        // Of the ConfigMap, if there is one.
  LauncherState launcher = LauncherState::kAbsent;
  bool is_launcher_ending = false;  // The Job is being deleted.
  std::string launcher_message;     // Why it failed.
  std::vector<Worker> pods;         // By ordinal.
  bool are_pods_current = true;     // False: `pods` may be from before the workers were last stopped.
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

  bool has_workers() const { return workers && workers->replicas > 0; }
  int granted() const { return workers ? workers->granted : 0; }
  int bound() const;                // Workers that have a node and are to stay.
  bool has_bound_launcher() const;  // Likewise.
  const kube::Condition* ready() const { return kube::FindCondition(job->status.conditions, "Ready"); }
};

inline constexpr char kGrantedAnnotation[] = "ai.centauruscloud.io/granted";
// On the StatefulSet: a hash of the pod template as we wanted it. It shows that the spec has lost a field.
inline constexpr char kTemplateAnnotation[] = "ai.centauruscloud.io/template";
// On a worker: when its gate was lifted. PodScheduled does not tell: it keeps the time of the gated pod.
inline constexpr char kLiftedAnnotation[] = "ai.centauruscloud.io/lifted";

Worker ReadWorker(const kube::Pod& pod, int ordinal, bool has_node);
LauncherPod ReadLauncherPod(const kube::Pod& pod, bool has_node);
WorkersState ReadWorkersState(const kube::StatefulSet& set);
// The ordinal in "bert-workers-12" for "bert-workers"; nullopt if it is another's pod.
std::optional<int> OrdinalOf(std::string_view pod_name, std::string_view set_name);

}  // namespace grus
