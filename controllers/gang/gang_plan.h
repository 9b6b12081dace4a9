// SPDX-License-Identifier: Apache-2.0
// What should be done about a gang: pure functions of the view. No I/O, no clock.
//
// The scheduler binds pods one by one, so a start has two phases. First the planner finds places for the minimum and
// keeps them in the ledger; if a foreign pod could take one, each member is nominated for its node while it is still
// gated, which keeps others out. Then the gates are lifted, lowest ordinals first. Where nominations do not help,
// members are pinned to their nodes as their gates are lifted: others may still come in between, but no two gangs take
// each other's places. A gang that is still below its minimum when its time is over is rolled back: the lifted members
// are deleted, come back gated, and wait for another try. So is a gang that yields its GPUs to others, when the
// deadline of its notice is over. One that has run for as long as its queue allows is rolled back, too, and stays
// gated.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controllers/frame/planned_event.h"
#include "controllers/gang/gang_needs.h"

namespace grus {

// Reasons of the Ready condition: a closed list.
enum class GangReason {
  kWaitingForMembers,  // Fewer pods than minMember exist.
  kWaitingForRoom,     // The minimum does not fit now.
  kWaitingForQueue,    // Its queue would not start it even if GPUs were idle.
  kCannotFit,          // The minimum does not fit even into an empty cluster.
  kBackingOff,         // A start did not come together; the next one comes later.
  kPreparing,          // Its places are being protected.
  kStarting,           // Gates are lifted; the scheduler binds.
  kRunning,
  kBelowMinimum,  // It ran, and members were lost.
  kSucceeded,
  kFailed,
  kInvalidMinimum,    // minMember below 1.
  kGatedByOthers,     // Members have gates of other controllers.
  kNotPermitted,      // grus itself lacks a permission.
  kPodsRefused,       // The API server refuses to change members.
  kPreempting,        // It runs on until it must yield.
  kPreempted,         // It has yielded.
  kDeadlineExceeded,  // Its queue lets it run no longer.
};
std::string_view ToString(GangReason reason);

inline constexpr char kGangPending[] = "Pending";
inline constexpr char kGangPreScheduling[] = "PreScheduling";  // scheduling.sigs.k8s.io: Pending, with enough members.
inline constexpr char kGangScheduling[] = "Scheduling";
inline constexpr char kGangRunning[] = "Running";
inline constexpr char kGangFinished[] = "Finished";
inline constexpr char kGangFailed[] = "Failed";

struct Nomination {
  const Member* member;  // Points into the view.
  std::string node;      // Empty: clear it.
};

struct LiftedGate {
  const Member* member;   // Likewise.
  std::string pinned_to;  // The only node that it may go to; empty: any.
  std::string gpu;        // Which its part is to be of; empty: any.
};

// Members are told by an annotation when they will end.
struct DeadlineNote {
  const Member* member;  // Likewise.
  std::string deadline;  // Empty: they will not end; remove it.
};

struct GangPlan {
  bool is_ignored = false;           // The group is being deleted.
  std::vector<Nomination> nominate;  // If not empty, nothing is lifted yet.
  std::vector<LiftedGate> lift;      // In this order.
  std::vector<const Member*> end;    // Delete: a roll-back, or an extra that found no place.
  std::vector<DeadlineNote> notes;
  std::set<std::string> refused;   // Nodes of places that the deleted members did not take: avoid them next time.
  std::vector<Place> keep_places;  // What the gang holds in the ledger from now on.
  bool must_replan = false;        // The places are not safe any more: ask for others.
  bool is_verifying = false;       // All places are protected, but the scheduler may still bind an earlier pod there.
  api::PodGroupStatus status;
  std::vector<PlannedEvent> events;
  std::optional<kube::Duration> look_again;
};

GangPlan PlanGang(const GangView& view);

}  // namespace grus
