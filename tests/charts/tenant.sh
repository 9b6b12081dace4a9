# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # Variables of tenant_test.sh and cluster.sh.
# For tenant_test.sh: team-a and what it was, mallory and what is tried.

marker=secret-of-team-a-$$
log=$GRUS_STATE/manager.log
uids='{}'   # References to objects of team-a, and more that is theirs: $a of tenant.jq.

mallory() { kube --as mallory -n team-b "$@"; }
# object KIND NAME [JQ]: one of tenant.jq, changed.
object() {
  jq -n --argjson a "$uids" "$(<tests/charts/tenant.jq) $1 | .metadata.name = \"$2\" | ${3:-.}" | sed "s/\"@abyss@\"/$abyss/"
}
abyss=$(printf '{"a":%.0s' {1..1000})1$(printf '}%.0s' {1..1000})
creates() { object "$@" | mallory create --validate=ignore -f -; }   # creates KIND NAME [JQ]
made() { check "$1" creates "${@:2}"; }
# refused NAME PATTERN KIND NAME [JQ]: the API server says no, and why.
refused() { check "refused: $1" is_refused "${@:2}"; }
is_refused() { fails creates "${@:2}" >/dev/null 2>&1 && prints "$1" creates "${@:2}"; }
# may_not NAME COMMAND...: mallory is not allowed to do it.
may_not() { check "may not: $1" prints 'forbidden\|Forbidden\|cannot' mallory "${@:2}"; }
made_all() { # made_all: of lines NAME#KIND#NAME#JQ.
  local what kind name change
  while IFS='#' read -r what kind name change; do made "$what" "$kind" "$name" "$change"; done
}
refused_all() { # refused_all: of lines NAME#PATTERN#KIND#JQ.
  local what pattern kind change
  while IFS='#' read -r what pattern kind change; do refused "$what" "$pattern" "$kind" refused "$change"; done
}
reason_of() { kube -n team-b get "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}'; }

# --- team-a
make_queues() { sed -E 's/guaranteed: 8/guaranteed: 8, limit: 8/' tests/charts/queues.yaml | kube apply -f -; }
start_as_account() {
  account_kubeconfig "$KUBECONFIG" grus-system "$GRUS_STATE/account" && deployment_arguments grus-system >"$GRUS_STATE/arguments"
}
launch() { # Not inside of check(), whose subshell would be its parent.
  local args
  mapfile -t args <"$GRUS_STATE/arguments"
  env -u KUBECONFIG "$manager" --kubeconfig "$GRUS_STATE/account" "${args[@]}" >>"$log" 2>&1 &
  manager_pid=$!
}
make_team_a() {
  kube -n team-a create -f - <<END
apiVersion: v1
kind: Secret
metadata: {name: secret}
stringData: {key: $marker}
---
apiVersion: ai.centauruscloud.io/v1alpha1
kind: ElasticHorovodJob
metadata: {name: train}
spec:
  launcherSpec: {image: train, pythonCommand: [train, $marker]}
  workersSpec:
    image: train
    minReplicas: 2
    maxReplicas: 4
    targetReplicas: 4
    template: {spec: {containers: [{name: worker, env: [{name: KEY, value: $marker}]}]}}
---
apiVersion: ai.centauruscloud.io/v1alpha1
kind: TrialJob
metadata: {name: trial}
spec:
  workload: {podTemplate: {spec: {containers: [{name: train, image: train, command: [train, $marker]}]}}}
  space: {gpuCounts: [1]}
  measure: {startupSeconds: 3600}
  budget: {perTrialSeconds: 7200}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: gang, annotations: {note: $marker}}
spec: {minMember: 2}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: gang}
spec:
  replicas: 2
  serviceName: gang
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: gang}}
  template:
    metadata: {labels: {app: gang, scheduling.x-k8s.io/pod-group: gang}}
    spec:
      schedulingGates: [{name: scheduling.x-k8s.io/gang}]
      containers: [{name: train, image: train, args: [$marker], resources: {limits: {nvidia.com/gpu: 1}}}]
---
apiVersion: ai.centauruscloud.io/v1alpha1
kind: WorkloadProfile
metadata: {name: of-team-a}
spec:
  fingerprint: of-team-a
  workload: {namespace: team-a, image: train, command: [train, $marker]}
  throughputUnit: StepsPerSecond
