// SPDX-License-Identifier: Apache-2.0
// Everything the plan may know about one TrialJob, as one value.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "clientlib/model/pod.h"
#include "controllers/measure/speed_reader.h"
#include "controllers/policy/workload_fingerprint.h"
#include "controllers/trial/trial_space.h"
#include "crds/types/pod_group.h"
#include "crds/types/trial_job.h"

namespace grus {

inline constexpr char kTrialJobLabel[] = "ai.centauruscloud.io/trial-job";
// On the child of a trial: how long it may hold its GPUs, and what the trial had spent before this try.
inline constexpr char kSliceAnnotation[] = "ai.centauruscloud.io/trial-seconds";
inline constexpr char kSpentAnnotation[] = "ai.centauruscloud.io/trial-spent-gpu-seconds";
// On a pod that is a trial: it was told to end, and is kept for its log.
inline constexpr char kSuspendedAnnotation[] = "ai.centauruscloud.io/trial-parked";
// What a training pushes (measure.source Push), on the trial's job, or on the pod whose log is read.
inline constexpr char kPushedStepAnnotation[] = "ai.centauruscloud.io/step-milliseconds";
inline constexpr char kPushedSamplesAnnotation[] = "ai.centauruscloud.io/samples-per-second";
struct PushedSpeed {
  api::SpeedKind kind = api::SpeedKind::kStepSeconds;
  double value = 0;
};

// The job of a trial, or its first pod.
struct TrialChild {
  std::string uid;
  bool is_ours = false;
  bool is_ending = false;
  bool is_suspended = false;
  std::string phase, message;    // Of its status; the message of its Ready condition.
  std::string refusal;           // Why it cannot be carried out, from its status; empty: it can.
  kube::Duration refused_for{};  // For how long it was seen so.
  std::int64_t slice_seconds = 0;
  std::int64_t spent_before = 0;  // GPU seconds.
  std::string_view kind = "ElasticHorovodJob";
  bool lacks_group = false;                       // It is gated, and its PodGroup does not exist.
  bool lacks_peers = false;                       // It has not started, and some of its pods do not exist.
  bool lingers = false;                           // Its training has ended, but another container or pod runs on.
  std::map<std::string, std::string> peers = {};  // The UIDs of its further pods, by name.
  std::optional<kube::Time> created = {};
  std::optional<PushedSpeed> pushed = {};  // On the job.
};

// The role of a pod in its trial.
struct PodPart {
  bool has_gpus = false;
  std::string launches = {};  // The container that trains, whose log tells the speed; empty: none of them.
};

// The pods of a trial, including those being deleted. Workers are those with GPUs. The launcher is the one whose log is
// read; in a trial that is a pod, it is also the worker.
struct TrialPods {
  int all = 0;                            // Includes objects that are deleted with the pods.
  int holding = 0;                        // Workers that are bound and have not ended: they hold GPUs.
  int unbound = 0;                        // Workers.
  std::set<std::string> nodes;            // That workers, also ended ones, are bound to.
  std::optional<kube::Time> first_bound;  // Of the workers.
  std::optional<kube::Time> last_end;     // Of ended workers, as their pods say;
  bool has_unknown_end = false;           // and one of the pods does not say.
  std::string launcher, launcher_uid;     // The newest; empty: there is none.
  std::string launcher_container;
  std::optional<kube::Time> launcher_started;
  std::optional<PushedSpeed> pushed;  // On the launcher.
  std::string image_problem;          // The kubelet's message on why an image cannot be pulled.
  std::string out_of_memory;          // "pod x-0"; empty: nothing was killed for it.
  std::string exit;                   // How the training ended: "exit code 1 (Error)".
  bool has_lost_node = false;
};

// Of the GPUs of a trial, if something measures them.
struct GpuUse {
  std::optional<std::int64_t> peak_memory_bytes;
  std::optional<std::int32_t> utilization_percent;
};

struct StartRefusal {
  api::TrialJobReason reason = api::TrialJobReason::kNotPermitted;
  std::string message;
};

// One trial as it is in the cluster.
struct TrialRun {
  std::optional<TrialChild> child;
  TrialPods pods;
  std::optional<SpeedObservation> speed;
  bool is_log_awaited = false;                // Part of its log is not in `speed` yet.
  GpuUse gpu_use;                             // Also empty if this pass did not ask for it.
  std::optional<kube::Time> held_since;       // As seen before; its pods may be gone now.
  std::int64_t held_spent_before = 0;         // Of the same try.
  std::optional<kube::Duration> held_for;     // Set once it holds no GPUs: for how long it did, by its pods.
  std::string refusal;                        // Why the API server refuses its job; empty: it does not.
  std::optional<StartRefusal> start_refused;  // The last start: a part of it could not be made.
  bool is_start_held = false;                 // It is not started again yet.
};

// An earlier measurement, which need not be repeated.
struct KnownTrial {
  api::TrialConfig config;  // Its number of nodes is the one it was measured on; 0: not known.
  api::Measurement measured;
  api::ThroughputUnit unit = api::ThroughputUnit::kNotKnown;
  std::int64_t gpu_seconds = 0;
};

struct TrialView {
  std::shared_ptr<const api::TrialJob> job;
  kube::Time now;
  std::optional<Workload> workload;  // None: the job of jobRef does not exist, or there is an error.
  std::string workload_error;
  std::string pattern_error;               // Of measure.patterns.
  std::string source_error;                // The source of measurements does not answer.
  std::map<std::string, TypeNodes> nodes;  // By GPU type.
  std::map<std::string, TrialRun> runs;    // By trial.
  bool others_wait = false;                // For GPUs.
  WorkloadIdentity identity;               // Of the workload.
  std::vector<KnownTrial> known;           // What its WorkloadProfile says, if it may be used.
  // The name of a GPU type of the space in profiles: the product of its nodes, if they have one product that no other
  // type has; else the type's name.
  std::string ProductOf(const std::string& gpu_type) const;
  std::int64_t generation() const { return job->metadata.generation; }
  bool is_done() const { return job->status.completion_time && job->status.observed_generation == generation(); }
};

TrialChild ReadTrialChild(const api::ElasticHorovodJob& job, const api::TrialJob& owner);
// Of a pod that is a trial. `group` is its PodGroup; null: there is none.
TrialChild ReadPodChild(const kube::Pod& pod, const api::PodGroup* group, const api::TrialJob& owner, bool has_node);

// When a worker was bound, and when the last of its containers ended, by the cluster's clocks; none: the pod does not
// say.
std::optional<kube::Time> BoundAt(const kube::Pod& pod);
std::optional<kube::Time> EndedAt(const kube::Pod& pod);

PodPart PartInJob(const kube::Pod& pod);    // Of a trial that is a job.
PodPart PartAsTrial(const kube::Pod& pod);  // Of a trial that is this pod.
// Adds a pod of the trial. `has_node`: its node is in the cluster.
void ReadTrialPod(const kube::Pod& pod, const PodPart& part, bool has_node, TrialPods& pods);

}  // namespace grus
