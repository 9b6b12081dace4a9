#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two grus-managers behind one Service, a stock kube-scheduler that asks them about pods with parts of GPUs, and the one
# that leads killed again and again while pods come and go, on a real control plane. All revisions of all pods are
# recorded: no GPU may have more than it has at any of them, and no pod may be forgotten. Takes about three minutes.
# shellcheck disable=SC2317 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

name=failover
# shellcheck source=tests/charts/cluster.sh
source tests/charts/cluster.sh

declare -A pids=()   # What runs beside the cluster, by name.
end_one() { { kill -KILL "${pids[$1]}" && wait "${pids[$1]}"; } 2>/dev/null; unset "pids[$1]"; }
end_all() {
  local one
  for one in "${!pids[@]}"; do end_one "$one"; done
  clean_up
}
trap end_all EXIT

mem=aliyun.com/gpu-mem milli=ai.centauruscloud.io/gpu-milli
readonly rounds=4 mem_size=4 milli_size=300
readonly mem_nodes=12 milli_nodes=4
readonly mem_cards=(10 18 10 18)        # GiB: room for 2, 4, 2 and 4 pods, for two less than the sum says.
readonly mem_places=$((mem_nodes * 12))
readonly milli_gpus=3                   # Each has room for 3 pods.
readonly milli_places=$((milli_nodes * milli_gpus * 3))

# --- the cluster
certs=$GRUS_STATE/certs
# shellcheck source=tests/charts/certificates.sh
source tests/charts/certificates.sh
authority ca && certificate ca server grus && certificate ca scheduler system:kube-scheduler
need "certificates" test -s "$certs/scheduler.crt"
need "a program that leads connections as a Service does" env CGO_ENABLED=0 GOWORK=off GOFLAGS= \
  go build -o "$GRUS_STATE/service_road" tests/charts/service_road/main.go

need "a cluster" "$cluster" up --name "$cluster_name"
need "nodes" "$cluster" nodes $((mem_nodes + milli_nodes)) --gpus 0 --name "$cluster_name"
KUBECONFIG=$("$cluster" kubeconfig --name "$cluster_name") || finish
export KUBECONFIG
for namespace in grus-system team; do kube create namespace "$namespace" >/dev/null; done
need "the kinds" kube apply --server-side -f crds/generated
scheduler=$(readlink -f "/proc/$(jq -r '.. | objects | select(.name? == "kube-scheduler") | .pid' "$GRUS_STATE/$cluster_name/state.json")/exe")
need "a scheduler" test -x "$scheduler"
room=$GRUS_STATE/room   # A line for each GPU: its name, and what it has.
offer() { # offer NODE RESOURCE MODE ROOM...: of each GPU.
  local inventory sum=0 i=0 one
  inventory=$(jq -cn --arg node "$1" --arg mode "$3" '[$ARGS.positional | to_entries[] | {uuid: "GPU-\($node)-\(.key)",
    memoryMiB: (if $mode == "milli" then 80000 else .value * 1024 end), milli: 1000, mode: $mode}]' --jsonargs "${@:4}")
  for one in "${@:4}"; do sum=$((sum + one)); echo "GPU-$1-$((i++)) $one" >>"$room"; done
  kube annotate --overwrite node "$1" "sharing.ai.centauruscloud.io/inventory=$inventory" &&
    kube patch node "$1" --subresource status --type merge -p \
      "{\"status\": {\"capacity\": {\"$2\": \"$sum\"}, \"allocatable\": {\"$2\": \"$sum\"}}}"
}
offer_all() {
  local i gpu thousandths=()
  for ((gpu = 0; gpu < milli_gpus; ++gpu)); do thousandths+=(1000); done
  for ((i = 0; i < mem_nodes; ++i)); do offer "node-$i" "$mem" gpushare "${mem_cards[@]}" || return; done
  for ((; i < mem_nodes + milli_nodes; ++i)); do offer "node-$i" "$milli" milli "${thousandths[@]}" || return; done
}
need "shared GPUs" offer_all

