// SPDX-License-Identifier: Apache-2.0
// What the Pod Security Standard "restricted" demands of a pod, for templates that leave it open. Pure functions.
//
// Only the API server knows where the standard holds: labels of namespaces, defaults of the cluster, exemptions. So a
// pod is sent as its template states it, and filled in once it was refused for that reason.
#pragma once

#include "clientlib/base/error.h"
#include "clientlib/model/json.h"

namespace grus {

// On pods that FillPodSecurity() has changed.
inline constexpr char kPodSecurityAnnotation[] = "ai.centauruscloud.io/pod-security";

// The standard refuses the pod; filled in, it may be accepted.
bool IsRefusedAsUnrestricted(const kube::Error& refusal);

// Fills in, in a pod or the template of one: runAsNonRoot and seccompProfile of the pod; allowPrivilegeEscalation:
// false and capabilities.drop: [ALL] of each container. What the template says stays, also if the standard forbids it:
// the API server names that field. Malformed parts stay as they are.
void FillPodSecurity(kube::Json& pod);

// After the create of `pod` failed: true if it was refused for that reason; it is filled in then, to be sent once more.
bool FillIfRefused(const kube::Error& refusal, kube::Json& pod);

}  // namespace grus
