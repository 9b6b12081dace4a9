// SPDX-License-Identifier: Apache-2.0
// The objects that users and administrators create, as JSON, for whatever server a test or a bench talks to.
//
// Each returns what nearly all callers want; a caller changes the result as it needs. If an object has no namespace,
// the request names it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "clientlib/model/kind.h"
#include "crds/types/pod_group.h"

namespace kit {

inline constexpr char kGpus[] = "nvidia.com/gpu";

kube::Json MakeObject(std::string_view api_version, std::string_view kind, const std::string& name,
                      const std::string& ns = {});

// One container "c" with a limit of that many units, none if 0. `more`: a merge patch over the spec.
kube::Json PodSpec(std::int64_t units, std::string_view more = "{}", const std::string& resource = kGpus);
kube::Json Gated(kube::Json pod_spec);  // With the gate of gangs.
// Labels of a member of that gang.
kube::Json MemberOf(const std::string& group, const std::string& label = api::kPodGroupLabel);

kube::Json MakePod(const std::string& name, kube::Json pod_spec, kube::Json labels = {}, const std::string& ns = {});
// All its pods at once, labelled app=NAME besides.
kube::Json MakeStatefulSet(const std::string& name, int replicas, kube::Json pod_spec, kube::Json labels = {},
                           const std::string& ns = {});
// That many pods at once; they are not restarted.
kube::Json MakeJob(const std::string& name, int pods, kube::Json pod_spec, kube::Json labels = {},
                   const std::string& ns = {});
// `more`: further fields of the spec.
kube::Json MakePodGroup(const std::string& name, int min_member, std::string_view more = "{}",
                        const std::string& ns = {}, const kube::Kind& kind = kube::KindOf<api::PodGroup>());
// With 96 CPUs, 1 Ti of memory, and that many GPUs.
kube::Json MakeNode(const std::string& name, int gpus);
kube::Json MakePriorityClass(const std::string& name, int value,
                             std::string_view preemption_policy = "PreemptLowerPriority");

}  // namespace kit
