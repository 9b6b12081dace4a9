#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Limits inside real containers: grus-node-agent on a real node with a GPU of a fake driver, which programs in the containers
# use through libgrus-cuda.so. What they get, what they are refused, and what happens when library, agent, container and
# label go. Takes a minute and a half.
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
  echo "NOT RUN: GRUS_REAL_NODE is off, so nothing is known of limits in real containers"
  finish
fi

GRUS_STATE=$(mktemp -d "${TMPDIR:-/tmp}/grus-limits-test.XXXXXX")
export GRUS_STATE
clean_up() {
  stop_agent
  end_gpus
  "$cluster" down --all >/dev/null 2>&1
  rm -rf -- "$GRUS_STATE"
}
# shellcheck source=tests/nodeagent/parts/node.sh
source tests/nodeagent/parts/node.sh
# shellcheck source=tests/nodeagent/limits/cuda_node.sh
source tests/nodeagent/limits/cuda_node.sh
trap clean_up EXIT
library=$work/image/libgrus-cuda.so
agent_arguments=(--cuda-library="$library" --cuda-folder="$work/cuda-library" --cuda-shares="$work/cuda-shares")

offers_milli() { is node/real-0 "$1" '.status.allocatable.ai\.centauruscloud\.io/gpu-milli'; }
enforcement() { kube get pod "$1" -o 'jsonpath={.metadata.annotations.sharing\.ai\.centauruscloud\.io/enforcement}'; }
uses() { # uses NAME THOUSANDTHS MIB [ANNOTATIONS]: a pod whose program has so much of its part, as long as it runs.
  # shellcheck disable=SC2016 # For the shell in the container.
  local tell='busybox mkfifo /in; (printf "start\nalloc %s\n" $((MIB << 20)); exec sleep 100000) >/in & exec fake-cuda-client </in'
  part "$1" "\"ai.centauruscloud.io/gpu-milli\": $2" '' "${4:-}" | with_cuda | jq -c --arg tell "$tell" --arg mib "$3" \
    '.spec.containers[0].command[2] = $tell | .spec.containers[0].env += [{name: "MIB", value: $mib}]'
}
# asks POD COMMAND...: a program in the pod gives each to the driver; its last answer.
asks() {
  local pod=$1
  shift
  printf '%s\n' start "$@" | kube exec -i "$pod" -- fake-cuda-client | tail -n 1
}
mib() { echo $(($1 << 20)); }
metric() { # metric NAME POD
  local port
  port=$(sed -n 's/.*metrics_port=\([0-9]*\).*/\1/p' "$agent_log" | tail -n 1)
  on_node busybox wget -qO- "http://127.0.0.1:$port/metrics" | sed -nE "s/^$1\{.*pod=\"$2\".*\} //p"
}

mkdir -p "$work/root" "$work/image"
add_cuda_programs "$work/root"
start_node
make_gpus 80
need "a GPU of 80 GiB" test "${#cuda_gpus[@]}" = 1
gpu() { echo "${cuda_gpus[$1]}"; }
gpu_count=1
play
kube create -f crds/generated/nodepools.ai.centauruscloud.io.yaml >/dev/null
set_mode milli
kube label node real-0 sharing.ai.centauruscloud.io/enforcement=cooperative >/dev/null
start_agent

# --- without the library
check "without the library the log says why" within 30 prints 'cannot be put on the node.*there is no such file' cat "$agent_log"
check "the kubelet knows the plugin" within 40 is node/real-0 1k '.status.capacity.ai\.centauruscloud\.io/gpu-milli'
check "and no part is offered" within 30 offers_milli 0

# --- with it
cp "$bin/cuda/libgrus-cuda.so" "$library"
need "once it is there, the GPU is offered" within 30 offers_milli 1k
uses third 300 20000 | kube create -f - >/dev/null
need "a pod runs" runs third
check "and says how it is held" within 30 equals Cooperative enforcement third
# 300 thousandths of what the driver leaves of 80 GiB.
check "a program sees its part as all that there is" equals "ok $(mib 24426)" asks third total
has_its_own() { (($(used_of_gpu 0) >= 20000)); }
check "its program has what it asked for" within 30 has_its_own
check "the agent counts what it has" within 30 equals "$(mib 20000)" eval 'printf "%.0f" "$(metric grus_cuda_memory_bytes third)"'
check "another program of it is refused what the first one has left no room for" equals "error 2" asks third "alloc $(mib 5000)"
check "and gets what is left" prints '^ok 0x' asks third "alloc $(mib 4000)"
check "a shell that uses no CUDA is none the wiser" equals "hello" kube exec third -- sh -c 'echo hello'
check "what the container may have cannot be written there" fails kube exec third -- sh -c 'echo >/run/grus/cuda/limits'
check "nor the library, nor who loads it" fails kube exec third -- sh -c 'echo >/run/grus/cuda/libgrus-cuda.so || echo >/etc/ld.so.preload'
refused() { (($(metric grus_cuda_refusals_total third) >= 1)); }
check "the agent counts that one was refused" within 30 refused