END
}
team_a_runs() {
  equals 'Running 4' kube -n team-a get ehj train -o 'jsonpath={.status.phase} {.status.replicas.ready}' &&
    equals Running kube -n team-a get tj trial -o 'jsonpath={.status.phase}' &&
    equals 'Running Running Running ' kube -n team-a get podgroups.scheduling.x-k8s.io \
      -o 'jsonpath={range .items[*]}{.status.phase}{" "}{end}'
}
# It would have more than its queue may.
make_waiting_job() { uids='{}' object job patient '.spec.workersSpec += {minReplicas: 4, maxReplicas: 4, gpusPerWorker: 1}' | kube -n team-a create -f -; }
is_quiet() { # What there is stays so for a while.
  local before
  before=$(state) && sleep 4 && [[ $before == "$(state)" && $before == *WaitingForQueue* ]]
}
reference_to() { jq -c '{apiVersion, kind, name: .metadata.name, uid: .metadata.uid}' <<<"$1"; }
its_reference() { reference_to "$(kube -n team-a get "$@" -o json)"; }
remember() { # What team-a is now.
  local pod
  pod=$(kube -n team-a get pods -l ai.centauruscloud.io/trial-job=trial -o 'jsonpath={.items[0].metadata.name}')
  uids=$(jq -n -c '{train: $ARGS.named.train, trial: $ARGS.named.trial, gang: $ARGS.named.gang, launcher: $ARGS.named.launcher,
      pod: $ARGS.named.pod, trialpod: $ARGS.named.trialpod, set: $ARGS.named.set, profile: "of-team-a",
      spec: $ARGS.named.job.spec, trialspec: $ARGS.named.measured.spec}' \
    --argjson train "$(its_reference ehj train)" --argjson trial "$(its_reference tj trial)" \
    --argjson gang "$(its_reference podgroups.scheduling.x-k8s.io gang)" --argjson launcher "$(its_reference job train-launcher)" \
    --argjson pod "$(its_reference pod train-workers-0)" --argjson trialpod "$(its_reference pod "$pod")" \
    --argjson set "$(its_reference sts gang)" --argjson job "$(kube -n team-a get ehj train -o json | sed "s/$marker/x/")" \
    --argjson measured "$(kube -n team-a get tj trial -o json | sed "s/$marker/x/")")
  state >"$GRUS_STATE/state" && events >"$GRUS_STATE/events"
  started=$(process)
}

# All of team-a that is not a clock, a line a field. A job that waits tells of others, a trial after a while of its log.
# What jobs use is written once a minute: tenant_usage.sh looks at that.
state() {
  kube -n team-a get ehj,tj,podgroups.scheduling.x-k8s.io,podgroups.scheduling.sigs.k8s.io,pods,jobs,sts,svc,cm,secrets,pvc,leases \
    -o json | jq -S '.items | sort_by(.kind, .metadata.name)[] | del(.metadata.managedFields, .metadata.resourceVersion) |
      del(.. | objects | .gpuSeconds?, .wallSeconds?) | del(.status.spent?, .status.profile?) |
      (.metadata.annotations | values) |= with_entries(select(.key | test("alnair|^ai.centaurus.io/") | not)) |
      if .metadata.annotations == {} then del(.metadata.annotations) else . end |
      if .metadata.name == "patient" or .kind == "TrialJob" then del(.. | objects | .message?) | del(.status.trials[]?.reason) else . end'
}
is_as_it_was() { diff "$GRUS_STATE/state" <(state); }
# What events of team-a say, without the jobs that are tried.
events() {
  kube -n team-a get events.events.k8s.io -o json |
    jq -c '.items | map(select(.regarding.name | startswith("tried") | not)) | map([.type, .reason, .regarding.kind, .regarding.name])
      | unique[]'
}
no_news() {
  local now
  now=$(events) && [[ -n $now ]] && ! grep -vxF -f "$GRUS_STATE/events" <<<"$now"
}
no_word_of_team_b() {
  local all
  all=$(kube -n team-a get events,ehj,tj,podgroups.scheduling.x-k8s.io -o json |
    jq -r '.items[] | select((.regarding // .involvedObject // .metadata).name | startswith("tried") | not) | tostring') && [[ $all == *'"namespace":"team-a"'* ]] && ! grep -o '.\{60\}team-b.*' <<<"$all"
}

jobs_gpus() { # That gates were lifted for: those of workers with a node.
  kube -n team-b get pods -l ai.centauruscloud.io/role=worker,app.kubernetes.io/managed-by=grus -o json |
    jq '[.items[] | select(.spec.nodeName) | .spec.containers[].resources.limits["nvidia.com/gpu"] // "0" | tonumber] | add // 0'
}

