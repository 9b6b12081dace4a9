#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A stock kube-scheduler whose configuration names grus-manager as its extender, over mutual TLS, on a real control
# plane: pods with parts of GPUs that nobody planned. Two nodes of two GPUs each, shared by thousandths, are played.
# shellcheck disable=SC2317 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

name=extender
# shellcheck source=tests/charts/cluster.sh
source tests/charts/cluster.sh

scheduler_pid=
end_all() {
  [[ -z $scheduler_pid ]] || { kill -KILL "$scheduler_pid" && wait "$scheduler_pid"; } 2>/dev/null
  clean_up
}
trap end_all EXIT

milli=ai.centauruscloud.io/gpu-milli planned=sharing.ai.centauruscloud.io/planned-gpu
certs=$GRUS_STATE/certs
# shellcheck source=tests/charts/certificates.sh
source tests/charts/certificates.sh
authority ca && authority stranger && certificate ca server grus && certificate ca scheduler system:kube-scheduler &&
  certificate ca other somebody && certificate stranger stranger-scheduler system:kube-scheduler
need "certificates" test -s "$certs/stranger-scheduler.crt"

start_cluster 0 grus-system team
need "the kinds" kube apply --server-side -f crds/generated
# The cluster's own program.
scheduler=$(readlink -f "/proc/$(jq -r '.. | objects | select(.name? == "kube-scheduler") | .pid' "$GRUS_STATE/$cluster_name/state.json")/exe")
need "a scheduler" test -x "$scheduler"
offer_thousandths() { # offer_thousandths NODE: of two GPUs.
  local inventory
  inventory=$(jq -cn --arg node "$1" '[range(2) | {uuid: "GPU-\($node)-\(.)", memoryMiB: 80000, milli: 1000, mode: "milli"}]')
  need "shared GPUs on $1" kube annotate --overwrite node "$1" "sharing.ai.centauruscloud.io/inventory=$inventory"
  need "thousandths on $1" kube patch node "$1" --subresource status --type merge -p \
    "{\"status\": {\"capacity\": {\"$milli\": \"2000\"}, \"allocatable\": {\"$milli\": \"2000\"}}}"
}
for node in node-0 node-1; do offer_thousandths "$node"; done
port=$(free_port)
run_manager() {
  start_manager --controllers=gang,extender --extender-address="127.0.0.1:$port" --extender-cert-file="$certs/server.crt" \
    --extender-key-file="$certs/server.key" --extender-client-ca-file="$certs/ca.crt" \
    --extender-clients=system:kube-scheduler --health-address=127.0.0.1:0
  need "the manager is ready" within 60 is_ready
}
is_ready() { curl -fsS "http://127.0.0.1:$(port health)/readyz"; }
# start_scheduler NAME CACHE-CAPABLE IGNORABLE: beside the cluster's own, for pods that name it.
start_scheduler() {
  cat >"$GRUS_STATE/scheduler.yaml" <<YAML
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: $KUBECONFIG}
leaderElection: {leaderElect: false}
profiles: [{schedulerName: $1}]
extenders:
  - urlPrefix: https://127.0.0.1:$port/scheduler
    filterVerb: filter
    prioritizeVerb: prioritize
    preemptVerb: preempt
    bindVerb: bind
    weight: 10
    enableHTTPS: true
    tlsConfig: {certFile: $certs/scheduler.crt, keyFile: $certs/scheduler.key, caFile: $certs/ca.crt}
    httpTimeout: 5s
    nodeCacheCapable: $2
    ignorable: $3
    managedResources: [{name: $milli}]