uses other 500 40000 | kube create -f - >/dev/null
check "a second pod of the GPU runs" runs other
check "with a part of its own" equals "ok $(mib 40710)" asks other total
check "of which the first pod takes nothing" equals "error 2" asks third "alloc $(mib 5000)"
containers_of >"$work/containers"

# --- the agent goes and comes
stop_agent KILL
check "without an agent it is held as before" equals "error 2" asks third "alloc $(mib 5000)"
start_agent
check "the next one offers what was offered" within 30 offers_milli 1k
check "and knows what it has" within 30 equals "$(mib 20000)" eval 'printf "%.0f" "$(metric grus_cuda_memory_bytes third)"'
check "no container has noticed" equals "$(<"$work/containers")" containers_of
check "it is held as before" equals "error 2" asks third "alloc $(mib 5000)"

# --- a program goes round its limits
escape() {
  local pid
  pid=$(on_node pgrep -xf fake-cuda-client | head -n 1)
  play "process gpu=0 pid=$pid memory=$((60 << 30)) sm=50"
}
check "a process of a container has far more by the driver than by its account" escape
check "the log tells of it" within 40 prints 'programs in it go round their limits' cat "$agent_log"
play

# --- programs end
# Once what the driver said before is forgotten.
check "a program has more, and is killed" within 40 prints '^ok 0x' asks third "alloc $(mib 4000)" crash
check "a program that was killed leaves room" within 40 prints '^ok 0x' asks third "alloc $(mib 4000)"
is_again() { equals "1 Running" kube get pod third -o 'jsonpath={.status.containerStatuses[0].restartCount} {.status.phase}'; }
check "the container's own program ends" kube exec third -- sh -c 'kill $(busybox pidof sleep)'
check "and the container starts again" within 60 is_again
check "with its part" within 30 equals "ok $(mib 24426)" asks third total
check "of which its program has again what it asks for" within 30 equals "error 2" asks third "alloc $(mib 5000)"

check "they end" remove third other

# --- memory beside a part
allow() { kube apply -f - <<<"{\"apiVersion\": \"ai.centauruscloud.io/v1alpha1\", \"kind\": \"NodePool\", \"metadata\": {\"name\": \"shared\"}, \"spec\": {\"nodeSelector\": {\"kubernetes.io/hostname\": \"real-0\"}, \"pagedMemoryPercent\": $1}}"; }
messages() { kube get events --field-selector "involvedObject.name=$1" -o 'jsonpath={range .items[*]}{.message}{"\n"}{end}'; }
uses paged 300 30000 '"sharing.ai.centauruscloud.io/paged-mib": "30000"' | kube create -f - >/dev/null
check "a pod that asks for memory beside its part, which no pool allows, waits and says why" within 60 prints \
  'it asks for 30000 MiB of over-subscribed memory .*no NodePool selects this node' messages paged
allow 150 >/dev/null
check "once its NodePool allows it, it runs" within 120 runs paged
check "a program of it sees both as one" equals "ok $(mib 54426)" asks paged total
check "what finds no room in its part lies beside it" within 30 equals "$(mib 30000)" eval 'printf "%.0f" "$(metric grus_cuda_paged_bytes paged)"'
check "and no more of it than the pod asked for" equals "error 2" asks paged "alloc $(mib 25000)"
uses neighbour 700 56900 | kube create -f - >/dev/null
check "its neighbour runs" runs neighbour
has_its_part() { equals "$(mib 56900)" eval 'printf "%.0f" "$(metric grus_cuda_memory_bytes neighbour)"'; }
check "and has all of its own part, though both together are more than the GPU has" within 30 has_its_part
check "none of which the first one had to give back" equals "$(mib 30000)" eval 'printf "%.0f" "$(metric grus_cuda_paged_bytes paged)"'

# --- the label goes
kube label node real-0 sharing.ai.centauruscloud.io/enforcement- >/dev/null
check "what runs is held as before" equals "error 2" asks neighbour "alloc $(mib 5000)"
check "they end" remove paged neighbour
is_unlabelled() { # New parts are given without, once the agent has seen it.
  kube delete pod plain --ignore-not-found --timeout=60s
  uses plain 100 1 | kube create -f - && runs plain && equals "ok $(mib $((80 << 10)))" asks plain total
}
check "a new pod is given its part without a limit" within 90 is_unlabelled
check "and says so" within 30 equals None enforcement plain
finish
