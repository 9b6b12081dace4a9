// SPDX-License-Identifier: Apache-2.0
// What is written to members, as strategic merge patches, each preconditioned on the pod's UID: of all kinds of patches
// these cost the API server the least, half of a merge or JSON patch. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "clientlib/model/json.h"
#include "controllers/gang/gang_plan.h"

namespace grus {

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
// Then its Job counts it no more, neither as failed nor as succeeded: as when the Job itself ends pods that are too
// many. `resource_version`: a member that has changed since it was looked at may have ended, which must count.
kube::Json UncountPatch(const Member& member, std::string_view resource_version);

}  // namespace grus
