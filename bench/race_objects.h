// SPDX-License-Identifier: Apache-2.0
// What rounds create beside the gang, and what they need in the cluster.
#pragma once

#include <string>

#include "bench/gang_round.h"

namespace bench {

inline constexpr char kAmdGpus[] = "amd.com/gpu", kCpus[] = "cpu";
// Every node has 8 units of the resource, and GPUs of no other maker.
kube::Status PrepareNodes(const GangWorld& world, const std::string& resource);

// PriorityClasses: below pods without one, above them, and the same for pods that rather wait than preempt.
inline constexpr char kLowClass[] = "bench-low", kHighClass[] = "bench-high", kPatientClass[] = "bench-patient";
kube::Status CreatePriorityClasses(const GangWorld& world);

inline constexpr char kOthers[] = "others";  // The gang that outsiders belong to, if they belong to one.
kube::Json MakeOutsider(const std::string& name, const Outsider& outsider, const RoundPlan& plan);
kube::Json MakeVictim(const std::string& name, const Victim& victim, const std::string& resource);

}  // namespace bench