YAML
  [[ -z $scheduler_pid ]] || { kill "$scheduler_pid" && wait "$scheduler_pid"; } 2>/dev/null
  "$scheduler" --config="$GRUS_STATE/scheduler.yaml" --secure-port=0 >"$GRUS_STATE/scheduler.log" 2>&1 &
  scheduler_pid=$!
}
# pod NAME SCHEDULER MILLI [PRIORITY-CLASS]
pod() {
  jq -n --arg name "$1" --arg scheduler "$2" --arg milli "$3" --arg class "${4:-}" --arg resource "$milli" '
    {apiVersion: "v1", kind: "Pod", metadata: {name: $name},
     spec: ({schedulerName: $scheduler, terminationGracePeriodSeconds: 0,
       containers: [{name: "main", image: "example.com/notebook:1",
         resources: {limits: (if $milli == "" then {} else {($resource): $milli} end)}}]} +
       if $class == "" then {} else {priorityClassName: $class} end)}'
}
create() { pod "$@" | kube -n team create -f -; }
phase() { kube -n team get pod "$1" -o 'jsonpath={.status.phase}'; }
gpu_of() { kube -n team get pod "$1" -o json | jq -r --arg key "$planned" '.metadata.annotations[$key] // "-"'; }
why() { kube -n team get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}'; }
# fullest: the most thousandths that pods have of one GPU.
fullest() {
  kube -n team get pods -o json | jq --arg key "$planned" --arg resource "$milli" '[.items[] | select(.spec.nodeName) |
    {gpu: .metadata.annotations[$key], milli: (.spec.containers[0].resources.limits[$resource] // "0" | tonumber)}] |
    group_by(.gpu) | map(map(.milli) | add) | max // 0'
}
bound() { kube -n team get pods -o json | jq '[.items[] | select(.spec.nodeName)] | length'; }
delete_all() { kube -n team delete pods --all --wait=true >/dev/null; }

run_manager
start_scheduler with-grus true false

# --- parts that nobody planned
for pod in a b c d; do create "$pod" with-grus 600 >/dev/null; done
for pod in a b c d; do check "pod $pod runs" within 60 equals Running phase "$pod"; done
check "each on a GPU of its own" equals 4 eval 'for pod in a b c d; do gpu_of $pod; done | sort -u | grep -c GPU-'
create e with-grus 600 >/dev/null
check "where no single GPU has the room, a pod waits, and says so" \
  within 30 prints '600 ai.centauruscloud.io/gpu-milli on one GPU: 400 are free at most' why e
check "although the sum would do" equals Pending phase e
create f with-grus 400 >/dev/null
check "one that fits runs" within 30 equals Running phase f
kube -n team delete pod a >/dev/null
check "the first waits no longer when room is free" within 60 equals Running phase e
delete_all

# --- many at once
for i in $(seq 40); do pod "many-$i" with-grus 100; done | kube -n team create -f - >/dev/null
check "40 pods of a tenth run at once" within 120 equals 40 bound
check "and no GPU is given twice" equals 1000 fullest
delete_all

# --- whole GPUs of shared nodes, and pods that are none of its concern
create whole with-grus 2000 >/dev/null
check "two whole GPUs are of one node" within 30 prints '^GPU-node-[01]-0,GPU-node-[01]-1$' gpu_of whole
create plain with-grus '' >/dev/null
check "a pod without parts runs, and has no annotation" within 30 equals Running phase plain
check "as the scheduler binds it itself" equals - gpu_of plain
delete_all

# --- preemption
kube create priorityclass high --value=1000 >/dev/null
for pod in a b c d; do create "$pod" with-grus 900 >/dev/null; done
for pod in a b c d; do check "pod $pod runs" within 60 equals Running phase "$pod"; done
create urgent with-grus 600 high >/dev/null
check "a pod of higher priority gets a GPU" within 60 equals Running phase urgent
check "for which one other has ended" equals 4 bound
check "and that GPU has no more than it has" equals 900 fullest
delete_all

# --- whole nodes
start_scheduler with-nodes false false
create g with-nodes 300 >/dev/null
check "a scheduler that sends whole nodes is answered, too" within 60 equals Running phase g
check "and the GPU is written down" prints GPU-node gpu_of g
delete_all

# --- gpushare's pods, by its paths: cards of 8 and 16 GiB, and two of 12
mem=aliyun.com/gpu-mem
share() { # share NODE GIB...: instead of thousandths.
  local inventory
  inventory=$(jq -cn --arg node "$1" '[$ARGS.positional | to_entries[] | {uuid: "GPU-\($node)-\(.key)",
    memoryMiB: (.value * 1024), milli: 1000, mode: "gpushare"}]' --jsonargs "${@:2}")
  need "GPUs of gpushare on $1" kube annotate --overwrite node "$1" "sharing.ai.centauruscloud.io/inventory=$inventory"
  need "their GiB on $1" kube patch node "$1" --subresource status --type merge -p "$(jq -n --arg milli "$milli" --arg mem "$mem" \
    '($ARGS.positional | add | tostring) as $sum | {status: {capacity: {($milli): "0", ($mem): $sum}, allocatable: {($milli): "0", ($mem): $sum}}}' \
    --jsonargs "${@:2}")"
}
share node-0 8 16
share node-1 12 12
# Its users' configuration, with one URL changed.
start_gpushare_scheduler() {
  cat >"$GRUS_STATE/gpushare.yaml" <<YAML
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: $KUBECONFIG}
leaderElection: {leaderElect: false}
profiles: [{schedulerName: gpushare}]
extenders:
  - urlPrefix: https://127.0.0.1:$port/gpushare-scheduler
    filterVerb: filter
    bindVerb: bind
    enableHTTPS: true
    tlsConfig: {certFile: $certs/scheduler.crt, keyFile: $certs/scheduler.key, caFile: $certs/ca.crt}
    nodeCacheCapable: true
    ignorable: false
    managedResources: [{name: $mem, ignoredByScheduler: false}]
YAML
  [[ -z $scheduler_pid ]] || { kill "$scheduler_pid" && wait "$scheduler_pid"; } 2>/dev/null
  "$scheduler" --config="$GRUS_STATE/gpushare.yaml" --secure-port=0 >"$GRUS_STATE/scheduler.log" 2>&1 &
  scheduler_pid=$!
}
start_gpushare_scheduler
share_pod() { # share_pod NAME GIB...: one container for each, with the annotations of a user who wants GPU 7.
  jq -n --arg name "$1" --arg mem "$mem" '{apiVersion: "v1", kind: "Pod",
    metadata: {name: $name, annotations: {ALIYUN_COM_GPU_MEM_IDX: "7", ALIYUN_COM_GPU_MEM_ASSIGNED: "true"}},
    spec: {schedulerName: "gpushare", terminationGracePeriodSeconds: 0,
      containers: [$ARGS.positional | to_entries[] | {name: "c\(.key)", image: "example.com/notebook:1",
        resources: {limits: {($mem): (.value | tostring)}}}]}}' --jsonargs "${@:2}"
}
ask_share() { share_pod "$@" | kube -n team create -f - >/dev/null; }
where() { # where POD: its node, and what gpushare's device plugin reads.
  kube -n team get pod "$1" -o json | jq -r '.metadata.annotations as $a |
    [.spec.nodeName, ("IDX", "DEV", "POD", "ASSIGNED" | $a["ALIYUN_COM_GPU_MEM_" + .])] | join(" ")'
}
assumed() { kube -n team get pod "$1" -o json | jq -r '.metadata.annotations.ALIYUN_COM_GPU_MEM_ASSUME_TIME'; }
# inspect [/NODE]: NODE ID TOTAL USED PODS, a line for each GPU.
inspect() {
  curl -fsS --cacert "$certs/ca.crt" --cert "$certs/scheduler.crt" --key "$certs/scheduler.key" \
    "https://127.0.0.1:$port/gpushare-scheduler/inspect${1:-}" | jq -r '.nodes[] | .name as $node | .devs[] |
    "\($node) \(.id) \(.totalGPU) \(.usedGPU) \([.pods[] | "\(.namespace)/\(.name)=\(.usedGPU)"] | sort | join(","))"'
}
began=$(date +%s)
ask_share large 14
check "a pod finds the one card that is large enough" within 60 equals Running phase large
check "and says so as gpushare's extender does, whatever its user wrote" equals 'node-0 1 16 14 false' where large
check "with the GPU's name for the agent" equals GPU-node-0-1 gpu_of large
check "and the nanoseconds of now" eval '(($(assumed large) / 1000000000 - began < 600)) && (($(assumed large) / 1000000000 >= began))'
ask_share two 5 4
check "a pod of two containers with GPUs runs" within 60 equals Running phase two
check "with both on one GPU of node-1" prints '^node-1 [01] 12 9 false$' where two
ask_share larger 13
check "where no card has the room, a pod waits, and says so" within 30 prints '13 aliyun.com/gpu-mem on one GPU: 12 are free at most' why larger
kube -n team delete pods --all --wait=true >/dev/null
for i in $(seq 20); do share_pod "equal-$i" 5; done | kube -n team create -f - >/dev/null
check "of pods of one size that come at once, as many run as fit" within 120 equals 8 bound
expected='node-0 0 8 5
node-0 1 16 15
node-1 0 12 10
node-1 1 12 10'
inspected() { inspect "$@" | cut -d ' ' -f 1-4; }
check "no card is over-filled" equals "$expected" inspected
by_annotations() { # As inspect, from the pods.
  kube -n team get pods -o json | jq -r '[.items[] | select(.spec.nodeName)] | group_by([.spec.nodeName, .metadata.annotations.ALIYUN_COM_GPU_MEM_IDX])[] |
    (.[0] | "\(.spec.nodeName) \(.metadata.annotations.ALIYUN_COM_GPU_MEM_IDX) \(.metadata.annotations.ALIYUN_COM_GPU_MEM_DEV)") as $gpu |
    "\($gpu) \(length * 5) \([.[] | "team/\(.metadata.name)=5"] | sort | join(","))"'
}
check "each pod says the card on which it counts" equals "$(inspect)" by_annotations
check "one node can be inspected" equals "$(head -n 2 <<<"$expected")" inspected /node-0
kube -n team delete pods --all --wait=true >/dev/null
need "a card taken out of use" kube -n kube-system create configmap unhealthy-gpu-node-0 --from-literal=gpus=1
out_of_use() {
  curl -fsS --cacert "$certs/ca.crt" --cert "$certs/scheduler.crt" --key "$certs/scheduler.key" \
    "https://127.0.0.1:$port/gpushare-scheduler/inspect/node-0" | jq -c '[.nodes[].devs[].healthy]'
}
check "inspection says so" within 30 equals '[null,false]' out_of_use
ask_share shunned 14
check "nobody gets it" within 30 prints '14 aliyun.com/gpu-mem on one GPU: 12 are free at most' why shunned
kube -n kube-system delete configmap unhealthy-gpu-node-0 >/dev/null
check "until it is back" within 60 equals Running phase shunned
check "on that card" equals 'node-0 1 16 14 false' where shunned
kube -n team delete pods --all --wait=true >/dev/null
need "node-1 without the agent" kube annotate node node-1 sharing.ai.centauruscloud.io/inventory-
need "but with gpushare's own plugin" kube patch node node-1 --subresource status --type merge -p \
  '{"status": {"capacity": {"aliyun.com/gpu-count": "2"}, "allocatable": {"aliyun.com/gpu-count": "2"}}}'
