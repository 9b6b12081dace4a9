// SPDX-License-Identifier: Apache-2.0
// The admission plugin PodSecurity for new pods: the levels baseline and restricted, if a namespace enforces one by its
// label. Pure.
//
// Uses the latest version of the standards, whatever version the namespace names. Checks the host's namespaces, paths
// and ports, privileges, capabilities to drop, types of volumes, users and seccomp profiles. Lacks: AppArmor, SELinux,
// sysctls, procMount, Windows, exemptions, warnings and audit.
#pragma once

#include <string>

#include "clientlib/model/json.h"

namespace kube::testing {

inline constexpr std::string_view kEnforceLabel = "pod-security.kubernetes.io/enforce";

// "violates PodSecurity "restricted:latest": ..."; empty: the namespace admits the pod.
std::string PodSecurityViolation(const Json& ns, const Json& pod);

}  // namespace kube::testing
