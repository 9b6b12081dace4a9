// SPDX-License-Identifier: Apache-2.0
// All that the plan may know of one job.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/model/batch_v1.h"
#include "clientlib/model/core_v1.h"
#include "controllers/cluster/owners.h"
#include "controllers/elastic/host_list.h"
#include "controllers/elastic/pod_state.h"
#include "controllers/policy/cluster_ledger.h"
#include "controllers/policy/waited.h"
#include "controllers/queues/queue_setup.h"
#include "crds/types/elastic_horovod_job.h"
#include "crds/types/workload_profile.h"

namespace grus {

// Why pods cannot be made: Pod Security, a quota or a webhook refuses them.
struct Refusal {
  std::string text;
  kube::Time since{};
};

// Our last decision about the workers.
struct WorkersState {
  int granted = 0;  // How many may run.
  Gang gang = Gang::kNone;
  bool is_start_untold = false;  // Gates were lifted before the status said how many are granted.
  friend bool operator==(const WorkersState&, const WorkersState&) = default;
};

// How many workers the ResourceQuotas of the namespace admit, including those that exist.
struct QuotaLimit {
  int workers = 0;
  std::string quota, resource, why;               // See QuotaRoom. If the API server refused a pod, `why` alone is set.
  bool is_of_launcher = false;                    // The launcher does not fit.
  std::optional<kube::Duration> look_again = {};  // Set if the limit may widen without a change of a quota.
  bool is_unstated = false;                       // A pod does not state what the quota counts: waiting cannot help.
};

// What keeps the launcher from being placed: room, or any node that could hold it.
enum class LauncherLacks { kNothing, kRoom, kAnyNode };
enum class LauncherState { kAbsent, kActive, kSucceeded, kFailed };

struct View {
  std::shared_ptr<const api::ElasticHorovodJob> job;
  kube::Time now;
  bool can_never_fit = false;        // Certainly not even if the cluster were empty.
  bool is_refused_by_queue = false;  // Its queue would not start it even if GPUs were idle.
  bool may_start = true;             // The planner found places for the minimum; view.room.copies says how many.
  std::string refusal;               // Why the API server would refuse the workers; empty: nothing known.
  std::optional<Refusal> refused_workers, refused_launcher;
  bool may_make_workers = true;   // False: a create was refused a moment ago.
  WorkersState workers;           // Of this run: ReadWorkersState().
  std::optional<HostList> hosts;  // Of the ConfigMap, if there is one.
  LauncherState launcher = LauncherState::kAbsent;
  bool is_launcher_ending = false;     // The Job is being deleted.
  bool is_launcher_left_over = false;  // The Job was made before the job last gave everything back.
  std::string launcher_message;        // Why it failed.
  std::vector<Worker> pods;            // By ordinal.
  std::vector<LauncherPod> launcher_pods;
  bool had_launcher = false;        // This process has seen a launcher of the job.
  bool has_stray_launcher = false;  // A launcher's pod has not ended, and belongs to no Job that we see.
  std::shared_ptr<const api::WorkloadProfile> measured;  // What spec.profile means; null: there is none.
  std::optional<api::JobProfile> profile;                // Of it.
  int failed_tries = 0;             // Starts and growths in a row for which the scheduler found no nodes.
  bool has_unknown_pods = false;    // The API server could not say what the pods will be.
  std::string pod_refusal;          // Why the API server refuses such pods; empty: it does not.
  bool fills_pod_security = false;  // The API server takes the pods only with FillPodSecurity(), or took one so.
  std::string pod_changes;   // What a worker asks for, if the API server changes what its template says: "cpu 40".
  std::string foreign_gate;  // With which the API server will make the workers: another controller's. Empty: none.
  std::string why_no_room;   // Why a start waits: WhyNoRoom(), or the problem of its volumes or devices.
  LauncherLacks launcher_lacks = LauncherLacks::kNothing;
  Room room;                                  // For workers beyond those granted, without the places of others.
  bool makes_gangs = false;                   // Workers that start become members of a PodGroup.
  bool must_protect_places = false;           // Of a start: see ClusterAccount::MustProtect().
  std::optional<QuotaLimit> quota;            // nullopt: quotas admit all wanted workers.
  bool lacks_places = false;                  // A member of its gang has lost its place: no gated member starts.
  std::optional<YieldNotice> yield;           // The job must give GPUs up.
  std::optional<RuntimeLimit> runtime_limit;  // Of its queue.
  std::string reserved_for;                   // Who waits for room that more workers could take; empty: nobody.
  // When the planner, or the API server about its pods, may answer a start otherwise though no event tells.
  std::optional<kube::Duration> queue_looks_again, pods_look_again;

  int granted() const { return workers.granted; }
  bool has_workers() const { return granted() > 0; }
  int alive() const;      // Workers that exist and are not leaving.
  int HoldingOn() const;  // Workers that leave and still have what their replacements need.
  int bound() const;      // Of these, those that have a node.
  int owed() const;       // Granted before this pass, not bound, and not kept from starting by others.
  // Workers that exist, are not leaving, and have another controller's gate: they hold no places.
  int gated_by_others(const WorkerSet& without = {}) const;
  bool has_bound_launcher() const;  // Likewise.
  bool has_left_overs() const;      // That are not being deleted yet.
  const kube::Condition* ready() const { return kube::FindCondition(job->status.conditions, "Ready"); }
};

// How long the scheduler has said nothing of a pod of the job.
struct SchedulerSilence {
  const PodState* pod;
  kube::Duration lasted;
};
std::optional<SchedulerSilence> LongestSilence(const View& view);  // nullopt: all pods have its answer.

// REQUIRES: view.job and view.pods. What the status says was granted, and at least the workers that we let go: after a
// crash beside the write of the status there are more. Early workers (see WorkerPlan) are not granted.
WorkersState ReadWorkersState(const View& view);
}  // namespace grus
