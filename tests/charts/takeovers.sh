# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # Variables of deployment_test.sh.
# For deployment_test.sh: work that goes on while the leader is killed, and a record of all that happens to it.

readonly job_label=ai.centauruscloud.io/job-name role_label=ai.centauruscloud.io/role

small_job() { # small_job NAME: on the nodes of the pool "many", which are not lost; its launcher runs once or not at all.
  cat <<YAML
---
apiVersion: ai.centauruscloud.io/v1alpha1
kind: ElasticHorovodJob
metadata: {name: $1}
spec:
  launcherSpec:
    image: train
    pythonCommand: [train]
    template: {spec: {nodeSelector: {pool: many}}}
  workersSpec:
    image: train
    minReplicas: 2
    maxReplicas: 3
    targetReplicas: 2
    template: {spec: {nodeSelector: {pool: many}}}
  runPolicy: {backoffLimit: 0}
YAML
}
small_jobs() { # small_jobs NAMESPACE NAME...
  local name namespace=$1
  shift
  for name; do small_job "$name"; done | kube -n "$namespace" create -f - >/dev/null
}

# --- the record: each change of an object is a line of its time and some of its fields, in a file for each kind.
watches=()
watch() { # watch RESOURCE FIELD...
  local resource=$1 columns=TYPE:.type field
  shift
  for field; do columns+=",FIELD:.object.$field"; done
  (exec "$cluster" kubectl --name "$cluster_name" -- get "$resource" --all-namespaces --no-headers --watch \
    --chunk-size 0 --output-watch-events -o "custom-columns=$columns") > >(
    while IFS= read -r line; do echo "$EPOCHREALTIME $line"; done >"$record/$resource") 2>"$record/$resource.errors" &
  watches+=($!)
}
start_record() {
  record=${record:-$GRUS_STATE/record}
  mkdir -p -- "$record"
  local object=(metadata.namespace metadata.name metadata.uid)
  watch jobs "${object[@]}"
  watch pods "${object[@]}" status.phase spec.nodeName 'spec.containers[*].resources.limits.nvidia\.com/gpu' \
    "metadata.labels.${job_label//./\\.}" "metadata.labels.${role_label//./\\.}"
  watch leases metadata.name spec.holderIdentity
}
record_is_on() {
  local resource
  for resource in jobs pods leases; do [[ -s $record/$resource ]] || { echo "no $resource"; return 1; }; done
}
record_has_no_gap() { # A watch that was broken and begun anew would miss what came between.
  local watch
  for watch in "${watches[@]}"; do   # One at a time: of several, one that is alive is enough for kill.
    kill -0 "$watch" || { echo "a watch has ended; the API server ends each after 30 to 60 minutes"; return 1; }
  done
}

