#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Parts of GPUs on a real kubelet: grus-node-agent --share-gpus on a real node, with eight GPUs of different size that a fake of
# NVIDIA's library plays. What the kubelet has recorded, the environment of containers and the annotations must agree,
# also after agent and kubelet were killed and GPUs were lost. Takes three to four minutes.
# Usage: parts_test.sh [--pods N] [--rest SECONDS] [--kills N] [--restarts N]
#   --pods N         at once, from 8 to 100; 16 without it
#   --rest SECONDS   also measure the memory and CPU time of the agent at rest, for so long
#   --restarts N     also restart the kubelet so often, and print how long the agent took to be registered again
#   --kills N        also kill the agent so often, at random moments of the starts of 20 pods at a time; 200 take a quarter of an
#                    hour
#
# Needs root and what scripts/install-packages --real-node installs; where that is not to be had, GRUS_REAL_NODE=off leaves
# this test out.
# shellcheck disable=SC2317,SC2329 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../../.." || exit

cluster=tests/cluster/cluster
pods=16 rest=0 kills=0 restarts=0
while (($#)); do
  case $1:${2:-} in
    --pods:[1-9]*) pods=$2 ;;
    --rest:[1-9]*) rest=$2 ;;
    --kills:[1-9]*) kills=$2 ;;
    --restarts:[1-9]*) restarts=$2 ;;
    *) echo "usage: parts_test.sh [--pods N] [--rest SECONDS] [--kills N] [--restarts N]" >&2; exit 2 ;;
  esac
  shift 2
done
((pods >= 8 && pods <= 100)) || { echo "parts_test.sh: --pods $pods: expected 8 to 100" >&2; exit 2; }

# shellcheck source=tests/kit/check.sh
source tests/kit/check.sh
if [[ ${GRUS_REAL_NODE:-} == off ]]; then
  echo "NOT RUN: GRUS_REAL_NODE is off, so nothing is known of parts of GPUs on a real kubelet"
  finish
fi

GRUS_STATE=$(mktemp -d "${TMPDIR:-/tmp}/grus-parts-test.XXXXXX")
export GRUS_STATE
clean_up() {
  stop_agent
  "$cluster" down --all >/dev/null 2>&1
  rm -rf -- "$GRUS_STATE"
}
# shellcheck source=tests/nodeagent/parts/node.sh
source tests/nodeagent/parts/node.sh
trap clean_up EXIT

start_node
play
set_mode alnair
start_agent
need "the node offers GiB and percent of its GPUs" within 20 offers 312 800

# --- what fits
kube create -f - >/dev/null <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: sample, labels: {app: parts}}
spec:
  nodeSelector: {grus.test/real: "true"}
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: localhost/box:1
    imagePullPolicy: Never
    command: [/bin/sh, -c, "echo parts $NVIDIA_VISIBLE_DEVICES $ALNAIR_VGPU_MEMORY $ALNAIR_VGPU_COMPUTE $GRUS_GPU_MEMORY_MIB; exec sleep 100001"]
    resources: {limits: {alnair/vgpu-memory: 2, alnair/vgpu-compute: 50}}
YAML
check "a pod with the limits of the original's sample runs" runs sample
check "$pods pods at once, of different amounts" at_once "$pods"
check "the node says which GPUs it has" equals "8 312 $(for i in {0..7}; do gpu "$i"; done | sed 's/GPU/,GPU/2g')" \
  kube get node real-0 -o 'jsonpath={.metadata.annotations.ai\.centaurus\.io/physical-gpu-count} {.metadata.annotations.ai\.centaurus\.io/vitual-gpu-count} {.metadata.annotations.ai\.centaurus\.io/physical-gpu-uuids}'
inventory() { kube get node real-0 -o 'jsonpath={.metadata.annotations.sharing\.ai\.centauruscloud\.io/inventory}' | jq -c 'map([.uuid, .memoryMiB, .milli, .mode])'; }
check "and how large they are" equals \
  "[$(for i in {0..7}; do printf '["%s",%d,1000,"alnair"],' "$(gpu "$i")" $((gpu_sizes[i] * 1024 - 500)); done | sed 's/,$//')]" inventory