# --- what mallory sees
kinds_to_read() { everything=$(kube api-resources --verbs=list --namespaced -o name | paste -sd,); }
readable() { # readable USER NAMESPACE: all that this user can read there.
  kube --as "$1" -n "$2" get "$everything" -o json 2>"$GRUS_STATE/read.err" || true   # Some kinds are not for everybody.
}
secrets_for() { readable '' "$1" | grep -c "$marker"; }
canary() { # What mallory reads of team-b is read here.
  object configmap canary ".data.hosts = \"$marker-canary\"" | mallory create -f - >/dev/null
  readable mallory team-b | grep "$marker-canary" >/dev/null && mallory delete cm canary
}
mallory_knows_nothing() {
  local all='' until=$((SECONDS + 60))
  # One kind that is not served, for a moment or any more, and kubectl prints nothing.
  until all=$(readable mallory team-b) && [[ $all == *'"kind": "ServiceAccount"'* ]]; do
    ((SECONDS < until)) || { echo "nothing was read: $(<"$GRUS_STATE/read.err")"; return 1; }
    kinds_to_read
  done
  ! grep -m 3 "$marker" <<<"$all"
}

# --- the manager
process() { ps -o pid=,lstart=,comm= -p "$manager_pid"; }
is_the_same() { [[ $(ps -o stat= -p "$manager_pid") != Z* ]] && equals "$started" process; }
log_is_clean() {
  [[ -s $log ]] && jq -R -n -e '[inputs | . as $line | (try (fromjson | if type == "object" and has("time") and has("level") and has("message")
    and .message != "forged" then empty else $line end) catch $line)] | if length == 0 then true else (.[:3] | debug | false) end' <"$log"
}
metrics() { http "$(port metrics)" /metrics; }
counts_are_sane() { # No exception, and no GPUs that there are not.
  local all
  all=$(metrics)
  awk '/^controller_runtime_reconcile_panics_total/ {seen = 1; if ($NF != 0) bad = 1}
    /^grus_pool_free_gpus/ {pools++; if ($NF < 0 || $NF > 16) bad = 1}
    END {exit bad || !seen || !pools}' <<<"$all" || { grep 'panics\|free_gpus' <<<"$all"; return 1; }
}

# --- after each group
clear() { # Nothing of mallory's is left.
  kube -n team-b get ehj,tj,podgroups.scheduling.x-k8s.io,podgroups.scheduling.sigs.k8s.io,pods,jobs -o json |
    jq -c '.items[] | select(.metadata.finalizers) | {apiVersion, kind, metadata: {name: .metadata.name, namespace: "team-b"}}' |
    while read -r one; do kube patch -f - --type merge -p '{"metadata": {"finalizers": null}}' <<<"$one"; done >/dev/null 2>&1
  kube -n team-b delete ehj,tj,podgroups.scheduling.x-k8s.io,podgroups.scheduling.sigs.k8s.io,jobs,sts,pods,svc,cm,leases,secrets,pvc \
    --field-selector metadata.name!=kube-root-ca.crt --grace-period=0 --force --wait=false >/dev/null 2>&1
  within 60 is_empty
}
is_empty() {
  kube -n team-b delete pods --all --grace-period=0 --force --wait=false >/dev/null 2>&1
  equals '' kube -n team-b get ehj,tj,pods,jobs -o name
}
tried=0
serves() { # A new job of team-a runs; it needs the last GPU of its queue.
  local job=tried-$1
  object job "$job" '.spec.workersSpec.gpusPerWorker = 1' | kube -n team-a create -f - >/dev/null || return 1
  kube -n team-a wait "ehj/$job" --for=jsonpath='{.status.phase}'=Running --timeout=60s
}
forget() { kube -n team-a delete ehj "tried-$1" --wait >/dev/null && within 30 is_as_it_was; }
all_is_well() { # all_is_well GROUP
  check "$1: team-a is as it was" within 10 is_as_it_was
  check "$1: nothing new is said about it" no_news
  check "$1: and nothing about team-b" no_word_of_team_b
  check "$1: mallory does not know its secret" mallory_knows_nothing
  check "$1: the manager is the same process" is_the_same
  check "$1: its log is lines of JSON" within 5 log_is_clean
  check "$1: its counts are sane" counts_are_sane
  check "$1: team-b can be cleared" clear
  tried=$((tried + 1))
  check "$1: a new job of team-a runs" serves "$tried"
  check "$1: and leaves no trace" forget "$tried"
}
