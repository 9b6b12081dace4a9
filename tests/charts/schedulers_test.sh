#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Pods that name one of Alnair's schedulers, on a real control plane whose scheduler knows neither: with parts of GPUs in
# the chart they are bound, and say whether they are packed or spread. Takes a minute.
# shellcheck disable=SC2317 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

name=schedulers
# shellcheck source=tests/charts/cluster.sh
source tests/charts/cluster.sh

start_cluster 1 grus-system team
for node in node-0 node-1; do
  need "parts of GPUs on $node" kube patch node "$node" --subresource status --type merge -p \
    '{"status": {"capacity": {"alnair/vgpu-memory": "158", "alnair/vgpu-compute": "200"}, "allocatable": {"alnair/vgpu-memory": "158", "alnair/vgpu-compute": "200"}}}'
done
# pod NAME SCHEDULER [PLACEMENT]: with the fields of the original's own samples, which name no compute.
pod() {
  jq -n --arg name "$1" --arg scheduler "$2" --arg placement "${3:-}" '{apiVersion: "v1", kind: "Pod",
    metadata: ({name: $name} + if $placement == "" then {} else {annotations: {"sharing.ai.centauruscloud.io/placement": $placement}} end),
    spec: ({containers: [{name: "cuda-container", image: "example.com/cuda:9", command: ["sleep", "600"],
      resources: {limits: {"alnair/vgpu-memory": 6}}}]} + if $scheduler == "" then {} else {schedulerName: $scheduler} end)}'
}
create() { pod "$@" | kube -n team create -f -; }
# state POD: phase, scheduler, placement.
state() {
  kube -n team get pod "$1" -o json |
    jq -r '[.status.phase, .spec.schedulerName, .metadata.annotations["sharing.ai.centauruscloud.io/placement"] // "-"] | join(" ")'
}
policies() { kube get mutatingadmissionpolicies,mutatingadmissionpolicybindings -o name; }

# --- without it
need "helm install, without parts of GPUs" "$helm" install grus "$chart" --namespace grus-system --timeout 60s \
  --set replicas=0,nodeAgent.enabled=true
check "no pod is changed" equals '' policies
create before alnair-cost-saving >/dev/null
create usual '' >/dev/null
check "a pod that names no scheduler runs" within 30 equals 'Running default-scheduler -' state usual
check "one that names Alnair's does not" equals 'Pending alnair-cost-saving -' state before
check "and nobody says a word of it" equals '' kube -n team get pod before -o 'jsonpath={.status.conditions}'

# --- with it
set_values() { "$helm" upgrade grus "$chart" --namespace grus-system --timeout 60s --set replicas=0,nodeAgent.enabled=true "$@"; }
check "helm upgrade, with parts of GPUs" set_values --set nodeAgent.sharing.enabled=true
changed() { pod probe alnair-cost-saving | kube -n team create --dry-run=server -o 'jsonpath={.spec.schedulerName}' -f -; }
need "the policy comes into force" within 30 equals default-scheduler changed
create saves alnair-cost-saving >/dev/null
create performs alnair-high-performance >/dev/null
check "alnair-cost-saving: it runs, and is packed" within 30 equals 'Running default-scheduler pack' state saves
check "alnair-high-performance: it runs, and is spread" within 30 equals 'Running default-scheduler spread' state performs
create says alnair-high-performance pack >/dev/null
check "what a pod says itself wins" within 30 equals 'Running default-scheduler pack' state says
create spreads '' spread >/dev/null
check "it needs no scheduler's name for that" within 30 equals 'Running default-scheduler spread' state spreads
create foreign mine >/dev/null
check "other schedulers are left alone" equals 'Pending mine -' state foreign
create plain '' >/dev/null
check "pods that name none are not touched" within 30 equals 'Running default-scheduler -' state plain
jq -n --argjson pod "$(pod x alnair-high-performance)" '{apiVersion: "apps/v1", kind: "Deployment", metadata: {name: "web"},
  spec: {replicas: 2, selector: {matchLabels: {a: "b"}}, template: {metadata: {labels: {a: "b"}}, spec: $pod.spec}}}' |
  kube -n team create -f - >/dev/null
check "pods of a template run, too" kube -n team rollout status deployment web --timeout=60s
check "and are not replaced for it" equals '2 1' \
  kube -n team get deployment web -o 'jsonpath={.status.readyReplicas} {.status.observedGeneration}'

# --- the annotation
check "another word is refused" prints 'placement is "fill": expected pack or spread' create liar '' fill
annotate() { kube -n team annotate --overwrite pod plain "sharing.ai.centauruscloud.io/$1"; }
check "its user may change it" annotate placement=spread
check "but not to another word" prints 'expected pack or spread' annotate placement=fill
check "and may remove it" annotate placement-
check "the GPU itself is still grus's to say" prints 'only grus writes them' annotate planned-gpu=GPU-1
check "the API server understands all of it" equals '{}' \
  kube get validatingadmissionpolicy grus-system.grus-node-agent-notes -o 'jsonpath={.status.typeChecking}'

# --- where such schedulers run
check "helm upgrade, without the stand-in" set_values --set nodeAgent.sharing.enabled=true,nodeAgent.sharing.alnairSchedulers=false
check "nothing of it is left" equals '' policies
check "pods keep their scheduler" within 30 equals alnair-cost-saving changed
older=$(render --kube-version 1.35.9 --set nodeAgent.enabled=true,nodeAgent.sharing.enabled=true)
check "an older API server gets the other policies" prints 'kind: ValidatingAdmissionPolicy' echo "$older"
check "and none of these" fails prints MutatingAdmissionPolicy echo "$older"

finish
