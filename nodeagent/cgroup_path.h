// SPDX-License-Identifier: Apache-2.0
// Which pod and container a process is in, by its cgroups. Pure.
//
// Kubelets name the cgroup of a pod by its UID, and runtimes that of a container by its id, in the ways of cgroupfs and
// of systemd. Cgroups that a container makes within its own (Docker or Kubernetes in a pod) belong to that pod: nobody
// can move his use of a GPU to another pod by the name of a cgroup.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace grus {

struct PodOfProcess {
  // As the kubelet has it, with dashes. Of a static pod it is the 32 digits of its configuration's hash, which the API
  // server knows as the annotation kubernetes.io/config.mirror of the pod's mirror.
  std::string pod_uid;
  std::string container_id;  // 64 digits; empty: in the pod, but in no container.
  friend bool operator==(const PodOfProcess&, const PodOfProcess&) = default;
};

// `cgroups`: the text of /proc/PID/cgroup, of cgroup v1 or v2. nullopt: in no pod.
std::optional<PodOfProcess> PodOfCgroups(std::string_view cgroups);

}  // namespace grus
