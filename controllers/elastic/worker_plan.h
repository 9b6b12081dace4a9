// SPDX-License-Identifier: Apache-2.0
// How many workers may run, and which of those that exist: pure.
//
// Each worker is a pod of the job. A job that must shrink deletes workers that have no node, then those on nodes where
// it has few, the highest ordinals first; a running worker never makes room for a waiting one. A worker that is lost is
// owed: another one is made under a free ordinal, without waiting for the first to be gone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controllers/elastic/elastic_sizes.h"
#include "controllers/elastic/elastic_view.h"

namespace grus {

// Why the size changes: status.lastScale.reason.
enum class ScaleReason {
  kNone,
  kStarted,  // First workers, as many as there is room for.
  kSpecChanged,
  kUnschedulable,  // Shrunk to what fits.
  kRoomAppeared,
  kBelowMinimum,  // Gave everything back.
  kPodsBroken,    // Gave back what broken pods held.
  kReclaimed,     // Shrunk so that another job gets the GPUs.
  kPreempted,     // Gave everything back for that.
};
std::string_view ToString(ScaleReason reason);
inline constexpr char kBelowMinimumReason[] = "BelowMinimum";  // Also of the Ready condition.

struct WorkerPlan {
  int granted = 0;                          // How many workers may run.
  ScaleReason reason = ScaleReason::kNone;  // Set when `granted` changes.
  WorkerSet drop;                           // Workers to delete, so that no more than `granted` are left.
  bool is_waiting = false;                  // There is no room for the minimum.
  int early = 0;                            // Workers to have before any is granted: see WaitsForOthers().
  bool must_drain = false;                  // Take what is dropped off the host list first.
  std::optional<kube::Duration> look_again;
};

// The workers are made whether there is room for them or not, for a cluster autoscaler to see.
bool IsUngated(const api::ElasticHorovodJob& job);
// Other controllers keep workers from starting by gates of theirs, and those without are too few for a start. Such
// workers are made before the job asks for room, so that others can decide about them, and hold nothing: they have the
// gang's gate, too, which is lifted once there is room for them.
bool WaitsForOthers(const View& view, const Sizes& sizes);
// How long a job must wait after a failed start: the room may exist only on paper, and an image that cannot be pulled
// needs a person. Zero: it may start.
kube::Duration StartDelay(const View& view);
// How long a worker may stay unschedulable before the job gives it up.
kube::Duration UnschedulableGrace(const View& view);
kube::Duration CooldownLeft(const View& view);  // Zero or less: it may change its size.
// When the next start is due, if `last` gave all workers back below the minimum; nullopt: no start waits for that.
std::optional<kube::Time> NextStart(const View& view, const std::optional<api::LastScale>& last);
// Whether `after` is a new change of size, for want of nodes.
bool IsFailedTry(const std::optional<api::LastScale>& before, const std::optional<api::LastScale>& after);
// The last try went well: the launcher and all granted workers have nodes, and none was given back for want of nodes.
bool DidLastTrySucceed(const View& view);
// What the job will have used by then, and once more resized if it goes from some workers to `to`, also some.
std::optional<api::JobUsage> UsageUntil(const View& view, const kube::Time& time, int to);
// `sizes` with no more workers wanted than quotas admit, but at least those already granted.
Sizes Admitted(const View& view, Sizes sizes);
// Whether the job must yield as a whole, at the deadline of its notice.
bool MustYieldAll(const View& view, const Sizes& sizes);
WorkerSet AllOf(const View& view);  // That are not leaving.
// The nodes on which the workers that are missing have places. The scheduler knows nothing of places: the pods tell it.
// None for gated workers, which are nominated where that is needed, nor for those without devices, which may run
// anywhere.
std::vector<std::string> NodesForMissing(const View& view, const WorkersState& workers,
                                         const std::vector<Place>& places);
WorkerPlan PlanWorkers(const View& view, const Sizes& sizes);

}  // namespace grus
