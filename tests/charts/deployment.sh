# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For deployment_test.sh: the manager's pods, seen from the API server and from the node they run on.

kube() { "$cluster" kubectl --name "$cluster_name" -- "$@"; }
on_node() { "$cluster" node-exec --name "$cluster_name" -- "$@"; }
manager_pods() { kube -n grus-system get pods -l app.kubernetes.io/name=grus -o 'jsonpath={.items[*].metadata.name}'; }
two_are_ready() {
  kube -n grus-system wait deployment/grus --for='jsonpath={.status.readyReplicas}=2' --timeout="${1:-60}s"
}
holder() { kube -n grus-system get lease grus -o 'jsonpath={.spec.holderIdentity}'; }
leader() { local who; who=$(holder) && echo "${who%_*}"; }   # An identity is the pod's name, "_" and a random number.

container_of() { # container_of POD: its ID on the node.
  local id
  id=$(kube -n grus-system get pod "$1" -o 'jsonpath={.status.containerStatuses[0].containerID}')
  echo "${id#containerd://}"
}
cgroup_of() { # cgroup_of POD: the folder of the container's memory, of cgroup v1 or v2.
  local roots=(/sys/fs/cgroup)
  [[ ! -d /sys/fs/cgroup/memory ]] || roots=(/sys/fs/cgroup/memory)
  find "${roots[@]}" -type d -name "$(container_of "$1")" | head -n 1
}
process_of() { head -n 1 "$(cgroup_of "$1")/cgroup.procs"; }   # As the machine counts.

# memory_of POD: the container's working set as the kubelet counts it, its highest use ever (with all that the kernel
# holds for it), the process' highest resident set (with the pages of its files, whoever read them first), all in KiB;
# then how often the limit was hit, and out-of-memory kills.
memory_of() {
  local folder process now idle peak hits kills
  folder=$(cgroup_of "$1") && process=$(head -n 1 "$folder/cgroup.procs") || return 1
  if [[ -e $folder/memory.current ]]; then
    now=$(<"$folder/memory.current") && peak=$(<"$folder/memory.peak") || return 1   # The peak: since Linux 5.19.
    idle=$(awk '$1 == "inactive_file" {print $2}' "$folder/memory.stat")
    hits=$(awk '$1 == "max" {print $2}' "$folder/memory.events")
    kills=$(awk '$1 == "oom_kill" {print $2}' "$folder/memory.events")
  else
    now=$(<"$folder/memory.usage_in_bytes") && peak=$(<"$folder/memory.max_usage_in_bytes") || return 1
    idle=$(awk '$1 == "total_inactive_file" {print $2}' "$folder/memory.stat")
    hits=$(<"$folder/memory.failcnt")
    kills=$(awk '$1 == "oom_kill" {print $2}' "$folder/memory.oom_control")
  fi
  echo "$(((now - idle) / 1024)) $((peak / 1024)) $(awk '$1 == "VmHWM:" {print $2}' "/proc/$process/status") $hits $kills"
}