for pod in filler first second; do ask_share "$pod" 9; done
for pod in filler first second; do check "pod $pod runs" within 60 equals Running phase "$pod"; done
both() { for pod in filler first second; do where "$pod"; done | sort; }
check "its GPUs have numbers, and each gets one pod" equals 'node-0 1 16 9 false
node-1 0 12 9 false
node-1 1 12 9 false' both
anybody() { curl -sS --cacert "$certs/ca.crt" ${1:+--cert "$certs/$1.crt" --key "$certs/$1.key"} "https://127.0.0.1:$port/gpushare-scheduler/inspect"; }
check "nobody inspects without a certificate" fails anybody ''
check "nor with one of another CA" fails anybody stranger-scheduler
check "nor with another name" fails anybody other
check "the version is told" equals "$("$manager" --version | cut -d ' ' -f 2)" curl -fsS --cacert "$certs/ca.crt" --cert "$certs/scheduler.crt" --key "$certs/scheduler.key" "https://127.0.0.1:$port/version"
delete_all
for node in node-0 node-1; do offer_thousandths "$node"; done

# --- who may call
call() { # call CERTIFICATE VERB BODY
  curl -sS --cacert "$certs/ca.crt" ${1:+--cert "$certs/$1.crt" --key "$certs/$1.key"} --data "$3" "https://127.0.0.1:$port/scheduler/$2"
}
check "the scheduler's certificate may call" prints 'Pod: expected the pod to schedule' call scheduler filter '{}'
check "without a certificate nobody may" fails call '' filter '{}'
check "nor with one of another CA" fails call stranger-scheduler filter '{}'
check "nor with another name" fails call other filter '{}'
huge() { head -c 70000000 /dev/zero | tr '\0' ' ' | curl -sS -o /dev/null -w '%{http_code}' --cacert "$certs/ca.crt" --cert "$certs/scheduler.crt" --key "$certs/scheduler.key" --data-binary @- "https://127.0.0.1:$port/scheduler/filter"; }
check "70 MB are refused" prints 413 huge
check "calls are counted" prints 'grus_extender_duration_seconds_count{verb="bind",result="ok"}' \
  curl -fsS "http://127.0.0.1:$(port metrics)/metrics"

# --- the manager is away
start_scheduler strict true false
kill -KILL "$manager_pid"; wait "$manager_pid" 2>/dev/null
create h strict 300 >/dev/null
create plain strict '' >/dev/null
check "without the manager, other pods run" within 60 equals Running phase plain
check "those with parts wait, and say for what" within 30 prints 'connection refused' why h
run_manager
check "when it is back, they run" within 90 equals Running phase h
check "with a GPU" prints GPU-node gpu_of h

# --- without certificates
kill -KILL "$manager_pid"; wait "$manager_pid" 2>/dev/null
start_manager --controllers=extender --extender-address="127.0.0.1:$port" --health-address=127.0.0.1:0
need "a manager without certificates is ready" within 60 is_ready
check "anybody may ask it" prints 'Pod: expected' curl -sS --data '{}' "http://127.0.0.1:$port/scheduler/filter"
check "but it binds nothing" prints 'for clients with a certificate only' \
  curl -sS --data '{}' "http://127.0.0.1:$port/scheduler/bind"

finish
