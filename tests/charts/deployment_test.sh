#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The chart's Deployment with the image of scripts/image, on a real node: how soon it is there, what it may do, how much
# memory 400 jobs cost it, and that nothing is lost or doubled when leaders die. Takes about three minutes.
# Usage: deployment_test.sh [--rounds N] [--record FOLDER]
#   --rounds N        N leaders die, one a minute, 25 at most: the record does not outlive a watch, which the API server ends
#                     after half an hour; without it two, as soon as the work allows
#   --record FOLDER   keeps the record of all changes while leaders die
#
# Needs root and what scripts/install-packages --real-node installs; where that is not to be had, GRUS_REAL_NODE=off leaves
# this test out.
# shellcheck disable=SC2317,SC2329 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

helm=tests/charts/helm
cluster=tests/cluster/cluster
cluster_name=deployment
rounds=2 pause=0 record=
while (($#)); do
  case $1:${2:-} in
    --rounds:[1-9]*) rounds=$2 pause=60 ;;
    --record:?*) record=$2 ;;
    *) echo "usage: deployment_test.sh [--rounds N] [--record FOLDER]" >&2; exit 2 ;;
  esac
  shift 2
done
GRUS_STATE=$(mktemp -d "${TMPDIR:-/tmp}/grus-deployment-test.XXXXXX")
export GRUS_STATE
clean_up() {
  "$cluster" down --all >/dev/null 2>&1
  rm -rf -- "$GRUS_STATE"
}
trap clean_up EXIT

# shellcheck source=tests/kit/check.sh
source tests/kit/check.sh
# shellcheck source=tests/charts/deployment.sh
source tests/charts/deployment.sh
# shellcheck source=tests/charts/takeovers.sh
source tests/charts/takeovers.sh

if [[ ${GRUS_REAL_NODE:-} == off ]]; then
  echo "NOT RUN: GRUS_REAL_NODE is off, so nothing is known of the Deployment on a real node"
  finish
fi
since() { awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN {printf "%.1f", to - from}'; }   # Seconds.

need "helm is there" "$helm" version
need "the image" env -u IMAGE scripts/image "$GRUS_STATE/image.tar"
need "a cluster with a real node" "$cluster" up --name "$cluster_name" --real-node --real-gpus 0
KUBECONFIG=$("$cluster" kubeconfig --name "$cluster_name") || finish
export KUBECONFIG
need "the image is on the node" "$cluster" load-image "$GRUS_STATE/image.tar" --name "$cluster_name"
kube taint node real-0 grus.test/real=:NoSchedule >/dev/null
kube create namespace grus-system >/dev/null
kube label namespace grus-system pod-security.kubernetes.io/enforce=restricted >/dev/null

# --- installed, with the chart's own values
began=$EPOCHREALTIME
need "helm install" "$helm" install grus charts/grus --namespace grus-system --values tests/charts/real_node.yaml
need "both replicas are ready" two_are_ready
echo "      after $(since "$began") s"
one_leads() { # The lease names one of the two pods, and that one says so.
  local pod who log leads=0
  who=$(leader)
  for pod in $(manager_pods); do
    log=$(kube -n grus-system logs "$pod") || return 1
    [[ $log == *'"became leader"'* ]] || continue
    leads=$((leads + 1))
    [[ $pod == "$who" ]] || { echo "$pod says that it leads, the lease says $who"; return 1; }
  done
  ((leads == 1)) || { echo "$leads of the pods lead"; return 1; }
}
check "exactly one leads" within 10 one_leads

upgrade() { "$helm" upgrade grus charts/grus --namespace grus-system --values tests/charts/real_node.yaml "$@"; }
check "helm test finds nothing missing" prints 'nothing is missing' "$helm" test grus --namespace grus-system --logs
need "without the right to create Secrets" kube patch clusterrole grus-system:grus --type=json -p \
  "$(kube get clusterrole grus-system:grus -o json |
    awk '/"apiGroups"/ {rule++} /"secrets"/ {print rule - 1; exit}' |
    sed 's/.*/[{"op": "remove", "path": "\/rules\/&"}]/')"
