// SPDX-License-Identifier: Apache-2.0
// Writes what a plan wants of the members of a gang: nominations, lifted gates, ends. Each write is preconditioned on
// the pod's UID, and noted with the tracker. Thread-safe.
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

// What is written: strategic merge patches, each preconditioned on the pod's UID. Of all kinds of patches these cost
// the API server the least, half of a merge or JSON patch. Pure functions.

// Of the pod's status. It names the scheduler it is meant for, so that it
// differs from one that an earlier scheduler was told: a scheduler takes up the nomination of a gated pod with the
// first change that it sees of it, and none with what it found when it started.
kube::Json NominationPatch(const GangView& view, const Nomination& nomination);

// What ties a pod to a node: additions to its node selector are allowed while it is gated.
struct Pin {
  std::string node, hostname;
};
// Takes our gate from the pod, if it is there, and writes when, unless that tells nothing (kShortGate). `now`: of the
// write, which may come long after the look at the cluster: the scheduler's time counts from it.
kube::Json LiftPatch(const GangView& view, const Member& member, kube::Time now,
                     const std::optional<Pin>& pin = std::nullopt);

// Of the status of a bound member of a Job that is about to be deleted: for the Job's podFailurePolicy it was
// disrupted.
kube::Json DisruptionPatch(const GangView& view, const Member& member);
// The Job then counts it neither as failed nor as succeeded, as when the Job itself deletes surplus pods.
// `resource_version`: a member that has changed since it was looked at may have ended, which must count.
kube::Json UncountPatch(const Member& member, std::string_view resource_version);

class MemberWriter {
 public:
  MemberWriter(kube::Client& client, const ClusterAccount& account, kube::WriteTracker& writes,
               const kube::Clock& clock, const kube::Log& log)
      : client_(client), account_(account), writes_(writes), clock_(clock), log_(log) {}

  // Nominates or lifts.
  kube::Status Start(const GangView& view, const GangPlan& plan, std::stop_token stop);
  // Deletes. A member of a Job is taken out of its Job's count first: a deletion counts as a failure there, and the
  // backoffLimit is the user's.
  kube::Status End(const GangView& view, const GangPlan& plan, std::stop_token stop);
  // Whether this cluster keeps annotations that a nomination sets; true until an answer lacks them.
  bool keeps_annotations() const { return keeps_annotations_; }

 private:
  kube::Status EndOne(const GangView& view, const Member& member, std::stop_token stop);
  // False: it is gone, or has changed, and is to be looked at again.
  kube::Result<bool> Uncount(const GangView& view, const Member& member, std::stop_token stop);
  kube::Status Nominate(const GangView& view, const Nomination& nomination, std::stop_token stop);
  kube::Status Lift(const GangView& view, const LiftedGate& lifted, std::stop_token stop);
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
