#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Records what a stock kube-scheduler and grus's extender say to each other over mutual TLS, on a real control plane:
# into names/ and nodes/ beside this script, as README.md says.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../../../.." || exit

name=exchanges
# shellcheck source=tests/charts/cluster.sh
source tests/charts/cluster.sh
here=tests/controllers/extender/exchanges
milli=ai.centauruscloud.io/gpu-milli

scheduler_pid='' proxy_pid=''
end_one() { # end_one PID
  [[ -z $1 ]] || { kill -KILL "$1" && wait "$1"; } 2>/dev/null
}
end_all() {
  end_one "$scheduler_pid"
  end_one "$proxy_pid"
  clean_up
}
trap end_all EXIT

certs=$GRUS_STATE/certs
mkdir -p -- "$certs"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ca -keyout "$certs/ca.key" \
  -addext keyUsage=critical,keyCertSign -out "$certs/ca.crt" 2>/dev/null
certificate() { # certificate NAME COMMON-NAME
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" -keyout "$certs/$1.key" 2>/dev/null |
    openssl x509 -req -days 2 -CA "$certs/ca.crt" -CAkey "$certs/ca.key" -CAcreateserial -out "$certs/$1.crt" \
      -extfile <(printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n') 2>/dev/null
}
certificate server grus && certificate scheduler system:kube-scheduler
need "certificates" test -s "$certs/scheduler.crt"

start_cluster 0 grus-system team-a
need "the kinds" kube apply --server-side -f crds/generated
scheduler=$(readlink -f "/proc/$(jq -r '.. | objects | select(.name? == "kube-scheduler") | .pid' "$GRUS_STATE/$cluster_name/state.json")/exe")
need "a scheduler" test -x "$scheduler"
need "a class for urgent pods" kube create priorityclass high --value=1000

# Two nodes of two GPUs each.
for node in node-0 node-1; do
  inventory=$(jq -cn --arg node "$node" \
    '[range(2) | {uuid: "GPU-\($node)-\(.)", memoryMiB: 80000, milli: 1000, mode: "milli"}]')
  need "shared GPUs on $node" kube annotate node "$node" "sharing.ai.centauruscloud.io/inventory=$inventory"
  need "thousandths on $node" kube patch node "$node" --subresource status --type merge -p \
    "{\"status\": {\"capacity\": {\"$milli\": \"2000\"}, \"allocatable\": {\"$milli\": \"2000\"}}}"
done
# held NAME NODE GPU MILLI: a pod that has a part since before.
held() {
  jq -n --arg name "$1" --arg node "$2" --arg gpu "GPU-$2-$3" --arg milli "$4" --arg resource "$milli" '
    {apiVersion: "v1", kind: "Pod", metadata: {name: $name, annotations: {"sharing.ai.centauruscloud.io/planned-gpu": $gpu}},
     spec: {nodeName: $node, terminationGracePeriodSeconds: 0, automountServiceAccountToken: false,
       containers: [{name: "main", image: "example.com/notebook:1", resources: {limits: {($resource): $milli}}}]}}' |
    kube -n team-a create -f - >/dev/null
}
# asking NAME SCHEDULER MILLI [PRIORITY-CLASS]
asking() {
  jq -n --arg name "$1" --arg scheduler "$2" --arg milli "$3" --arg class "${4:-}" --arg resource "$milli" '
    {apiVersion: "v1", kind: "Pod", metadata: {name: $name},
     spec: ({schedulerName: $scheduler, terminationGracePeriodSeconds: 0, automountServiceAccountToken: false,
       containers: [{name: "main", image: "example.com/notebook:1", resources: {limits: {($resource): $milli}}}]} +
       if $class == "" then {} else {priorityClassName: $class} end)}' | kube -n team-a create -f - >/dev/null
}
port=$(free_port)
start_manager --controllers=gang,extender --extender-address="127.0.0.1:$port" --extender-cert-file="$certs/server.crt" \
  --extender-key-file="$certs/server.key" --extender-client-ca-file="$certs/ca.crt" \
  --extender-clients=system:kube-scheduler --health-address=127.0.0.1:0
is_ready() { curl -fsS "http://127.0.0.1:$(port health)/readyz"; }
need "the manager is ready" within 60 is_ready

phase() { kube -n team-a get pod "$1" -o 'jsonpath={.status.phase}'; }
is_recorded() { ls "$out" | grep -q -e "-$1.answer$"; }
uids() { kube get pods,nodes -A -o json | jq -c '[.items[] | {key: .metadata.uid, value: .metadata.name}] | from_entries'; }
record() { # record FOLDER CACHE-CAPABLE: all calls of a scheduler for a few pods.
  out=$GRUS_STATE/$1
  mkdir -p -- "$out"
  local proxy_port names
  proxy_port=$(free_port)
  python3 "$here/record.py" proxy "$proxy_port" "$port" "$certs" "$out" &
  proxy_pid=$!
  cat >"$GRUS_STATE/scheduler.yaml" <<YAML
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: $KUBECONFIG}
leaderElection: {leaderElect: false}
profiles: [{schedulerName: $1}]
extenders:
  - urlPrefix: https://127.0.0.1:$proxy_port/scheduler
    filterVerb: filter
    prioritizeVerb: prioritize
    preemptVerb: preempt
    bindVerb: bind
    weight: 10
    enableHTTPS: true
    tlsConfig: {certFile: $certs/scheduler.crt, keyFile: $certs/scheduler.key, caFile: $certs/ca.crt}
    nodeCacheCapable: $2
    managedResources: [{name: $milli}]
YAML
  "$scheduler" --config="$GRUS_STATE/scheduler.yaml" --secure-port=0 >"$GRUS_STATE/scheduler.log" 2>&1 &
  scheduler_pid=$!
  held x node-0 0 800 && held y node-0 1 750 && held z node-1 0 900 && held w node-1 1 700
  for pod in x y z w; do need "pod $pod runs" within 60 equals Running phase "$pod"; done
  # Both nodes have a GPU with room; then one; then none; then only if others end.
  asking small "$1" 100
  need "small runs" within 60 equals Running phase small
  asking part "$1" 260
  need "part runs" within 60 equals Running phase part
  asking refused "$1" 280
  need "refused was asked about" within 60 is_recorded filter-refused
  names=$(uids)
  asking urgent "$1" 900 high
  need "urgent was asked about" within 60 is_recorded preempt-urgent
  names=$(jq -cn --argjson before "$names" --argjson after "$(uids)" '$before + $after')
  end_one "$scheduler_pid"
  end_one "$proxy_pid"
  scheduler_pid='' proxy_pid=''
  # What came after the others had to end depends on which did first.
  find "$out" -name '*-urgent.*' ! -name '*-preempt-urgent.*' -delete
  python3 "$here/record.py" normalise "$out" "$names"
  rm -rf -- "${here:?}/$1"
  cp -r -- "$out" "$here/$1"
  kube -n team-a delete pods --all --wait=true >/dev/null
}
record names true
record nodes false
"$scheduler" --version
finish