check "it names it" prints 'missing: the right to create secrets (ssh keys of jobs)' "$helm" test grus --namespace grus-system --logs
need "given back" upgrade

# --- what a replica is on the node
pod=$(leader)
status() { awk -v name="$1:" '$1 == name {print $2}' "/proc/$(process_of "$pod")/status"; }
check "it is user 65532" equals 65532 status Uid
check "without capabilities, not even any to gain" equals 0000000000000000 status CapBnd
check "it can gain no privileges" equals 1 status NoNewPrivs
check "its system calls are filtered" equals 2 status Seccomp
root_options() { awk '$5 == "/" {print $6}' "/proc/$(process_of "$pod")/mountinfo"; }
check "its root is read-only" prints '^ro\(,\|$\)' root_options
check "there is no shell in it" prints 'executable file not found' kube -n grus-system exec "$pod" -- sh -c true

# --- grus-node-agent, which needs the PIDs of its node
need "the namespace allows hostPID" kube label namespace grus-system pod-security.kubernetes.io/enforce=privileged --overwrite
need "with the agent" upgrade --set 'nodeAgent.enabled=true,nodeAgent.tolerations[0].operator=Exists'
check "it runs on the node" kube -n grus-system rollout status daemonset/grus-node-agent --timeout=60s
agent=$(kube -n grus-system get pods -l app.kubernetes.io/name=grus-node-agent -o 'jsonpath={.items[*].metadata.name}')
agent_said() { kube -n grus-system logs "$agent" | grep -ic -e "$1"; }
check "where there is no driver, it says so" within 20 equals 1 agent_said 'this node has no GPU driver, and so no GPUs'
agent_serves() { kube get --raw "/api/v1/namespaces/grus-system/pods/$agent:8080/proxy$1"; }
check "it is healthy" within 10 equals ok agent_serves /healthz
check "and serves metrics" prints '^process_resident_memory_bytes' agent_serves /metrics
check "it sees the node's processes" equals "$(on_node readlink /proc/1/ns/pid || echo none)" readlink "/proc/$(process_of "$agent")/ns/pid"
pod=$agent
check "it is user 65532" equals 65532 status Uid
check "without capabilities" equals 0000000000000000 status CapBnd
check "it goes on: it starts once, and says of the driver once" equals 1 agent_said 'this node has no GPU driver'
check "nothing was forbidden to it" equals 0 eval "agent_said forbidden || true"
need "without it" upgrade
need "as restricted as before" kube label namespace grus-system pod-security.kubernetes.io/enforce=restricted --overwrite

# --- it works: the README's first job, the example's gang, on 32 GPUs
nodes() { "$cluster" nodes "$@" --gpus 8 --name "$cluster_name"; }
check "four nodes of 8 GPUs" nodes 4 --prefix demo --label pool=demo
kube create namespace work >/dev/null
first_yaml() { awk '/^```$/ {if (on) exit} on; /^```yaml$/ {on = 1}' README.md; }
has() { kube -n work wait "$1" --for=jsonpath="$2"="$3" --timeout=60s; }   # OBJECT PATH VALUE
launcher_ends() { kube -n work annotate pod -l "$job_label=$1,$role_label=launcher" grus.test/outcome=succeed; }   # JOB
check "a gang of 8 pods with 4 GPUs each" kube -n work apply -f examples/gang/gang.yaml
check "it runs" has podgroup.scheduling.x-k8s.io/resnet '{.status.phase}' Running
check "with all pods ready" has statefulset/resnet '{.status.readyReplicas}' 8
check "the README's job" eval 'first_yaml | kube -n work apply -f -'
check "waits while the gang has all GPUs" within 30 prints Waiting kube -n work get ehj bert
kube -n work delete -f examples/gang/gang.yaml >/dev/null
check "then it trains with the 16 workers that it may have" has ehj/bert '{.status.replicas.ready}' 16
check "and runs" has ehj/bert '{.status.phase}' Running
check "its launcher ends" launcher_ends bert
check "it succeeds" has ehj/bert '{.status.phase}' Succeeded
check "its workers go" kube -n work wait pods -l "$job_label=bert,$role_label=worker" --for=delete --timeout=30s
kube -n work delete ehj bert >/dev/null