there=$((1 + pods + pods / 5))
check "record, environment and annotations of $there containers agree" within $((20 + pods)) agree "$there"
not_merged() { fails grep 'conflicting setting' "$GRUS_STATE/$cluster_name/logs/kubelet.log"; }
check "the kubelet had no two answers to merge" not_merged
at_rest() { # Of the agent, while these pods run.
  local process before after
  process=/proc/$(on_node cat "$work/agent.pid")
  cpu() { on_node sh -c 'cat "$0"/task/*/schedstat' "$process" | awk '{sum += $1} END {printf "%.0f", sum}'; }   # ns
  before=$(cpu)
  sleep "$rest"
  after=$(cpu)
  echo "note  at rest, with $pods pods: $(on_node grep VmRSS "$process/status" | tr -s ' \t' ' '), $(((after - before) / 1000000)) ms of CPU in $rest s"
}
((rest == 0)) || at_rest

# --- what they use
check "metrics of $there containers say what the kubelet has recorded" within 15 metrics_agree
check "of as many" equals "$there" eval 'part_metrics | grep -c "^part_milli "'
gpu_of() { kube get pod "$1" -o 'jsonpath={.metadata.annotations.sharing\.ai\.centauruscloud\.io/gpus}' | jq -r '.main.gpu'; }
own=$(gpu_of sample)
need "the sample's annotation names a GPU" prints '^GPU-.*[0-7]$' echo "$own"
other=$(((${own: -1} + 1) % 8))
process=$(on_node pgrep -xf "sleep 100001")
play "process gpu=${own: -1} pid=$process memory=$((3 << 30)) sm=20
process gpu=$other pid=$process memory=$((1 << 30))"
uses() { part_metrics | grep -E '^part(_memory_used|_sm|less)[^ ]* sample '; }
check "what its process uses of its part, and of a GPU of which it has none" within 20 equals \
  "$(sort <<<"part_memory_used_bytes sample main $own $((3 << 30))
part_sm_ratio sample main $own 0.20
partless_memory_bytes sample main $(gpu "$other") $((1 << 30))
partless_processes sample main $(gpu "$other") 1")" uses
play
check "and no more once the process has left" within 20 equals "part_memory_used_bytes sample main $own 0
part_sm_ratio sample main $own 0" uses

# --- what somebody writes into the annotations
kube annotate pod sample --overwrite ai.centaurus.io/alnair-gpu-id=lie sharing.ai.centauruscloud.io/gpus- \
  sharing.ai.centauruscloud.io/enforcement=Strict >/dev/null
check "annotations that somebody changed or removed come back" within $((15 + pods)) agree "$there"

# --- the kubelet dies
containers_of >"$work/containers"
registered_since() { (($(grep -c 'the kubelet knows a device plugin' "$agent_log") >= $1 + 2)); }   # Both resources.
registered=$(grep -c 'the kubelet knows a device plugin' "$agent_log")
need "the kubelet is killed and starts again" restart_kubelet
check "it knows the agent again" within 30 registered_since "$registered"
check "the node offers as much as before" within 20 offers 312 800
check "containers have not noticed" equals "$(<"$work/containers")" containers_of
check "and hold what they had" within $((10 + pods)) agree "$there"
# From the kubelet's new socket to the last resource of which it knows the agent, in ms.
restart_once() {
  local socket told
  registered=$(grep -c 'the kubelet knows a device plugin' "$agent_log")
  restart_kubelet >/dev/null && within 30 registered_since "$registered" || return 1
  socket=$(on_node stat -c %.3Y /var/lib/kubelet/device-plugins/kubelet.sock)
  told=$(grep 'the kubelet knows a device plugin' "$agent_log" | tail -n 1 | grep -oE '[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z')
  took+=("$(awk -v from="$socket" -v to="$(date -d "$told" +%s.%3N)" 'BEGIN {printf "%.0f", 1000 * (to - from)}')")
}
restart_often() {
  local i
  took=()
  for ((i = 0; i < restarts; ++i)); do restart_once || return 1; done
  printf '%s\n' "${took[@]}" | sort -n | awk '{all[NR] = $1} END {print "note  registered again after " NR " restarts: median " all[int((NR + 1) / 2)] " ms, slowest " all[NR] " ms"}'
}
if ((restarts > 0)); then
  restart_often
  check "each time it knew the agent again" equals "$restarts" echo "${#took[@]}"
  check "containers have not noticed" equals "$(<"$work/containers")" containers_of
  check "and hold what they had" within $((10 + pods)) agree "$there"
