// SPDX-License-Identifier: Apache-2.0
// What the cache says about one job, gathered into one value: all that the plan may know.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/model/apps_v1.h"
#include "clientlib/model/batch_v1.h"
#include "clientlib/model/core_v1.h"
#include "controllers/cluster/owners.h"
#include "controllers/policy/cluster_ledger.h"
#include "controllers/policy/waited.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {

// A worker pod, as far as the plan looks.
struct Worker {
  int ordinal = 0;
  std::string name, uid, resource_version;
  bool is_gated = false;     // Parked: created, and held back by our scheduling gate.
  bool is_bound = false;     // Has a node.
  bool is_ready = false;
  bool is_ending = false;    // Deleted or failed; the StatefulSet replaces it.
  bool has_lost_node = false;  // Its node is not in the cluster any more.
  std::optional<kube::Time> unschedulable_since, bound_since, ready_since;
};

// The launcher's pods, newest first.
struct LauncherPod {
  std::string name, uid;
  bool is_running = false, is_ending = false;
  bool has_lost_node = false;
  std::int64_t hosts_revision = 0;  // Last revision of the host list pushed into the pod; 0: none.
  std::string failure;              // "exit code 137 (OOMKilled)"; empty if it has not failed.
};

// A pod that runs as a launcher of the job, but belongs to no launcher that is there.
struct StrayLauncher {
  std::string name, uid, owner_uid;
  bool is_ending = false;
};

// Whether the workers are members of the job's PodGroup.
enum class Gang {
  kNone,     // Gangs are switched off, or were when these workers were started.
  kUngated,  // Places were found before the pods were made, and nobody was about who could take one.
  kGated,    // Born with the gang's gate, which the PodGroup's controller lifts.
};

// What the StatefulSet says of our last decision about its size.
struct WorkersState {
  int replicas = 0;         // Ordinals that exist.
  int granted = 0;          // Of these, how many may run.
  bool is_gated = false;    // New pods are born with the gate.
  bool is_observed = false; // Its controller has seen this spec.
  Gang gang = Gang::kNone;
  int promised = 0;         // What was granted, which is more if somebody scaled the StatefulSet down by hand.
  friend bool operator==(const WorkersState&, const WorkersState&) = default;
};

// The host list as it was last published.
struct HostList {
  std::vector<std::string> hosts;  // Pod names, in rank order as far as we know it.
  int slots = 1;
  std::int64_t revision = 0;
  kube::Time published{};
  bool Has(const std::string& pod) const;
  friend bool operator==(const HostList&, const HostList&) = default;
};

enum class LauncherState { kAbsent, kActive, kSucceeded, kFailed };

struct View {
  std::shared_ptr<const api::ElasticHorovodJob> job;
  kube::Time now;

  bool has_service = false;
  bool has_group = false;
  bool may_start = true;                // The planner found places for the minimum; view.room.copies says how many.
  std::string refusal;                  // Why the API server would refuse the workers; empty: nothing known.
  std::optional<WorkersState> workers;  // Of the StatefulSet, if there is one.
  std::optional<HostList> hosts;        // Of the ConfigMap, if there is one.
  LauncherState launcher = LauncherState::kAbsent;
  bool is_launcher_ending = false;      // The Job is being deleted.
  std::string launcher_message;         // Why it failed.
  std::vector<Worker> pods;             // By ordinal.
  bool are_pods_current = true;         // False: they may be those from before the workers were last stopped.
  std::vector<LauncherPod> launcher_pods;
  std::vector<StrayLauncher> stray_launchers;
  std::optional<api::JobProfile> profile;  // Of the WorkloadProfile that spec.profile means, if there is one.
  Room room;                            // For workers beyond those granted, claims of others set aside.
};

// Names of the children; deterministic, so that a stale create fails as AlreadyExists.
std::string ServiceName(const api::ElasticHorovodJob& job);
std::string WorkersName(const api::ElasticHorovodJob& job);
std::string GroupName(const api::ElasticHorovodJob& job);  // The job's own: its key in the ledger is the gang's.
std::string LauncherName(const api::ElasticHorovodJob& job);
std::string HostsName(const api::ElasticHorovodJob& job);
std::string SecretName(const api::ElasticHorovodJob& job);  // Carries the UID: a job made again gets a new key.

inline constexpr char kManagedByLabel[] = "app.kubernetes.io/managed-by";
inline constexpr char kManagedBy[] = "grus";
inline constexpr char kGrantedAnnotation[] = "ai.centauruscloud.io/granted";
// On the StatefulSet: a hash of the pod template as we wanted it, by which it is seen that something was taken out.
inline constexpr char kTemplateAnnotation[] = "ai.centauruscloud.io/template";
inline constexpr char kPublishedAnnotation[] = "ai.centauruscloud.io/published";
inline constexpr char kHostsAnnotation[] = "ai.centauruscloud.io/hosts";
// On a worker whose gate was lifted: when. The scheduler keeps the condition's time of the gated pod.
inline constexpr char kLiftedAnnotation[] = "ai.centauruscloud.io/lifted";
inline constexpr char kParkGate[] = "ai.centauruscloud.io/parked";

// The value for `published` and the text of the host list: "revision N" and one "pod.service:slots" a line.
std::string HostListText(const HostList& list, const std::string& service);
std::optional<HostList> ReadHostList(const kube::ConfigMap& config_map);

Worker ReadWorker(const kube::Pod& pod, int ordinal, bool has_node);
LauncherPod ReadLauncherPod(const kube::Pod& pod, bool has_node);
WorkersState ReadWorkersState(const kube::StatefulSet& set);
// The ordinal in "bert-workers-12" for "bert-workers"; nullopt if it is another's pod.
std::optional<int> OrdinalOf(std::string_view pod_name, std::string_view set_name);

}  // namespace grus