# --- two managers, and a Service that leads to one. Addresses of pods stand for the processes of this machine.
ports=()
for ((i = 0; i < 2; ++i)); do ports+=("$(free_port)"); done
starts=0
log_of() { echo "$GRUS_STATE/manager-$1.log"; }
run_manager() { # run_manager 0|1
  [[ ! -e $(log_of "$1") ]] || mv -- "$(log_of "$1")" "$(log_of "$1").$((++starts))"
  "$manager" --kubeconfig "$KUBECONFIG" --log-format=json --metrics-address=127.0.0.1:0 --health-address=127.0.0.1:0 \
    --controllers=gang,extender --leader-elect --leader-elect-namespace=grus-system \
    --extender-address="127.0.0.1:${ports[$1]}" --extender-cert-file="$certs/server.crt" \
    --extender-key-file="$certs/server.key" --extender-client-ca-file="$certs/ca.crt" \
    --extender-clients=system:kube-scheduler --extender-service=grus-extender \
    --extender-pod-address="10.0.0.$(($1 + 1))" >"$(log_of "$1")" 2>&1 &
  pids[manager-$1]=$!
}
port_of() { local log; log=$(log_of "$1"); port "$2"; }
is_ready() { curl -fsS "http://127.0.0.1:$(port_of "$1" health)/readyz"; }
leads() { curl -fsS "http://127.0.0.1:$(port_of "$1" metrics)/metrics" | grep -q '^leader_election_master_status.* 1$'; }
endpoint() { cat -- "$GRUS_STATE/endpoint"; }
follow_slice() { # Writes where the Service leads into a file, a change at a time.
  local port
  while read -r port; do
    echo "127.0.0.1:$port" >"$GRUS_STATE/endpoint.new" && mv -- "$GRUS_STATE/endpoint.new" "$GRUS_STATE/endpoint"
  done < <(exec "$cluster" kubectl --name "$cluster_name" -- -n grus-system get endpointslices --watch \
    -l kubernetes.io/service-name=grus-extender -o 'jsonpath={.ports[0].port}{"\n"}')
}
run_manager 0
need "a manager leads" within 60 leads 0
run_manager 1
for i in 0 1; do need "manager $i is ready" within 60 is_ready "$i"; done
service=127.0.0.1:$(free_port)
follow_slice &
pids[slice]=$!
need "the Service leads to the one that leads" within 60 equals "127.0.0.1:${ports[0]}" endpoint
"$GRUS_STATE/service_road" "$service" "$GRUS_STATE/endpoint" &
pids[road]=$!

cat >"$GRUS_STATE/scheduler.yaml" <<YAML
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: $KUBECONFIG}
leaderElection: {leaderElect: false}
profiles: [{schedulerName: with-grus}]
extenders:
  - urlPrefix: https://$service/scheduler
    filterVerb: filter
    prioritizeVerb: prioritize
    bindVerb: bind
    weight: 10
    enableHTTPS: true
    tlsConfig: {certFile: $certs/scheduler.crt, keyFile: $certs/scheduler.key, caFile: $certs/ca.crt}
    httpTimeout: 5s
    nodeCacheCapable: true
    ignorable: false
    managedResources: [{name: $mem}, {name: $milli}]
YAML
"$scheduler" --config="$GRUS_STATE/scheduler.yaml" --secure-port=0 >"$GRUS_STATE/scheduler.log" 2>&1 &
pids[scheduler]=$!

# --- what a manager answers that does not lead
call() { # call MANAGER VERB BODY: the answer and its status.
  curl -sS -w ' %{http_code}' --cacert "$certs/ca.crt" --cert "$certs/scheduler.crt" --key "$certs/scheduler.key" \
    --data "$3" "https://127.0.0.1:${ports[$1]}/scheduler/$2" | tr -d '\n'
}
question=$(jq -cn --arg mem "$mem" '{Pod: {metadata: {name: "asked", namespace: "team", uid: "1"}, spec: {containers: [
  {name: "main", resources: {requests: {($mem): "19"}}}]}}, NodeNames: ["node-0", "node-1"]}')