fi
part later "$(alnair 3 7)" | kube create -f - >/dev/null
check "a new pod runs" runs later
check "and holds parts that nobody has" within $((20 + pods)) agree $((there + 1))
check "all of them end" remove --all

# --- the agent dies while pods start
part keep "$(alnair 60 10)" | kube create -f - >/dev/null
check "a pod runs" runs keep
check "with its annotations" within 15 agree 1
containers_of >"$work/containers"
running() { kube get pods -l app=parts --field-selector status.phase=Running -o name | wc -l; }
more_than() { (($(running) > $1)); }
sets=(2:3:5 3:1:10 4:2:20 5:1:5)
create_set() { # create_set NUMBER:GIB:PERCENT: five such pods.
  local set gib percent
  IFS=: read -r set gib percent <<<"$1"
  copies "set$set" 5 "$(alnair "$gib" "$percent")" | kube create -f - >/dev/null
}
for set in "${sets[@]}"; do
  now=$(running)
  create_set "$set"
  check "pods start" within 40 more_than "$now"
  stop_agent KILL
  start_agent
done
check "the agent was killed 4 times: 20 pods and the one before agree" within 60 agree 21
echo "note  the kubelet refused $(kube get pods -l app=parts --field-selector status.phase=Failed -o name | wc -l) pods in between"
check "the pod before has not noticed" equals "$(<"$work/containers")" eval "containers_of | grep ^keep"
kube delete replicasets --all >/dev/null
check "they end" remove -l set
is_killed() { # is_killed TIMES: and has started again each time.
  local i
  for ((i = 0; i < $1; ++i)); do
    sleep "$((RANDOM % 2)).$((RANDOM % 10))"   # The moment that the kill finds is to be another each time.
    within 10 test -s "$work/agent.pid"
    stop_agent KILL
    start_agent
  done
}
for ((killed = 0; killed < kills; killed += 20)); do
  for set in "${sets[@]}"; do create_set "$set"; done
  is_killed $((kills - killed < 20 ? kills - killed : 20))
  check "the agent was killed $killed times and 20 more: 20 pods and the one before agree" within 120 agree 21
  kube delete replicasets --all >/dev/null
  check "they end" remove -l set
done
((kills == 0)) || check "the pod before has not noticed $kills kills" equals "$(<"$work/containers")" eval "containers_of | grep ^keep"

# --- a GPU dies
sick=$(gpu_of keep)
need "its annotation names a GPU" prints '^GPU-.*[04]$' echo "$sick"
index=${sick: -1}
other=$((4 - index))   # The other one of this size.
play "xid gpu=$index code=79 id=1"
check "a GPU with a fatal error is not offered" within 20 offers 233 700
check "its container stays" equals "$(<"$work/containers")" containers_of
part avoids "$(alnair 60 10)" | kube create -f - >/dev/null
check "a new pod runs" runs avoids
check "on another GPU" within 15 equals "$(gpu "$other")" gpu_of avoids
check "all agrees" within 10 agree 2
part full "$(alnair 60 10)" | kube create -f - >/dev/null
check "where no GPU has room, the pod says so" within 20 says pod/full 'GPU.* has \(no \)\?60 alnair/vgpu-memory free' .status.message
play "gpu $other error=15"
check "a lost GPU is not offered either" within 20 offers 154 600
check "no container ends" equals 2 running
play
check "it counts again once it is back" within 40 offers 233 700
check "all agrees as before" within 10 agree 2
stop_agent
start_agent
check "the next agent knows of the error" within 20 grep -q 'a GPU is sick since before' "$agent_log"
check "and does not offer that one" within 20 offers 233 700
stop_agent
on_node rm /var/run/cdi/grus-gpu-faults
start_agent
check "without the file it counts again" within 20 offers 312 800
check "they end" remove --all

