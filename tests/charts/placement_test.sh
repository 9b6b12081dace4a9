#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The example values for managed clouds: on nodes that are labelled and tainted as theirs, a real scheduler puts the
# manager where the file says.
# shellcheck disable=SC2317 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

name=placement
# shellcheck source=tests/charts/cluster.sh
source tests/charts/cluster.sh

start_cluster 0 gke eks aks
kube apply --server-side -f crds/generated >/dev/null
# node CLOUD NAME LABEL... [-- TAINT]: a node that is that cloud's only: the test adds the cloud to what pods ask for.
node() {
  local cloud=$1 node=$1-$2
  shift 2
  "$cluster" nodes 1 --gpus 0 --prefix "$node" --name "$cluster_name" >/dev/null || return 1
  kube label node "$node-0" "test/cloud=$cloud" >/dev/null
  while (($#)) && [[ $1 != -- ]]; do kube label node "$node-0" "$1" >/dev/null || return 1; shift; done
  (($# < 2)) || kube taint node "$node-0" "$2" >/dev/null
}
need "nodes of GKE" node gke plain cloud.google.com/gke-nodepool=plain
need "Spot" node gke spot cloud.google.com/gke-spot=true
need "preemptible" node gke old cloud.google.com/gke-preemptible=true
need "with GPUs" node gke gpu cloud.google.com/gke-accelerator=nvidia-l4 -- nvidia.com/gpu=present:NoSchedule
need "nodes of EKS" node eks plain eks.amazonaws.com/capacityType=ON_DEMAND
need "Spot" node eks spot eks.amazonaws.com/capacityType=SPOT
need "Karpenter's Spot" node eks karpenter karpenter.sh/capacity-type=spot
need "with GPUs" node eks gpu eks.amazonaws.com/capacityType=ON_DEMAND nvidia.com/gpu.present=true
need "nodes of AKS" node aks plain kubernetes.azure.com/mode=system -- CriticalAddonsOnly=true:NoSchedule
need "of users" node aks user kubernetes.azure.com/mode=user
need "Spot" node aks spot kubernetes.azure.com/mode=user kubernetes.azure.com/scalesetpriority=spot \
  -- kubernetes.azure.com/scalesetpriority=spot:NoSchedule
kube delete node node-0 node-1 >/dev/null

# Four replicas: they would spread over more than one node if they could.
for cloud in gke eks aks; do
  check "$cloud: helm install" "$helm" install grus "$chart" --namespace "$cloud" --values "$chart/values-$cloud.yaml" \
    --set crds.install=false,replicas=4 --set-string "nodeSelector.test/cloud=$cloud" --wait --timeout 60s
  used() { kube -n "$cloud" get pods -l app.kubernetes.io/name=grus -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u; }
  check "$cloud: the manager is where it is safe" equals "$cloud-plain-0" used
done
cloud=gke
check "without its file" "$helm" upgrade grus "$chart" --namespace gke --set crds.install=false,replicas=8 \
  --set-string nodeSelector.test/cloud=gke --wait --timeout 60s
check "it would be elsewhere, too" prints '^gke-spot-0$' used

finish