for i in 0 1; do
  check "manager $i says which nodes have no room" prints '19 aliyun.com/gpu-mem on one GPU: 18 are free at most.* 200$' call "$i" filter "$question"
  check "and which suits" prints '"Host":"node-0".* 200$' call "$i" prioritize "$question"
done
check "the one that does not lead binds nothing" prints 'does not lead 503$' call 1 bind '{}'

# --- the record: a line for each revision of each pod
record=$GRUS_STATE/record
record_from() { # record_from REVISION: a watch that ends, as of a reader that is too slow, is taken up where it was.
  local from=$1
  while [[ $from =~ ^[0-9]+$ ]]; do
    kube get --raw "/api/v1/namespaces/team/pods?watch=1&resourceVersion=$from" 2>>"$record.errors" |
      jq --unbuffered -r '[.type, (.object | .metadata.resourceVersion, .metadata.uid, .metadata.name, .status.phase,
        .spec.nodeName, (.metadata.annotations | .["sharing.ai.centauruscloud.io/planned-gpu"],
        .ALIYUN_COM_GPU_MEM_IDX, .amount, .kind))] | map(. // "<none>") | join(" ")' >>"$record" 2>>"$record.errors"
    from=$(awk -v from="$from" '{from = $2} END {print from}' "$record")
  done
}
record_from "$(kube get --raw /api/v1/namespaces/team/pods | jq -r .metadata.resourceVersion)" &
pids[record]=$!
made_mem=0 made_milli=0 ended_mem=0 ended_milli=0
creators=()
create() { # create KIND COUNT: pods that ask for parts of a GPU, from now on, one after another.
  local -n made=made_$1 resource=$1 size=${1}_size
  local pods=$GRUS_STATE/pods-$1-$made
  jq -cn --arg kind "$1" --argjson from "$made" --argjson count "$2" --arg resource "$resource" --arg size "$size" '
    range($from; $from + $count) | {apiVersion: "v1", kind: "Pod",
      metadata: {name: "\($kind)-\(.)", annotations: {amount: $size, kind: $kind}},
      spec: {schedulerName: "with-grus", terminationGracePeriodSeconds: 0, containers: [
        {name: "main", image: "example.com/notebook:1", resources: {limits: {($resource): $size}}}]}}' >"$pods"
  made=$((made + $2))
  kube -n team create -f "$pods" >/dev/null &
  creators+=($!)
}
await_creators() { # Not for check(), whose shell is not their parent.
  local pid status=0
  for pid in "${creators[@]}"; do wait "$pid" || status=1; done
  creators=()
  return "$status"
}
end_some() { # end_some KIND COUNT: of those that are bound, so many at most.
  local -n ended=ended_$1
  local pods=()
  mapfile -t pods < <(kube -n team get pods --no-headers -o custom-columns=:.metadata.name,:.spec.nodeName |
    awk -v kind="$1-" -v count="$2" 'index($1, kind) == 1 && $2 != "<none>" && n++ < count {print $1}')
  ended=$((ended + ${#pods[@]}))
  kube -n team delete pods --wait=false "${pods[@]}" >/dev/null
}
ever_bound() { awk '$6 != "<none>" && !seen[$3]++ {++n} END {print n + 0}' "$record"; }
bound_since() { (($(ever_bound) >= $1)); }
bound() { # KIND COUNT, of all kinds.
  kube -n team get pods --no-headers -o custom-columns=:.metadata.annotations.kind,:.spec.nodeName |
    awk '$2 != "<none>" {++n[$1]} END {print n["mem"] + 0, n["milli"] + 0}'
}
least() { echo $(($1 < $2 ? $1 : $2)); }
as_room_allows() {
  echo "$(least $((made_mem - ended_mem)) "$mem_places") $(least $((made_milli - ended_milli)) "$milli_places")"
}

need "a first pod" within 60 kube -n team run sentinel --image=example.com/notebook:1 --annotations=kind=none --annotations=amount=0
need "revisions are recorded" within 60 grep -q 'sentinel Running' "$record"
kube -n team delete pod sentinel >/dev/null

# broken_rules: what the record shows that must never be, a line each.
broken_rules() {
  awk '
    function rule(text) { print "at revision " $2 ": " text }
    FILENAME ~ /room$/ { has[$1] = $2; next }
    $2 !~ /^[0-9]+$/ || $2 <= revision { rule($1 ", after revision " revision) }
    {
      revision = $2
      if ($3 in gpu_of) { used[gpu_of[$3]] -= $9; delete gpu_of[$3] }
      if ($1 == "DELETED" || $5 == "Succeeded" || $5 == "Failed" || $6 == "<none>" || $10 == "none") next
      number = $7
      sub(/.*-/, "", number)
      if (!($7 in has) || $7 != "GPU-" $6 "-" number) { rule($4 " is bound to " $6 ", and has the GPU " $7); next }
      if ($10 == "mem" && $8 != number) rule($4 " has GPU " number ", and is told " $8)
      if ($3 in first && first[$3] != $7) rule($4 " had " first[$3] ", and has " $7)
      first[$3] = gpu_of[$3] = $7
      used[$7] += $9
      if (used[$7] > has[$7]) rule(used[$7] " of " has[$7] " of " $7 " are given, at last to " $4)
    }' "$room" "$record"
}
record_is_whole() { # It has the last revision of each pod, and nothing that begins anew.
  kill -0 "${pids[record]}" || { echo "the watch has ended"; return 1; }
  diff <(kube -n team get pods --no-headers -o custom-columns=:.metadata.uid,:.metadata.resourceVersion | awk '{print $1, $2}' | sort) \
    <(awk '{last[$3] = $1 == "DELETED" ? "" : $2} END {for (uid in last) if (last[uid] != "") print uid, last[uid]}' "$record" | sort)
}
refused() { # How many are told that no GPU has the room.
  kube -n team get pods -o json | jq '[.items[] | select(.spec.nodeName == null) | .status.conditions[]? |
    select(.type == "PodScheduled" and (.message | test("on one GPU: [0-9]+ are free at most")))] | length'
}

# --- the leader dies while pods come and go
leader=0
round() {
  local before dead bound_then to_come since created=0 old=$leader
  before=$(ever_bound)
  (($1 == 1)) || { end_some mem 12 && end_some milli 3; }
  create mem 52
  create milli 12
  need "round $1: pods are bound as they come" within 60 bound_since $((before + 8))
  end_one "manager-$old"
  dead=$(ever_bound)
  bound_then=$((dead - before)) to_come=$((made_mem + made_milli - dead))
  check "the leader dies with $bound_then bound and $to_come to come" test "$to_come" -gt 0
  create mem 18
  create milli 5
  end_some mem 12
  end_some milli 3
  run_manager "$old"
  leader=$((1 - old))
  await_creators || created=1
  check "all pods could be created" equals 0 echo "$created"
  check "the other one leads" within 60 leads "$leader"
  check "the Service leads there" within 60 equals "127.0.0.1:${ports[$leader]}" endpoint
  since=$SECONDS
  check "as many are bound as there is room for: $(as_room_allows)" within 120 equals "$(as_room_allows)" bound
  echo "      $((SECONDS - since)) s after the Service led there"
  check "the one that was killed is ready again" within 60 is_ready "$old"
}
for ((i = 1; i <= rounds; ++i)); do round "$i"; done

# --- what became of all
check "there was too little room" test $((made_mem - ended_mem)) -gt "$mem_places" -a $((made_milli - ended_milli)) -gt "$milli_places"
waiting=$((made_mem - ended_mem - mem_places + made_milli - ended_milli - milli_places))
check "the $waiting others wait, and are told why" within 60 equals "$waiting" refused
end_some mem "$mem_places"
end_some milli "$milli_places"
check "when all that are bound end, the others are bound" within 120 equals "$(as_room_allows)" bound
check "the record has all revisions" within 60 record_is_whole
check "at none of $(wc -l <"$record") revisions a GPU has more than it has, or a pod no GPU" equals '' broken_rules
finish
