// SPDX-License-Identifier: Apache-2.0
// What the cache says about one PodGroup and its members, gathered into one value: all that the plan may know.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/model/pod.h"
#include "controllers/cluster/cluster_account.h"
#include "controllers/cluster/owners.h"
#include "crds/types/pod_group.h"

namespace grus {

// A pod of a planning owner that was gated for less than this counts as lifted when it was created: the annotation
// would cost the API server a quarter of the lift (adr/0008).
inline constexpr kube::Duration kShortGate = std::chrono::seconds(2);
// On a pod that its Job counts no more and that is to be deleted: a manager that dies in between leaves that to the
// next.
inline constexpr char kGangGivenUpAnnotation[] = "scheduling.ai.centauruscloud.io/given-up";
// The scheduler that led when the pod was nominated: the holder of the schedulers' lease.
inline constexpr char kGangNominatedToAnnotation[] = "scheduling.ai.centauruscloud.io/nominated-to";
// A finalizer: a Job counts how a pod that has it ends.
inline constexpr char kJobTracking[] = "batch.kubernetes.io/job-tracking";

enum class MemberState {
  kGated,   // Waits for us, or (foreign_gate) for others too.
  kLifted,  // The scheduler's turn.
  kBound,
  kSucceeded,
  kFailed,
  kEnding,  // Being deleted.
  kPast,    // Of a run before the present one (MarkEarlierRuns): counts for nothing.
};

struct Member {
  std::string name, uid, resource_version;
  int ordinal = 0;  // The number at the end of its name; 0: none.
  MemberState state = MemberState::kGated;
  bool is_running = false;
  std::string foreign_gate;     // Another controller's: the pod cannot start whatever we do. Empty: none.
  std::string volume_problem;   // Why the scheduler would find it no node; see VolumeLimits.
  bool has_controller = false;  // Its controller makes it again when it is deleted.
  bool is_of_stateful_set = false;
  std::string owner, owner_uid;    // "team-a/bert": the object that controls it; else empty.
  bool is_tracked_by_job = false;  // Its Job counts how it ends, and takes a deletion for a failure.
  bool is_given_up = false;        // It counts as being deleted, and is yet to be.
  std::string node, nominated;
  std::string nominated_to;       // The scheduler that the nomination is for; empty: not known.
  std::string pinned;             // The node that we pinned it to; empty: we did not.
  std::string planned_gpu;        // Of that node, by our plan; empty: none is known.
  std::string told_deadline;      // Of its preemption, in its annotation; empty: none.
  bool has_own_hostname = false;  // A pin that is not ours.
  int priority = 0;
  ShapePtr shape;  // Of members that are not bound.
  std::optional<kube::Time> created_at, lifted_at;
  std::optional<kube::Time> bound_at, ended_at;  // Ended: it succeeded or failed.
  std::string unschedulable_message;             // The scheduler's.
  std::string silent_scheduler;                  // See SilentSchedulerOf().

  const std::string& planned_node() const { return pinned.empty() ? nominated : pinned; }  // Empty: none is known.
  bool IsUnbound() const { return state == MemberState::kGated || state == MemberState::kLifted; }
  bool IsAlive() const { return IsUnbound() || state == MemberState::kBound; }
  // We lifted its gate. On a pod that is still gated, the annotation comes from whoever made the pod.
  bool IsLetGo() const { return lifted_at && IsAlive() && state != MemberState::kGated; }
  // A scheduler sees only the sum over a node's GPUs: without a place, its kubelet would likely refuse it.
  bool WaitsForItsGpu() const;
  // Its gate must not be lifted, since it could not start.
  bool MustStayGated() const {
    return state == MemberState::kGated && (!foreign_gate.empty() || !volume_problem.empty());
  }
};

struct GangView {
  std::shared_ptr<const api::PodGroup> group;
  std::string key;  // In the ledger.
  kube::Time now;
  std::vector<Member> members;  // By ordinal, then name.
  // An ElasticHorovodJob found the places before it made the pods, and handles pods that find no node.
  bool is_planned_by_owner = false;
  bool is_torn = false;   // Pods were being bound while it was read: members and places may not agree.
  std::string scheduler;  // Which one leads; empty: not known.

  // From the ledger.
  std::optional<GangDemand> demand;  // What it was asked for, as NeedsOf() says.
  GangStanding standing;             // Its answer, if there is a demand.
  std::vector<Place> places;         // Of this gang, including those of the answer.
  bool must_nominate = false;        // The node matters: nominate each member before its gate is lifted.
  bool must_pin = false;  // The same, where nominations do not help: pin members when their gates are lifted.
  Safety safety = Safety::kSafe;
  std::optional<YieldNotice> yield;           // It must give its GPUs up. Never if it is planned by its owner.
  std::optional<RuntimeLimit> runtime_limit;  // Of its queue. Likewise.
  std::set<std::string> avoid;                // Nodes that the scheduler refused in earlier starts.
};

// The members by state.
struct Tally {
  int gated = 0, lifted = 0, bound = 0, running = 0, succeeded = 0, failed = 0, ending = 0;
  int unbound() const { return gated + lifted; }
  int alive() const { return unbound() + bound; }
  int scheduled() const { return bound + succeeded; }  // These count towards the minimum.
};
Tally Count(const GangView& view);
bool HasBegun(const GangView& view);  // Some member IsLetGo().
int CountGatedByOthers(const GangView& view);
int CountStuck(const GangView& view);  // Members that MustStayGated().
// A scheduler that started after the pod was nominated does not keep the node for it while it is gated.
bool IsForgotten(const GangView& view, const Member& member);
// What the scheduler says about a member for which it finds no node; empty: nothing.
std::string SchedulersWord(const GangView& view);
// "3 more members must be created", and what keeps them from being created.
std::string WhatIsMissing(const GangView& view, int missing);

// `shape` is that of the pod, null if it is bound or has ended. `has_planning_owner`: of GangView::is_planned_by_owner.
Member ReadMember(const kube::Pod& pod, ShapePtr shape, bool has_planning_owner);
// Pods of a CronJob's last Job may still exist when the next Job runs. Pods that have ended belong to the present run
// if they have its owner, or ended after one of its pods was bound; else they become kPast. If all have ended, the last
// to end tells which run is the present one. An end that lies ahead of `now` is from before the clock was set back.
void MarkEarlierRuns(std::vector<Member>& members, const kube::Time& now);

}  // namespace grus
