// SPDX-License-Identifier: Apache-2.0
// How many workers may run, and which ordinals: pure.
//
// A StatefulSet of N replicas always has the ordinals 0..N-1, and scaling down removes the highest, whichever pods
// run. But any ordinal may be unschedulable, and any may be missing after a node is lost. So a job that must shrink
// scales its StatefulSet down only to the highest worker that stays, and *parks* the unschedulable ordinals below it:
// the pod template gets a scheduling gate (update strategy OnDelete, so no running pod is touched) and the
// unschedulable pods are deleted; their replacements are created gated, hold no GPU and wait in no queue. Growing lifts
// the gates of parked pods first. No running worker is ever killed to make room for a waiting one
// (docs/adr/0003-shrink-without-killing.md).
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
  kStarted,    // First workers, as many as there is room for.
  kRequested,  // Asked the scheduler once for the rest of the wanted workers.
  kSpecChanged,
  kUnschedulable,  // Shrunk to what fits.
  kRoomAppeared,
  kBelowMinimum,  // Gave everything back.
  kPodsBroken,    // Gave back what broken pods held.
};
std::string_view ToString(ScaleReason reason);
inline constexpr char kBelowMinimumReason[] = "BelowMinimum";  // Also of the Ready condition.

struct WorkerPlan {
  WorkersState size;                        // What the StatefulSet should say. replicas 0: no worker may run.
  ScaleReason reason = ScaleReason::kNone;  // Set when `granted` changes.
  std::vector<const Worker*> park;          // Unschedulable pods to delete so that they come back gated.
  std::vector<const Worker*> lift;          // Gated pods that may run now.
  bool is_waiting = false;                  // There is no room for the minimum.
  bool must_drain = false;                  // Take ordinals from size.replicas on off the host list first.
  std::optional<kube::Duration> look_again;
};

// How long a job must wait after a failed start: the room may exist only on paper, and an image that cannot be pulled
// needs a person. Zero: it may start.
kube::Duration StartDelay(const View& view);
// How long a worker may stay unschedulable before the job gives it up.
kube::Duration UnschedulableGrace(const View& view);
// When the next start is due, if `last` gave all workers back below the minimum; nullopt: no start waits for that.
std::optional<kube::Time> NextStart(const View& view, const std::optional<api::LastScale>& last);
// Whether `after` is a new change of size, for want of nodes.
bool IsFailedTry(const std::optional<api::LastScale>& before, const std::optional<api::LastScale>& after);
// The last try went well: the launcher and all granted workers have nodes, and none was given back for want of nodes.
bool DidLastTrySucceed(const View& view);
// `sizes` with no more workers wanted than quotas admit, but at least those already granted.
Sizes Admitted(const View& view, Sizes sizes);
WorkerPlan PlanWorkers(const View& view, const Sizes& sizes);

}  // namespace grus
