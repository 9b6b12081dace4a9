#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# clientlib stands alone: it is installed to a folder of its own, the two examples are built against it with
# find_package(), and run against a real control plane. It also takes the manifests of the other examples, and
# reads speeds from the logs of those of trial. Takes three quarters of a minute.
# shellcheck disable=SC2317 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

cluster=tests/cluster/cluster
folder=$(mktemp -d "${TMPDIR:-/tmp}/grus-examples-test.XXXXXX")
export GRUS_STATE=$folder/state
mkdir "$GRUS_STATE"
cluster_name=examples-$$
pids=()
clean_up() {
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  "$cluster" down --all >/dev/null 2>&1
  rm -rf -- "$folder"
}
trap clean_up EXIT

# shellcheck source=tests/kit/check.sh
source tests/kit/check.sh
kube() { "$cluster" kubectl --name "$cluster_name" -- "$@"; }

build_example() {
  cmake -S "examples/$1" -B "$folder/$1" -DCMAKE_PREFIX_PATH="$folder/prefix" -DCMAKE_BUILD_TYPE=Release &&
    cmake --build "$folder/$1"
}
is_short() { (($(wc -l <"examples/$1") < 80)); }

# appears PATTERN FILE: a line of FILE matches, within 30 s.
appears() { grep -q -m 1 -e "$1" <(timeout 30 tail -n +1 -f "$2"); }

check "clientlib installs" cmake --install build/release --prefix "$folder/prefix"
for example in pod-watcher tiny-operator; do
  check "$example builds against what was installed" build_example "$example"
  check "$example has fewer than 80 lines" is_short "$example/main.cc"
done

check "a cluster starts" "$cluster" up --name "$cluster_name"
check "with a node" "$cluster" nodes 1 --name "$cluster_name"
KUBECONFIG=$("$cluster" kubeconfig --name "$cluster_name")
export KUBECONFIG

check "it takes our CRDs" kube apply --server-side -f crds/generated
check "and serves them" kube wait --for=condition=Established --timeout=30s -f crds/generated
resources=$(cd crds/generated && printf '%s,' *.yaml)
resources=${resources//.yaml,/,}
check "and names them to its clients" within 30 kube get "${resources%,}"
for story in elastic-bert gang trial queues; do
  check "the manifests of $story are taken" kube apply --dry-run=server -f "examples/$story"
done
for story in horovod-keras horovod-torch torchrun-gang; do   # They run in tests/training, where there is a real node.
  check "the manifests of $story are taken" kube apply --dry-run=server -k "examples/$story"
  check "the training of $story has fewer than 80 lines" is_short "$story/train.py"
done

"$folder/pod-watcher/pod-watcher" default >"$folder/watcher.log" 2>&1 &
pids+=($!)
check "namespace default is ready for pods" kube wait serviceaccount/default --for=create --timeout=30s
check "a pod is created" kube run one --image=example.com/one
check "pod-watcher tells that it runs" appears '^default/one  *Running$' "$folder/watcher.log"
check "the pod is deleted" kube delete pod one --wait=false
check "pod-watcher tells that it is gone" appears '^default/one  *gone$' "$folder/watcher.log"

"$folder/tiny-operator/tiny-operator" >"$folder/operator.log" 2>&1 &
pids+=($!)
check "a ConfigMap asks for a copy" kube create configmap source --from-literal=a=1
check "by its label" kube label configmap source example.com/mirror-to=copy
check "tiny-operator makes a copy" kube wait configmap/copy --for=create --timeout=30s
check "of what it holds" kube wait configmap/copy --for='jsonpath={.data.a}=1' --timeout=30s
check "the ConfigMap is edited" kube patch configmap source --type merge -p '{"data":{"a":"2"}}'
check "the copy follows" kube wait configmap/copy --for='jsonpath={.data.a}=2' --timeout=30s
check "the ConfigMap is deleted" kube delete configmap source
check "the copy goes with it" kube wait configmap/copy --for=delete --timeout=60s

for i in 0 1; do
  kill -TERM "${pids[$i]}"
  wait "${pids[$i]}"
  ended=$?
  check "SIGTERM ends $([[ $i == 0 ]] && echo pod-watcher || echo tiny-operator) with 0" test "$ended" = 0
done

# One trial of each TrialJob, from the logs that make demo-trial plays.
check "a namespace for trials" kube create namespace trials
check "the manifests of trial are applied" kube apply --namespace trials -f examples/trial
one='{"spec":{"space":{"gpuTypes":null,"gpuCounts":[2],"batchSizes":[64]}}}'
for job in mnist resnet; do
  check "$job is cut to one trial" kube patch trialjob "$job" --namespace trials --type merge -p "$one"
done
scripts/demo-trainer "$cluster_name" >"$folder/trainer.log" 2>&1 &
pids+=($!)
build/release/bin/grus-manager --kubeconfig "$KUBECONFIG" --metrics-address 127.0.0.1:0 --health-address 127.0.0.1:0 \
  >"$folder/manager.log" 2>&1 &
pids+=($!)
for job in mnist resnet; do
  before=$failed
  check "the speed of $job is read from its log" \
    kube wait trialjob "$job" --namespace trials --for=condition=Complete --timeout=240s
  ((failed == before)) || { kube get trialjob "$job" --namespace trials -o yaml; tail -n 20 "$folder/manager.log" "$folder/trainer.log"; }
done
kill -TERM "${pids[@]:2}"
wait "${pids[@]:2}"

finish
