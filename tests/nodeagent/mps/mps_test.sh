#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# MPS on a real kubelet: grus-node-agent on a real node with two GPUs of a fake driver, and fake_mps_control in the place of
# NVIDIA's daemon. What containers get, what pods say, and what happens when daemon, agent and label go. Takes a minute.
#
# Needs root and what scripts/install-packages --real-node installs; where that is not to be had, GRUS_REAL_NODE=off leaves
# this test out.
# shellcheck disable=SC2317,SC2329 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../../.." || exit

cluster=tests/cluster/cluster
# shellcheck source=tests/kit/check.sh
source tests/kit/check.sh
if [[ ${GRUS_REAL_NODE:-} == off ]]; then
  echo "NOT RUN: GRUS_REAL_NODE is off, so nothing is known of MPS on a real kubelet"
  finish
fi

GRUS_STATE=$(mktemp -d "${TMPDIR:-/tmp}/grus-mps-test.XXXXXX")
export GRUS_STATE
clean_up() {
  stop_agent
  local one
  for one in "$mps"/*/daemon; do [[ ! -e $one ]] || on_node kill -KILL "$(cut -d' ' -f1 "$one")"; done
  "$cluster" down --all >/dev/null 2>&1
  rm -rf -- "$GRUS_STATE"
}
# shellcheck source=tests/nodeagent/parts/node.sh
source tests/nodeagent/parts/node.sh
mps=$work/mps program=$work/nvidia-cuda-mps-control
trap clean_up EXIT
# shellcheck disable=SC2034 # For start_agent.
agent_arguments=(--mps-control="$program" --mps-folder="$mps" --mps-shm="$work/shm")

daemon_of() { cut -d' ' -f1 "$mps/$(gpu "$1")/daemon"; }   # daemon_of INDEX: its PID.
daemon_runs() { on_node kill -0 "$(daemon_of "$1")"; }
offers_milli() { is node/real-0 "$1" '.status.allocatable.ai\.centauruscloud\.io/gpu-milli'; }
enforcement() { kube get pod "$1" -o 'jsonpath={.metadata.annotations.sharing\.ai\.centauruscloud\.io/enforcement}'; }
milli() { # milli NAME THOUSANDTHS [ANNOTATIONS]: a pod that tells what it has of MPS.
  # shellcheck disable=SC2016 # For the shell in the container.
  local tell='echo mps ${CUDA_MPS_PIPE_DIRECTORY:-none} ${CUDA_MPS_ACTIVE_THREAD_PERCENTAGE:-none} ${CUDA_MPS_PINNED_DEVICE_MEM_LIMIT:-none}
    test ! -p /run/grus/mps/control || echo sees the daemon; echo I >/dev/shm/$0; exec sleep 100000'
  part "$1" "\"ai.centauruscloud.io/gpu-milli\": $2" '' "${3:-}" | jq -c --arg tell "$tell" \
    '.spec.containers[0].command[2] = $tell | .spec.containers[0].command += [.metadata.name]'
}

start_node
mkdir -m 1777 "$work/shm"
gpu_count=2
play
set_mode milli
kube label node real-0 sharing.ai.centauruscloud.io/enforcement=mps >/dev/null
start_agent

# --- without the program
check "without the program the log says what to do" within 30 prints 'its program is not there.*bring it into' cat "$agent_log"
check "the kubelet knows the plugin" within 20 is node/real-0 2k '.status.capacity.ai\.centauruscloud\.io/gpu-milli'
check "and no part is offered" within 10 offers_milli 0
milli third 300 | kube create -f - >/dev/null
check "a pod waits" within 20 says pod/third 'Insufficient ai.centauruscloud.io/gpu-milli' '.status.conditions[0].message'

# --- with it
cp tests/nodeagent/mps/fake_mps_control "$program"
check "once it is there, the GPUs are offered" within 30 offers_milli 2k
check "the pod runs" runs third
check "with the limits of its part, and sees its daemon" within 10 \
  equals "mps /run/grus/mps 30 0=24426M"$'\n'"sees the daemon" kube logs third
check "and says so" within 15 equals MPS enforcement third
check "its /dev/shm is the one of all" test -s "$work/shm/third"
milli small 155 '"sharing.ai.centauruscloud.io/memory-mib": "5000"' | kube create -f - >/dev/null
check "one with less compute, and memory as it says, runs" runs small
check "with the limits of its part" within 10 equals "mps /run/grus/mps 15 0=5000M"$'\n'"sees the daemon" kube logs small
check "and says so" within 15 equals MPS enforcement small
used=$(kube get pod third -o 'jsonpath={.metadata.annotations.sharing\.ai\.centauruscloud\.io/gpus}' | jq -r '.main.gpu[-1:]')
need "both have the same GPU" prints "$(gpu "$used")" kube get pod small -o 'jsonpath={.metadata.annotations}'
containers_of >"$work/containers"

# --- a program fails, the daemon dies, the agent dies
fault() { on_node sh -c 'echo fault | CUDA_MPS_PIPE_DIRECTORY="$0" "$1"' "$mps/$(gpu "$used")/pipe" "$program"; }
check "a program fails" fault
for pod in third small; do
  check "the pod $pod is told" within 20 prints 'Warning *MpsClientFault .*MPS reports a fault of a program' kube describe pod "$pod"
done
before=$(daemon_of "$used")
on_node kill -KILL "$before"
is_new() { [[ $(daemon_of "$used") != "$before" ]] && daemon_runs "$used"; }
check "a daemon that was killed comes back" within 20 is_new
check "all is offered again" within 20 offers_milli 2k
before=$(daemon_of "$used")
stop_agent KILL
check "agent killed: the daemon goes on" daemon_runs "$used"
start_agent
check "the next agent offers all" within 30 offers_milli 2k
check "with the same daemon" equals "$before" daemon_of "$used"
check "no container has noticed" equals "$(<"$work/containers")" containers_of

# --- the label goes
stop_agent
kube label node real-0 sharing.ai.centauruscloud.io/enforcement- >/dev/null
start_agent
gone() { [[ ! -e $mps/$(gpu "$1")/daemon ]]; }
check "without the label, the daemon that nobody uses ends" within 40 gone $((1 - used))
check "the other one goes on" equals "$before" daemon_of "$used"
check "the node offers parts" within 20 offers_milli 2k
milli plain 100 | kube create -f - >/dev/null
check "a new pod runs" runs plain
check "without MPS" within 10 equals "mps none none none" kube logs plain
check "and says so" within 15 equals None enforcement plain
check "the pods before say what they have" equals "MPS MPS" eval 'echo "$(enforcement third) $(enforcement small)"'
check "they end" remove third small
check "then their daemon ends, too" within 40 gone "$used"
check "and the pod without it runs on" prints '^plain .' containers_of
check "it ends" remove plain

# --- memory and compute by themselves
stop_agent
set_mode alnair
kube label node real-0 sharing.ai.centauruscloud.io/enforcement=mps >/dev/null
start_agent
check "the node offers GiB and percent under MPS" within 30 offers 118 200
milli both 0 | jq -c ".spec.containers[0].resources.limits = {$(alnair 2 50)}" | kube create -f - >/dev/null
check "a pod with both runs" runs both
check "with the limits of both" within 10 equals "mps /run/grus/mps 50 0=2048M"$'\n'"sees the daemon" kube logs both
check "and says so" within 15 equals MPS enforcement both
kubelet_log=$GRUS_STATE/$cluster_name/logs/kubelet.log
not_merged() { test -s "$kubelet_log" && fails grep 'conflicting setting' "$kubelet_log"; }
check "the kubelet had no two answers to merge" not_merged
finish