# --- packed or spread: one after the other, as the kubelet does not say for which of equal ones it asks
placed() { # placed NAME [pack | spread]: it runs, and its annotation names its GPU.
  part "$1" "$(alnair 4 10)" '' "${2:+\"sharing.ai.centauruscloud.io/placement\": \"$2\"}" | kube create -f - >/dev/null
  runs "$1" && within 15 prints '^GPU-' gpu_of "$1"
}
gpus_of() { for one in "$@"; do gpu_of "$one"; done | sort -u | wc -l; }   # How many these pods lie on.
# lands NAME [pack | spread] COUNT POD...: so that it and these pods lie on COUNT GPUs. Not at the first try where the kubelet
# has heard of it before the agent has, which then knows no wish.
lands() {
  local try
  for try in 1 2 3; do
    placed "$1" "$2" || return 1
    [[ $(gpus_of "$1" "${@:4}") != "$3" ]] || return 0
    remove "$1"
  done
  return 1
}
check "a pod" placed pack-1 pack
check "one that packs lies on its GPU" lands pack-2 pack 1 pack-1
check "so does one that says nothing" lands says-nothing '' 1 pack-1
check "one that spreads has a GPU of its own" lands spread-1 spread 2 pack-1
check "so has another" lands spread-2 spread 3 pack-1 spread-1
check "one more that packs takes the fullest" lands pack-3 pack 1 pack-1
stop_agent
kube label node real-0 sharing.ai.centauruscloud.io/placement=spread >/dev/null
start_agent
check "on a node that spreads, a pod that says nothing has a GPU of its own" lands node-1 '' 4 pack-1 spread-1 spread-2
check "so has another" lands node-2 '' 5 pack-1 spread-1 spread-2 node-1
check "unless it packs" lands own pack 1 pack-1
kube label node real-0 sharing.ai.centauruscloud.io/placement- >/dev/null
check "they end" remove --all

# --- bad input
{
  part lonely '"alnair/vgpu-compute": 30'
  part large "$(alnair 100 10)"
  part huge "$(alnair 313 10)"
  part nothing "$(alnair 0 0)"
  part sees-all "$(alnair 2 5)" '"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]'
  part liar "$(alnair 2 5)" '' '"ai.centaurus.io/alnair-gpu-id": "lie", "sharing.ai.centauruscloud.io/gpus": "lie"'
} | kube create -f - >/dev/null
check "compute without memory: kubectl describe says what is wrong" within 20 \
  prints 'asks for 30 alnair/vgpu-compute without memory; add limits of alnair/vgpu-memory (GiB)' kube describe pod lonely
check "and it does not start" within 10 is pod/lonely CreateContainerConfigError '.status.containerStatuses[0].state.waiting.reason'
check "more than the node has: it waits" within 10 says pod/huge 'Insufficient alnair/vgpu-memory' '.status.conditions[0].message'
check "more than a GPU holds: the pod fails" within 10 is pod/large UnexpectedAdmissionError .status.reason
check "and says how much there is" says pod/large '100 alnair/vgpu-memory: a GPU of this node has 79' .status.message
check "who asks for 0 runs" runs nothing
check "and gets nothing" equals "parts 0" kube logs nothing
check "annotations written by their user are replaced" within 15 prints "^GPU-.*_[0-9]*,GPU-.*_[0-9]*$" \
  kube get pod liar -o 'jsonpath={.metadata.annotations.ai\.centaurus\.io/alnair-gpu-id}'
check "also ours" prints '"milli":50,"memoryMiB":2048' kube get pod liar -o 'jsonpath={.metadata.annotations.sharing\.ai\.centauruscloud\.io/gpus}'
check "a pod's own NVIDIA_VISIBLE_DEVICES wins in its container" equals "parts all 2 5 2048" kube logs sees-all
check "the annotation says what it was given, and that the pod sees more" within 15 prints '"gpu":"GPU-.*"milli":50.*"overridden":true' \
  kube get pod sees-all -o 'jsonpath={.metadata.annotations.sharing\.ai\.centauruscloud\.io/gpus}'
check "they end" remove --all