# --- 400 jobs at once
check "120 nodes more" nodes 120 --prefix many --label pool=many
kube create namespace storm >/dev/null
storm() {
  local quarter names making=()
  for quarter in 0 1 2 3; do
    mapfile -t names < <(seq -f 'storm-%g' $((quarter * 100 + 1)) $((quarter * 100 + 100)))
    small_jobs storm "${names[@]}" &
    making+=($!)
  done
  wait "${making[@]}"   # Its status is the last one's; the next check counts.
}
began=$EPOCHREALTIME
check "400 jobs" storm
check "all are there" equals 400 eval 'kube -n storm get ehj -o name | wc -l'
check "all run" kube -n storm wait ehj --all --for='jsonpath={.status.phase}=Running' --timeout=400s
echo "      after $(since "$began") s"
memory_is_small() { # Of each replica, so also of the one that only watches.
  local pod now peak resident hits kills seen=0 state=0
  for pod in $(manager_pods); do
    read -r now peak resident hits kills < <(memory_of "$pod") || return 1
    echo "$pod$([[ $pod != "$(leader)" ]] || echo ", leader"): working set $((now / 1024)) MiB, peak $((peak / 1024)) MiB," \
      "resident at most $((resident / 1024)) MiB, $hits times at the limit, $kills kills"
    ((peak < 40960 && hits == 0 && kills == 0)) || state=1
    seen=$((seen + 1))
  done
  return $((state || seen != 2))
}
memory_is_small | sed 's/^/      /'
check "memory stays below 40 MiB" memory_is_small

# --- leaders die
demo_job=elastic-bert
wanted[work/$demo_job]=Running workers[work/$demo_job]=any
for i in {1..400}; do wanted[storm/storm-$i]=Running workers[storm/storm-$i]=2; done
start_record
need "all changes are recorded" within 30 record_is_on
example_job() { sed -E 's/^( +)(  )containers:/\1\2nodeSelector: {pool: demo}\n&/' "examples/$demo_job/job.yaml"; }
check "the demo's job" eval 'example_job | kube -n work create -f -'
check "it trains on what there is" within 120 demo_has 32
kills=(SIGKILL forced gently)
for ((n = 1; n <= rounds; ++n)); do
  next=$((SECONDS + pause))
  round "$n" "${kills[(n - 1) % 3]}"
  ((n == rounds || SECONDS >= next)) || sleep $((next - SECONDS))
done

# --- the end
for key in "${!wanted[@]}"; do [[ $key != work/* || ${wanted[$key]} != Running ]] || end_job "$key" Succeeded; done
check "all jobs come to their ends" within 120 jobs_are_as_wanted work
check "their workers are gone" within 30 equals "" kube -n work get pods -l "$role_label=worker" -o name
check "the 400 train as before" jobs_are_as_wanted storm
check "the record has no gap" record_has_no_gap
echo "      ${#wanted[@]} jobs, $(cat -- "$record"/{jobs,pods} | wc -l) changes of their children"
check "each has what it needs once, no GPU is given twice" equals "" broken_rules
memory_is_small | sed 's/^/      /'
check "memory stayed below 40 MiB" memory_is_small
no_refusal() { # Each log is read whole first: a grep that ends a pipe early would count as none found.
  local pod log state=0
  for pod in $(manager_pods); do
    log=$(kube -n grus-system logs "$pod") || return 1
    ! grep -i -m 3 forbidden <<<"$log" || state=1
  done
  return "$state"
}
check "nothing was forbidden to it" no_refusal
kill "${watches[@]}"

finish