# --- what shall become of each job
declare -A wanted=() workers=()   # By NAMESPACE/NAME: its phase; how many pods its workers are from first to last, or "any".
jobs_are_as_wanted() { # jobs_are_as_wanted NAMESPACE: in the phase that is wanted, with all workers where they run.
  local key name phase ready state=0
  local -A there=()
  while read -r name phase ready; do there[$1/$name]="$phase $ready"; done < <(
    kube -n "$1" get ehj --no-headers -o custom-columns=:.metadata.name,:.status.phase,:.status.replicas.ready)
  for key in "${!wanted[@]}"; do
    [[ $key == "$1"/* ]] || continue
    read -r phase ready <<<"${there[$key]-none}"
    [[ $phase == "${wanted[$key]}" ]] || { echo "$key: phase $phase, not ${wanted[$key]}"; state=1; }
    [[ $phase != Running || ${workers[$key]} == "$ready" || ${workers[$key]} == any ]] ||
      { echo "$key: $ready ready workers, not ${workers[$key]}"; state=1; }
  done
  return "$state"
}

# broken_rules: what the record shows that must never be, a line each.
broken_rules() {
  local key
  for key in "${!wanted[@]}"; do echo "$key ${workers[$key]}"; done >"$record/wanted"
  awk -v gpus=8 '
    function rule(text) { print text }
    function once(what, key) { if (made[what, key] != 1) rule(key ": " made[what, key] + 0 " " what " made, not 1") }
    function hold(uid, job, role, node, count) {
      if (uid in node_of) { used[node_of[uid]] -= count_of[uid]; delete node_of[uid] }
      if (node == "") return
      node_of[uid] = node; count_of[uid] = count; used[node] += count
      if (used[node] > gpus) rule(node ": " used[node] " GPUs in use at " $1)
    }
    FILENAME ~ /wanted$/ { wanted[$1] = $2; next }
    $3 != "work" && $3 != "storm" { next }
    FILENAME ~ /jobs$/ {
      key = $3 "/" $4
      if (!sub(/-launcher$/, "", key) || !(key in wanted)) rule($4 ": whose is it?")
      else if (!seen[$5]++) made["Job", key]++
      next
    }
    {
      key = $3 "/" $9
      is_over = $2 == "DELETED" || $6 == "Succeeded" || $6 == "Failed"
      if (!seen[$5]++) made[$10, key]++
      if ($10 == "launcher") {
        if (!is_over && !lives[$5]) { lives[$5] = 1; if (++launchers[key] > 1) rule(key ": two launchers live at " $1) }
        if (is_over && lives[$5]) { lives[$5] = 0; launchers[key]-- }
      }
      hold($5, key, $10, is_over || $7 == "<none>" ? "" : $7, $8 == "<none>" ? 0 : $8)
    }
    END {
      for (key in wanted) {
        once("Job", key); once("launcher", key)
        if (wanted[key] != "any" && made["worker", key] != wanted[key])
          rule(key ": " made["worker", key] + 0 " pods of workers made, not " wanted[key])
      }
    }' "$record"/{wanted,jobs,pods}
}

# --- the leader dies
kill_leader() { # kill_leader HOW POD
  case $1 in
    forced) kube -n grus-system delete pod "$2" --grace-period=0 --force ;;
    gently) kube -n grus-system delete pod "$2" --wait=false ;;
    SIGKILL) on_node ctr tasks kill --signal SIGKILL "$(container_of "$2")" ;;
  esac >/dev/null 2>&1
}
led_again() { # led_again TIME HOLDER: seconds from TIME until the lease had another holder.
  awk -v from="$1" -v old="$2" '$3 == "grus" && $1 > from && $4 != "" && $4 != old {printf "%.1f", $1 - from; found = 1; exit}
    END {exit !found}' "$record/leases"
}
worked_again() { # worked_again TIME JOB: seconds from TIME until the job, which came after it, had its first worker.
  awk -v from="$1" -v name="$2-workers-0" '$2 == "ADDED" && $4 == name {printf "%.1f", $1 - from; found = 1; exit}
    END {exit !found}' "$record/pods"
}

# --- a round: a leader dies in the midst of changes
submit() { # submit NAMESPACE NAME...
  local namespace=$1 name
  shift
  small_jobs "$namespace" "$@"
  for name; do wanted[$namespace/$name]=Running workers[$namespace/$name]=2; done
}
end_job() { # end_job NAMESPACE/NAME Succeeded|Failed
  local outcome=succeed
  [[ $2 == Succeeded ]] || outcome=fail
  kube -n "${1%/*}" annotate pod -l "$job_label=${1#*/},$role_label=launcher" "grus.test/outcome=$outcome" >/dev/null
  wanted[$1]=$2
}
move_on() { # move_on ROUND FIRST LAST: jobs of that round, where it was, are scaled, succeed or fail.
  local i key
  for ((i = $2; i <= $3; ++i)); do
    key=work/r$1-$i
    case ${wanted[$key]-}:$((i % 3)) in
      Running:0) kube -n work scale ehj "r$1-$i" --replicas=3 >/dev/null && workers[$key]=3 ;;
      Running:1) end_job "$key" Succeeded ;;
      Running:2) end_job "$key" Failed ;;
    esac
  done
}
lose_or_add_node() { # lose_or_add_node ROUND: of the demo's job, but not the launcher's.
  local lost=demo-3 launcher_node
  if (($1 % 2 == 0)); then
    "$cluster" nodes 4 --gpus 8 --prefix demo --label pool=demo --name "$cluster_name" >/dev/null
    return
  fi
  launcher_node=$(kube -n work get pods -l "$job_label=$demo_job,$role_label=launcher" -o 'jsonpath={.items[*].spec.nodeName}')
  [[ $launcher_node != "$lost" ]] || lost=demo-2
  kube delete node "$lost" --wait=false >/dev/null
}
demo_has() { equals "Running $1" kube -n work get ehj "$demo_job" -o 'jsonpath={.status.phase} {.status.replicas.ready}'; }

round() { # round NUMBER HOW
  local n=$1 pod old at i size=32
  ((n % 2 == 0)) || size=24
  old=$(holder) pod=${old%_*}
  submit work "r$n"-{1..6}
  move_on $((n - 1)) 1 6
  at=$EPOCHREALTIME
  kill_leader "$2" "$pod"
  submit work "r$n"-{7..12}
  lose_or_add_node "$n"
  move_on $((n - 1)) 7 12
  for i in 3 6 9 12; do [[ ! -v wanted[work/r$((n - 2))-$i] ]] || end_job "work/r$((n - 2))-$i" Succeeded; done
  check "round $n, the leader is killed ($2): another leads" within 120 led_again "$at" "$old"
  check "all jobs are as they should be" within 120 jobs_are_as_wanted work
  check "the demo's job has $size workers" within 120 demo_has "$size"
  check "both replicas are ready" two_are_ready
  echo "      led again after $(led_again "$at" "$old") s;" \
    "a job from after the kill got its workers after $(worked_again "$at" "r$n-7") s"
}
