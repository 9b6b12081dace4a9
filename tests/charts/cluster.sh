# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For tests of the chart to source: a helm, a control plane of their own, and a manager that runs beside it. $name is
# the test's.
: "${name:?}"

helm=tests/charts/helm
cluster=tests/cluster/cluster
chart=charts/grus
manager=$PWD/build/release/bin/grus-manager
GRUS_STATE=$(mktemp -d "${TMPDIR:-/tmp}/grus-$name-test.XXXXXX")
export GRUS_STATE
cluster_name=$name-$$
manager_pid=
clean_up() {
  [[ -z $manager_pid ]] || { kill -KILL "$manager_pid" && wait "$manager_pid"; } 2>/dev/null
  "$cluster" down --all >/dev/null 2>&1
  rm -rf -- "$GRUS_STATE"
}
trap clean_up EXIT

# shellcheck source=tests/kit/check.sh
source tests/kit/check.sh

kube() { "$cluster" kubectl --name "$cluster_name" -- "$@"; }
render() { "$helm" template grus "$chart" --namespace grus-system "$@"; }
# start_cluster GPUS NAMESPACE...: two nodes with this many GPUs, and these namespaces.
start_cluster() {
  need "a cluster" "$cluster" up --name "$cluster_name"
  need "two nodes of $1 GPUs" "$cluster" nodes 2 --gpus "$1" --name "$cluster_name"
  KUBECONFIG=$("$cluster" kubeconfig --name "$cluster_name") || finish
  export KUBECONFIG
  local namespace
  for namespace in "${@:2}"; do kube create namespace "$namespace" >/dev/null; done
}
start_manager() { # start_manager FLAG...: as the cluster's administrator; its log is $log.
  log=$GRUS_STATE/manager.log
  "$manager" --kubeconfig "$KUBECONFIG" --log-format=json --metrics-address=127.0.0.1:0 "$@" >"$log" 2>&1 &
  manager_pid=$!
}
port() { # port metrics | health: of the manager whose log is $log.
  sed -nE "s/.*\"$1_port\":\"?([0-9]+).*/\1/p" "$log" | head -n 1
}
free_port() { # One that nobody listens on now.
  local port
  for port in $(shuf -i 20000-30000 -n 50); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
}