# --- the label of the node
stop_agent
set_mode mili
gpu_count=2
play
start_agent
check "a label that is no mode: the log says what is expected" within 15 prints 'is \\"mili\\": expected milli, alnair, gpushare or dra' tail -n 5 "$agent_log"
check "nothing is offered" within 20 offers 0 0
stop_agent
set_mode milli
start_agent
check "the node offers thousandths" within 20 is node/real-0 2k '.status.allocatable.ai\.centauruscloud\.io/gpu-milli'
part old '"ai.centauruscloud.io/gpu-milli": 300' | kube create -f - >/dev/null
check "a pod has 300 of them" runs old
old_gpu=$(kube logs old | cut -d' ' -f2)
check "of a GPU of the node" test "$old_gpu" = "$(gpu 0)" -o "$old_gpu" = "$(gpu 1)"
stop_agent
set_mode alnair
start_agent
check "the node offers GiB instead" within 20 offers 118 200
check "the pod still runs" equals 1 running
part beside "$(alnair 10 60)" | kube create -f - >/dev/null
check "a pod of the new way" runs beside
check "has another GPU" within 15 equals "$(gpu $((1 - ${old_gpu: -1})))" gpu_of beside
part refused "$(alnair 10 60)" | kube create -f - >/dev/null
check "the GPU of the old one is given to nobody" within 20 is pod/refused UnexpectedAdmissionError .status.reason
check "and the pod is told who has it" says pod/refused "$old_gpu is held by default/old, container main, by ai.centauruscloud.io/gpu-milli" .status.message
check "once it has ended" remove old refused
part after "$(alnair 10 60)" | kube create -f - >/dev/null
check "a pod runs" runs after
check "on the GPU that it had" within 15 equals "$old_gpu" gpu_of after
check "they end" remove --all

# --- whole GPUs beside parts
stop_agent
set_mode milli
gpu_count=4
play
start_agent
check "the node offers thousandths of four GPUs" within 20 is node/real-0 4k '.status.allocatable.ai\.centauruscloud\.io/gpu-milli'
milli small 300 | kube create -f - >/dev/null
check "a pod has 300 of them" runs small
check "of one GPU" within 15 milli_agrees small 1
mapfile -t others < <(for i in 0 1 2 3; do gpu "$i"; echo; done | grep -v "^$(gpu_of small)$")
planned() { printf '"sharing.ai.centauruscloud.io/planned-gpu": "%s"' "$1"; }
milli pair 2000 "$(planned "${others[2]},${others[1]}"), \"sharing.ai.centauruscloud.io/memory-mib\": \"5000\"" | kube create -f - >/dev/null
check "a pod that asks for 2000 runs" runs pair
check "record, environment, annotation and metrics say that it has two whole GPUs" within 15 milli_agrees pair 2
check "the planned ones, by their index" equals "${others[1]},${others[2]}" eval 'kube logs pair | cut -d" " -f2'
check "the kubelet gave each id once" equals "1 2300" ids_given ai.centauruscloud.io/gpu-milli
milli odd 1500 | kube create -f - >/dev/null
check "1500 are no whole GPUs: the pod fails" within 20 is pod/odd UnexpectedAdmissionError .status.reason
check "and says what to ask for" says pod/odd '1500 ai.centauruscloud.io/gpu-milli: ask for 1 to 1000, or for a multiple of 1000: whole GPUs' .status.message
containers_of >"$work/containers"
stop_agent KILL
start_agent
check "the agent was killed: the next says the same of the whole GPUs" within 30 milli_agrees pair 2
check "and of the part" milli_agrees small 1
check "no container has noticed" equals "$(<"$work/containers")" containers_of
check "the pair ends" remove pair odd
milli aside 300 "$(planned "${others[0]}")" | kube create -f - >/dev/null
check "a part of a second GPU is given" runs aside
check "as it was planned" within 15 equals "${others[0]}" gpu_of aside
milli three 3000 | kube create -f - >/dev/null
check "where two are free, 3000 are refused" within 20 is pod/three UnexpectedAdmissionError .status.reason
check "and the pod is told what is free" says pod/three "3 whole GPUs, and of those that work nobody has a part of 2: .*$(gpu_of small) has 700" .status.message
check "the second part ends" remove aside three
milli warm 3000 | after_init 300 | kube create -f - >/dev/null
check "a pod whose init container had a part gets three whole GPUs" runs warm
check "all agrees" within 15 milli_agrees warm 3
check "it ends" remove warm
milli cold 300 | after_init 2000 | kube create -f - >/dev/null
check "of the GPUs of an init container the kubelet gives any ids to the next: a pod that asks for less then fails" within 20 \
  is pod/cold UnexpectedAdmissionError .status.reason
