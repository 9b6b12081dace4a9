#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Claims for parts of GPUs (Dynamic Resource Allocation) on a real kubelet and the stock scheduler: grus-node-agent
# --share-gpus on a real node with the label mode=dra and two GPUs of 80 GiB that a fake of NVIDIA's library plays. Six
# claims of 300 thousandths and 30 GiB: two fit on each GPU. Takes two to three minutes.
# Usage: claims_test.sh
#   GRUS_CONTAINERD=FOLDER   with a containerd of its own, 2.0 or newer, and its containerd-shim-runc-v2. Older ones do
#                            not know CDI: then what containers see of their claims is not tested, and this says so.
#
# Needs root and what scripts/install-packages --real-node installs; where that is not to be had, GRUS_REAL_NODE=off
# leaves this test out.
# shellcheck disable=SC2317,SC2329 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../../.." || exit

cluster=tests/cluster/cluster
(($# == 0)) || { echo "usage: claims_test.sh" >&2; exit 2; }

# shellcheck source=tests/kit/check.sh
source tests/kit/check.sh
if [[ ${GRUS_REAL_NODE:-} == off ]]; then
  echo "NOT RUN: GRUS_REAL_NODE is off, so nothing is known of claims on a real kubelet"
  finish
fi

GRUS_STATE=$(mktemp -d "${TMPDIR:-/tmp}/grus-claims-test.XXXXXX")
export GRUS_STATE
if [[ -n ${GRUS_CONTAINERD:-} ]]; then   # The node takes the first containerd of the PATH, and that the first shim.
  mkdir -- "$GRUS_STATE/containerd"
  printf '#!/bin/sh\nPATH=%q:$PATH exec %q "$@"\n' "$GRUS_CONTAINERD" "$GRUS_CONTAINERD/containerd" >"$GRUS_STATE/containerd/containerd"
  chmod +x "$GRUS_STATE/containerd/containerd"
  PATH=$GRUS_STATE/containerd:$PATH
fi
clean_up() {
  stop_agent
  "$cluster" down --all >/dev/null 2>&1
  rm -rf -- "$GRUS_STATE"
}
# shellcheck source=tests/nodeagent/parts/node.sh
source tests/nodeagent/parts/node.sh
trap clean_up EXIT
# shellcheck disable=SC2034 # node.sh reads them.
gpu_sizes=(80 80) gpu_count=2
runtime=$(containerd --version)
knows_cdi=1
[[ ! $runtime =~ \ v?1\. ]] || knows_cdi=

driver=gpu.ai.centauruscloud.io
slice=real-0-$driver
devices() { kube get resourceslice "$slice" -o 'jsonpath={.spec.devices[*].name}'; }
name_of() { gpu "$1" | tr '[:upper:]' '[:lower:]'; }
both="$(name_of 0) $(name_of 1)"
claimant() { # claimant NAME: a pod of the template.
  cat <<JSON
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1", "labels": {"app": "claims"}},
 "spec": {"nodeSelector": {"grus.test/real": "true"}, "terminationGracePeriodSeconds": 1,
  "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "part"}],
  "containers": [{"name": "main", "image": "localhost/box:1", "imagePullPolicy": "Never",
   "resources": {"claims": [{"name": "gpu"}]}, "command": ["/bin/sh", "-c",
   "echo claims \$NVIDIA_VISIBLE_DEVICES \$GRUS_GPU_MILLI \$GRUS_GPU_MEMORY_MIB; exec sleep 100000"]}]}}
JSON
}
running() { kube get pods -l app=claims --field-selector status.phase=Running -o name | wc -l; }
are_running() { equals "$1" running; }
# Of each GPU with claims: its device, the claims, their thousandths and GiB.
consumed() {
  kube get resourceclaims -o json | jq -r --arg driver "$driver" '
    def gib: if endswith("Gi") then rtrimstr("Gi") | tonumber else error end;
    [.items[].status.allocation.devices.results[]? | select(.driver == $driver and .pool == "real-0")]
    | group_by(.device)[] | "\(.[0].device) \(length) \(map(.consumedCapacity.milli | tonumber) | add) \(map(.consumedCapacity.memory | gib) | add)"'
}
cdi_files() { on_node sh -c 'ls /var/run/cdi' | grep -c '^grus-claim-.*\.json$' || true; }
# What each running pod's claim says, and its annotation: these must agree.
of_claims() {
  kube get pods,resourceclaims -l '!none' -o json | jq -r '
    [.items[] | select(.kind == "ResourceClaim" and .status.allocation)] as $claims
    | .items[] | select(.kind == "Pod" and .status.phase == "Running" and .metadata.labels.app == "claims")
    | .status.resourceClaimStatuses[0].resourceClaimName as $name
    | ($claims[] | select(.metadata.name == $name) | .status.allocation.devices.results[0]) as $part
    | "\(.metadata.name) \($part.device) \($part.consumedCapacity.milli) \($part.consumedCapacity.memory)"' | sort
}
of_annotations() {
  kube get pods -l app=claims -o json | jq -r '.items[] | select(.metadata.annotations["sharing.ai.centauruscloud.io/gpus"])
    | (.metadata.annotations["sharing.ai.centauruscloud.io/gpus"] | fromjson | .main) as $part
    | "\(.metadata.name) \($part.gpu | ascii_downcase) \($part.milli) \($part.memoryMiB / 1024)Gi"' | sort
}
of_containers() {
  local pod
  for pod in $(kube get pods -l app=claims --field-selector status.phase=Running -o 'jsonpath={.items[*].metadata.name}'); do
    kube logs "$pod" | awk -v pod="$pod" '{print pod, tolower($2), $3, $4 / 1024 "Gi"}'
  done | sort
}
agree() { equals "$(of_claims)" "$1"; }

start_node
play
set_mode dra
start_agent
need "the node's GPUs stand in its ResourceSlice" within 40 equals "$both" devices
check "each may have several claims" equals 'true true' kube get resourceslice "$slice" -o 'jsonpath={.spec.devices[*].allowMultipleAllocations}'
check "and so much memory and thousandths" equals '81420Mi 1k' kube get resourceslice "$slice" -o \
  'jsonpath={.spec.devices[0].capacity.memory.value} {.spec.devices[0].capacity.milli.value}'
check "it belongs to the node" equals 'Node real-0' kube get resourceslice "$slice" -o \
  'jsonpath={.metadata.ownerReferences[0].kind} {.metadata.ownerReferences[0].name}'
check "no device plugin offers them, too" equals '' kube get node real-0 -o 'jsonpath={.status.allocatable.ai\.centauruscloud\.io/gpu-milli}'

kube create -f - >/dev/null <<YAML
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: $driver}
spec: {selectors: [{cel: {expression: device.driver == "$driver"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: part}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: {deviceClassName: $driver, capacity: {requests: {milli: "300", memory: 30Gi}}}
YAML
for i in 1 2 3 4 5 6; do claimant "p$i"; done | kube create -f - >/dev/null
check "of six pods with 30 GiB each, four run" within 60 are_running 4
two_each() { equals "$(name_of 0) 2 600 60"$'\n'"$(name_of 1) 2 600 60" consumed; }
check "two on each GPU, by the claims" two_each
check "two wait" equals 2 eval 'kube get pods -l app=claims --field-selector status.phase=Pending -o name | wc -l'
check "four claims are prepared" equals 4 cdi_files
check "annotations say what the claims do" within 20 agree of_annotations
if [[ -n $knows_cdi ]]; then
  check "containers see what the claims say" within 10 agree of_containers
else
  echo "NOT RUN: $runtime knows no CDI, so nothing is known of what containers see of their claims"
fi

# --- agent and kubelet die
containers() { kube get pods -l app=claims -o 'jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[*].containerID}{"\n"}{end}'; }
containers >"$work/containers"
stop_agent KILL
start_agent
knows() { (($(grep -c 'the kubelet knows a driver' "$agent_log") >= $1)); }
check "an agent that was killed is known again" within 30 knows 2
first=$(kube get pods -l app=claims --field-selector status.phase=Running -o 'jsonpath={.items[0].metadata.name}')
check "a pod ends" remove "$first"
check "one that waited runs in its place" within 30 are_running 4
check "two on each GPU" two_each
check "four claims are prepared" within 10 equals 4 cdi_files
containers >"$work/containers"
need "the kubelet is killed and starts again" restart_kubelet
check "it knows the driver again" within 40 knows 3
check "the ResourceSlice is there" within 40 equals "$both" devices
check "containers have not noticed" equals "$(<"$work/containers")" containers
check "annotations are as before" within 20 agree of_annotations

# --- a GPU dies
play "xid gpu=1 code=79 id=1"
check "a GPU with a fatal error is not offered" within 20 equals "$(name_of 0)" devices
check "its pods stay" are_running 4
play
stop_agent
start_agent
check "the next agent knows of it" within 40 grep -q 'a GPU is sick since before' "$agent_log"
check "and does not offer it" equals "$(name_of 0)" devices
stop_agent
on_node rm /var/run/cdi/grus-gpu-faults
start_agent
check "without the file it is offered again" within 40 equals "$both" devices

# --- another mode
set_mode milli
stop_agent   # It reads the label when it starts.
start_agent
no_slice() { equals '' kube get resourceslices --field-selector "spec.driver=$driver" -o name; }
check "in another mode the ResourceSlice goes" within 30 no_slice
milli_offered() { equals "$1" kube get node real-0 -o 'jsonpath={.status.allocatable.ai\.centauruscloud\.io/gpu-milli}'; }
check "and the node offers thousandths" within 30 milli_offered 2k
part greedy '"ai.centauruscloud.io/gpu-milli": 100' | kube create -f - >/dev/null
check "but a GPU of which claims have parts is given to nobody" within 20 says pod/greedy 'is held by ResourceClaim default/' .status.message
check "pods with claims end" remove -l app=claims
check "nothing is prepared any more" within 20 equals 0 cdi_files
check "then the GPU is given" eval "part next '\"ai.centauruscloud.io/gpu-milli\": 100' | kube create -f - && runs next"
finish
