// SPDX-License-Identifier: Apache-2.0
// Writes what a plan wants of the members of a gang: nominations, lifted gates, deadlines, deletes. Each write has the
// pod's UID as precondition; patches are noted with the tracker. Thread-safe.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "clientlib/base/log.h"
#include "clientlib/cache/write_tracker.h"
#include "clientlib/client/client.h"
#include "clientlib/model/json.h"
#include "controllers/cluster/cluster_account.h"
#include "controllers/gang/gang_plan.h"

namespace grus {

// The patches: strategic merge patches with the pod's UID as precondition. They cost the API server half of a merge or
// JSON patch. Pure functions.

// For the pod's status. It names the scheduler it is meant for, so that it changes the pod even if an earlier scheduler
// was told the same: a scheduler takes up the nomination of a gated pod with the first change that it sees of the pod,
// and ignores nominations that it found when it started.
kube::Json NominationPatch(const GangView& view, const Nomination& nomination);

// Ties a pod to a node: its node selector may be extended while it is gated.
struct Pin {
  std::string node, hostname;
};
// Removes our gate, if the pod has it, and notes when, unless it was gated too briefly to matter (kShortGate). `now`:
// the time of the write, which may come long after that of the view: the scheduler's time counts from it.
// `gpu`: of which it is to have a part; empty: any.
kube::Json LiftPatch(const GangView& view, const Member& member, kube::Time now,
                     const std::optional<Pin>& pin = std::nullopt, const std::string& gpu = {});

// Sets or removes the annotation kPreemptionDeadlineAnnotation.
kube::Json DeadlinePatch(const DeadlineNote& note);

// For the status of a bound member of a Job, before its deletion: the Job's podFailurePolicy takes it as disrupted.
kube::Json DisruptionPatch(const GangView& view, const Member& member);
// Removes the Job's finalizer: the Job counts the pod neither as failed nor as succeeded, as when it deletes surplus
// pods itself. `resource_version`: a member that has changed since that version may have ended, which must count.
kube::Json UncountPatch(const Member& member, std::string_view resource_version);

bool IsRefusal(const kube::Error& error);  // Nothing was done, and to do it again does not help.

class MemberWriter {
 public:
  MemberWriter(kube::Client& client, const ClusterAccount& account, kube::WriteTracker& writes,
               const kube::Clock& clock, const kube::Log& log)
      : client_(client), account_(account), writes_(writes), clock_(clock), log_(log) {}

  // Nominates members, or lifts their gates, and tells them deadlines. `may_have_lifted`: set once a gate was lifted,
  // or may have been, whatever became of the others.
  kube::Status Start(const GangView& view, const GangPlan& plan, std::atomic<bool>& may_have_lifted,
                     std::stop_token stop);
  // Deletes members. A member of a Job is taken out of its Job's count first: the Job would count the deletion as a
  // failure, and the backoffLimit is the user's.
  kube::Status End(const GangView& view, const GangPlan& plan, std::stop_token stop);
  // Whether this cluster keeps the annotation that a nomination sets; true until an answer lacks it.
  bool keeps_annotations() const { return keeps_annotations_; }

 private:
  kube::Status EndOne(const GangView& view, const Member& member, std::stop_token stop);
  // False: the pod is gone or has changed; the next pass looks at it again.
  kube::Result<bool> Uncount(const GangView& view, const Member& member, std::stop_token stop);
  kube::Status Nominate(const GangView& view, const Nomination& nomination, std::stop_token stop);
  kube::Status TellDeadline(const GangView& view, const DeadlineNote& note, std::stop_token stop);
  kube::Status Lift(const GangView& view, const LiftedGate& lifted, std::atomic<bool>& may_have_lifted,
                    std::stop_token stop);
  kube::Result<std::shared_ptr<kube::Object>> PatchPod(const GangView& view, const Member& member,
                                                       const kube::Json& patch, const std::string& subresource,
                                                       std::stop_token stop);

  kube::Client& client_;
  const ClusterAccount& account_;
  kube::WriteTracker& writes_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  std::atomic<bool> keeps_annotations_{true};
};

}  // namespace grus