check "and is told why" says pod/cold '300 ai.centauruscloud.io/gpu-milli: the devices lie on several GPUs' .status.message
check "it ends" remove cold
milli both 200 '' 3000 | kube create -f - >/dev/null
check "a pod with a container on a part and one on three whole GPUs runs" runs both
check "all agrees on both" within 15 milli_agrees both 4
check "the part lies beside the other" equals "$(gpu_of small)" gpu_of both
check "each id was given once" equals "1 3500" ids_given ai.centauruscloud.io/gpu-milli
check "they end" remove --all
milli all 4000 | kube create -f - >/dev/null
check "a pod gets the whole node" runs all
check "all of it" within 15 milli_agrees all 4
check "it ends" remove all

# --- gpushare's pods
stop_agent
set_mode gpushare
start_agent
capacity='.status.capacity.aliyun\.com/gpu-mem} {.status.capacity.aliyun\.com/gpu-count'
check "the node offers gpushare's GiB, and how many GPUs it has" within 20 is node/real-0 '156 4' "$capacity"
kube cordon real-0 >/dev/null
for i in 0 1 2 3; do # The one that was assumed first is the last that the kubelet takes.
  shared "twin$i" 4 "$(assumed "$i" $((9 - i)))"
done | kube create -f - >/dev/null
kube uncordon real-0 >/dev/null
check "four equal pods at once run" runs twin0 twin1 twin2 twin3
for i in 0 1 2 3; do
  check "twin$i has the GPU that the extender assumed, and the original's variables" within 10 \
    equals "share $(gpu "$i") $i 4 4 $((gpu_sizes[i] - 1))" kube logs "twin$i"
  check "and its annotations say so" within 15 equals "$i 4 $((gpu_sizes[i] - 1)) true" gpushare_notes "twin$i"
done
{
  shared alone 5 ''
  shared liar 15 "$(assumed 3 1)"
  shared large 70 "$(assumed 1 2)"
} | kube create -f - >/dev/null
check "pods run without an extender, and with an index where there is no room" runs alone liar large
check "the one without has the fullest GPU" within 15 equals "3 5 15 true" gpushare_notes alone
check "whoever writes an index without room gets another GPU" within 15 prints '^[12] 15 [0-9]* true$' gpushare_notes liar
check "each GPU has its own size" within 15 equals "0 70 79 true" gpushare_notes large
shared pair 6 '' 7 | kube create -f - >/dev/null
check "a pod with two GPU containers runs" runs pair
pair_gpus() { kube get pod pair -o 'jsonpath={.metadata.annotations.sharing\.ai\.centauruscloud\.io/gpus}' | jq -r 'map(.gpu) | unique | length'; }
check "on one GPU" within 15 equals 1 pair_gpus
check "its annotation counts both" within 15 prints '^[12] 13 [0-9]* true$' gpushare_notes pair
check "no GiB is given twice" equals "1 119" ids_given aliyun.com/gpu-mem
part counts '"aliyun.com/gpu-count": 1' | kube create -f - >/dev/null
check "who asks for the count alone is told why it does not start" within 20 \
  prints 'asks for aliyun.com/gpu-count, which only says how many GPUs a node has, without aliyun.com/gpu-mem' kube describe pod counts
containers_of >"$work/containers"
stop_agent KILL
gpushare_offers() { is node/real-0 "$1" '.status.allocatable.aliyun\.com/gpu-mem'; }
check "without the agent nothing more is offered" within 20 gpushare_offers 0
shared waits 2 '' | kube create -f - >/dev/null
check "a pod waits for it" within 10 says pod/waits 'Insufficient aliyun.com/gpu-mem' '.status.conditions[0].message'
start_agent
check "once it is back, the pod runs" runs waits
kube delete pod waits >/dev/null
check "agent started again: no container has noticed" equals "$(<"$work/containers")" containers_of
shared later 4 "$(assumed 3 1)" | kube create -f - >/dev/null
check "and pods come where they are assumed" within 40 equals "3 4 15 true" gpushare_notes later
on_node kill "$(<"$work/agent.pid")"
wait "$agent"
check "the agent ends well" equals 0 echo $?
agent=
finish
