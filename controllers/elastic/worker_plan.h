// SPDX-License-Identifier: Apache-2.0
// How many workers may run, and which ordinals: pure.
//
// A StatefulSet of N replicas always has the ordinals 0..N-1, and scaling down removes the highest, whichever pods
// run. The scheduler however leaves any ordinal unschedulable, and after a lost node the missing ones are
// anywhere. So a job that must shrink scales its StatefulSet down only as far as no bound worker is above, and
// *parks* the unschedulable ordinals that remain in between: the pod template gets a scheduling gate (update
// strategy OnDelete, so no running pod is touched) and the unschedulable pods are deleted; their replacements are
// born gated, hold no GPU and wait in no queue. Growing lifts the gates of parked pods first. No running worker
// is ever killed to make room for a waiting one (docs/adr/0003-shrink-without-killing.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controllers/elastic/elastic_sizes.h"
#include "controllers/elastic/elastic_view.h"

namespace grus {

// Why the size changes; stands in status.lastScale.reason.
enum class ScaleReason {
  kNone,
  kStarted,    // First workers, as many as there is room for.
  kRequested,  // The rest of what is wanted, asked of the scheduler once.
  kSpecChanged,
  kUnschedulable,  // Shrunk to what fits.
  kRoomAppeared,
  kBelowMinimum,  // Gave everything back.
  kPodsBroken,    // Gave back what pods that cannot start held.
};
std::string_view ToString(ScaleReason reason);
inline constexpr char kBelowMinimumReason[] = "BelowMinimum";  // Also of the Ready condition.

struct WorkerPlan {
  WorkersState size;                        // What the StatefulSet should say. replicas 0: no worker may run.
  ScaleReason reason = ScaleReason::kNone;  // Set when `granted` changes.
  std::vector<const Worker*> park;          // Unschedulable pods to delete so that they come back gated.
  std::vector<const Worker*> lift;          // Gated pods that may run now.
  bool is_waiting = false;                  // There is no room for the minimum.
  bool must_drain = false;                  // Ordinals from size.replicas on are wanted away: unpublish them first.
  std::optional<kube::Duration> look_again;
};

// A start that failed is not tried again at once: the room may be there only on paper, and an image that cannot be
// pulled needs somebody. Zero: it may be.
kube::Duration StartDelay(const View& view);
// How long its workers may look for a node.
kube::Duration UnschedulableGrace(const View& view);
// When that is, if `last` was for want of nodes; nullopt: nothing is put off for that.
std::optional<kube::Time> NextStart(const View& view, const std::optional<api::LastScale>& last);
// Whether `after` is a change of size for want of nodes, which `before` was not yet.
bool IsFailedTry(const std::optional<api::LastScale>& before, const std::optional<api::LastScale>& after);
// All that was granted has a node, and nothing was taken back for want of nodes since: what was tried last went well.
bool HasWhatItTried(const View& view);
// `sizes`, where no more are wanted than quotas admit; what is granted already stays.
Sizes Admitted(const View& view, Sizes sizes);
WorkerPlan PlanWorkers(const View& view, const Sizes& sizes);

}  // namespace grus
