# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # Variables of tenant_test.sh and cluster.sh.
# For tenant_test.sh: the profiler with Alnair's annotations, a real Prometheus, the exporter of the cluster, and one of
# mallory's, who states numbers about team-a.

usage=$GRUS_STATE/usage
short=100   # Of mallory's pods, each a job of its own with a workload of its own.

# --- what the manager is told
start_usage() { # Not inside of check(), whose subshell would be its parent.
  mkdir -p -- "$usage/www"
  touch "$usage/www/metrics" "$usage/www/mallory"
  usage_exporter=$(free_port)
  busybox httpd -f -p "127.0.0.1:$usage_exporter" -h "$usage/www" &
  usage_pids+=($!)
  usage_port=$(free_port)
  cat >"$usage/prometheus.yml" <<END
global: {scrape_interval: 5s}
scrape_configs:
  - {job_name: exporter, static_configs: [{targets: ["127.0.0.1:$usage_exporter"], labels: {namespace: monitoring, pod: exporter}}]}
  - {job_name: pods, honor_labels: true, metrics_path: /mallory, static_configs: [{targets: ["127.0.0.1:$usage_exporter"]}]}
END
  tests/charts/prometheus --config.file="$usage/prometheus.yml" --storage.tsdb.path="$usage/tsdb" \
    --web.listen-address="127.0.0.1:$usage_port" >"$usage/prometheus.log" 2>&1 &
  usage_pids+=($!)
}
usage_pids=()
stop_usage() {
  local pid
  for pid in "${usage_pids[@]}"; do kill -KILL "$pid" && wait "$pid"; done 2>/dev/null
}
usage_values() { # For helm: as a careless operator lists kinds, one of which is not of a namespace.
  cat >"$usage/values.yaml" <<END
profiler:
  prometheus: "http://127.0.0.1:$usage_port"
  selector: 'job="exporter"'
  alnairAnnotations: true
  ownerKinds:
    - {apiGroup: apps, resource: statefulsets}
    - {apiGroup: example.com, resource: trainings}
    - {apiGroup: example.com, resource: wides}
nodeAgent: {enabled: true, alnairAnnotations: true}
END
  echo "$usage/values.yaml"
}
tell() { # tell NAMESPACE UTILIZATION MEMORY_MIB POD...: lines of exporters about pods.
  local pod
  for pod in "${@:4}"; do
    cat <<END
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-$1-$pod",namespace="$1",pod="$pod",container="c"} $2
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-$1-$pod",namespace="$1",pod="$pod",container="c"} $3
container_memory_working_set_bytes{namespace="$1",pod="$pod",container="c"} $3
END
  done
}
serve_numbers() { # Of all pods that there are and will be.
  local mine
  mapfile -t mine < <(kube -n team-a get pods -o 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}')
  {
    tell team-a 80 1000 "${mine[@]}"
    # shellcheck disable=SC2046 # Several words.
    tell team-b 100 2000 own liar full train-workers-0 gang-0 \
      controlled-{train,trial,gang,launcher,pod,set,node,namespace,profile,queue,deep,loop,wide,words} $(seq -f 'short-%g' "$short")
  } >"$usage/next"
  mv -- "$usage/next" "$usage/www/metrics"
  tell team-a 1 70000 "${mine[@]}" >"$usage/www/mallory"
}

# --- what is team-a's of it
alnair_of() { # alnair_of NAMESPACE: what stands there, without the UIDs.
  kube -n "$1" get pods,ehj,jobs,sts -o json | jq -r '.items[] | .kind as $kind | .metadata | .name as $name | .annotations // {} |
    to_entries[] | select(.key | test("alnair|^ai.centaurus.io/")) | "\($kind)/\($name) \(.key | sub(".*/"; "")) \(.value[:300])"' |
    grep -v ' alnair-of ' | grep -v '/tried-' | sort
}
runs_of() { # runs_of NAMESPACE JQ: of the runs that are recorded.
  kube get workloadprofiles -o json | jq -c "[.items[] | .spec as \$of | .spec.runs // [] | .[] | select(.job | contains(\"/$1/\"))] | $2"
}
runs_of_team_a() { runs_of team-a 'map(select(.job | contains("/tried-") | not) | [.job, .uid, .usage.maxGpuUtilizationPercent, .usage.maxGpuMemoryBytes]) | sort'; }
jobs_in_metrics() { metrics | sed -nE 's/^grus_job_gpus\{(.*job_namespace="team-a".*)\}.*/\1/p' | grep -v '"tried-' | sort; }
is_measured() { # Team-a is: its workers and their job, and a StatefulSet that is listed.
  local all
  all=$(alnair_of team-a)
  [[ $all == *"Pod/train-workers-3 gpu_util {'gpu_0': 80}"* && $all == *'ElasticHorovodJob/train train-workers-3 {'* &&
    $all == *'StatefulSet/gang gang-1 {'* && $(runs_of_team_a) == *ElasticHorovodJob/team-a/train* ]]
}
remember_usage() {
  alnair_of team-a >"$usage/alnair" && runs_of_team_a >"$usage/runs" && jobs_in_metrics >"$usage/jobs" && global >"$usage/global" &&
    [[ -s $usage/alnair && -s $usage/jobs ]]
}
same() { diff "$usage/$1" <("${@:2}"); }   # same FILE COMMAND...
# What is of no namespace, the profile that somebody made for team-a, and the one that its job has.
global() {
  kube get nodes,namespaces,gpuqueues,nodepools -o json | jq -S '.items[] | [.kind, .metadata.name, .metadata.annotations]'
  kube get workloadprofile of-team-a -o json | jq -S '[.metadata.annotations, .spec]'
  kube -n team-a get ehj train -o 'jsonpath={.status.profile}'
}

# --- mallory's
more_kinds() { # Two of others, whose objects may have any depth; one is not of a namespace.
  local scope kind
  for kind in Training:Namespaced Wide:Cluster; do
    scope=${kind#*:} kind=${kind%:*}
    cat <<END
{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "${kind,,}s.example.com"},
  "spec": {"group": "example.com", "scope": "$scope", "names": {"plural": "${kind,,}s", "kind": "$kind"},
    "versions": [{"name": "v1", "served": true, "storage": true,
      "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}
END
  done | kube create -f -
}
of_example() { sed "s/\"@abyss@\"/$abyss/" <<<"{\"apiVersion\": \"example.com/v1\", \"kind\": \"$1\", \"metadata\": {\"name\": \"$2\"}${3:-}}" | kube -n team-b create --validate=ignore -f -; }
uid_of() { kube -n team-b get "$@" -o 'jsonpath={.metadata.uid}'; }
# Controllers of mallory's pods, for tenant.jq: what is not team-a's.
more_owners() {
  local node namespace profile queue
  node=$(its_reference node node-0) && namespace=$(its_reference namespace team-a) && queue=$(its_reference gpuqueue vision) &&
    profile=$(its_reference workloadprofile of-team-a) || return 1
  uids=$(jq -c --argjson node "$node" --argjson namespace "$namespace" --argjson profile "$profile" --argjson queue "$queue" \
    --arg deep "$(uid_of training deep)" --arg loop "$(uid_of training loop)" --arg wide "$(uid_of wide wide)" \
    '
    def example($kind; $name; $uid): {apiVersion: "example.com/v1", kind: $kind, name: $name, uid: $uid};
    . + {node: $node, namespace: $namespace, profileobject: $profile, queue: $queue, deep: example("Training"; "deep"; $deep),
      loop: example("Training"; "loop"; $loop), wide: example("Wide"; "wide"; $wide),
      words: {apiVersion: "batch/v1%2Fnamespaces%2Fteam-a", kind: "Job", name: "..%2ftrain-launcher", uid: "../\u001b[2J"}}' <<<"$uids")
}
loop() { # It controls itself.
  kube -n team-b patch training loop --type merge -p "{\"metadata\": {\"ownerReferences\": [{\"apiVersion\": \"example.com/v1\",
    \"kind\": \"Training\", \"name\": \"loop\", \"uid\": \"$(uid_of training loop)\", \"controller\": true}]}}"
}
short_jobs() { # Each with a workload of its own.
  object pod 'short-@' 'gpus("1") | .spec.nodeName = "node-1"' | jq -c '.spec.containers[0].image = "short-@"' |
    awk -v count="$short" '{for (i = 1; i <= count; i++) {one = $0; gsub(/@/, i, one); print one}}' | mallory create -f -
}
lies() { # As if grus had written them.
  mallory annotate pod liar --overwrite "ai.centauruscloud.io/alnair-of=$(uid_of pod liar)" \
    alnair.centaurusinfra.io/max_cpu_mem_mb=1e308 alnair.centaurusinfra.io/gpu_util="{'gpu_0': 1e999, 'gpu_1': nan}" &&
    kube -n team-b annotate training loop --overwrite "ai.centauruscloud.io/alnair-of=$(uid_of training loop)" \
      ai.centaurus.io/train-workers-0="{'node': 'node-0" ai.centaurus.io/x="$(printf '{%.0s' {1..20000})"
}
writes_refused() { grep -c 'could not be written for Alnair' "$log"; }
usage_attacks() {
  local on='gpus("1") | .spec.nodeName = "node-1"' before
  need "team-a's pods and jobs have Alnair's annotations" within 150 is_measured
  need "and are remembered" remember_usage
  before=$(writes_refused)
  made "something to be first owner" configmap anchor
  uids=$(jq -c ".anchor = $(reference configmap anchor)" <<<"$uids")
  need "objects of other kinds" of_example Training deep ', "spec": "@abyss@"'
  need "one that controls itself" of_example Training loop
  need "so it does" loop
  need "and one of no namespace" of_example Wide wide
  more_owners   # Not inside of check(), whose subshell would keep them.
  need "they can be named" prints '"wide"' echo "$uids"
  for owner in train trial gang launcher pod set node namespace queue deep loop wide words; do
    made "a pod with GPUs is controlled by: $owner" pod "controlled-$owner" "$on | anchored | controlled(\"$owner\")"
  done
  made_all <<END
one controlled by the profile of team-a#pod#controlled-profile#$on | controlled("profileobject")
one of the name of team-a's, controlled by its job#pod#train-workers-0#$on | anchored | controlled("train") | worker("train")
one of the name of its StatefulSet's#pod#gang-0#$on | controlled("loop")
one that has no room itself#pod#full#$on | note("a"; text(262140))
one with finalizers#pod#liar#$on | .metadata.finalizers = ["example.com/never"]
a job that pushes words#job#push#note("ai.centauruscloud.io/step"; controls) | note("ai.centauruscloud.io/total-steps"; forged)
END
  check "annotations as if grus had written them" lies
  check "$short short jobs" short_jobs
  made "and a pod by itself" pod own "$on"
  check "what it did is said" within 150 prints "^Pod/own gpu_util {'gpu_0': 100}" alnair_of team-b
  check "and of the one with finalizers" within 60 prints '^Pod/liar gpu_util .*100' alnair_of team-b
  check "and on what controls mallory's" within 60 prints "'node': 'node-1'" \
    kube -n team-b get training loop -o 'jsonpath={.metadata.annotations.ai\.centaurus\.io/gang-0}'
  check "short jobs are recorded" within 60 prints '[1-9]' runs_of team-b 'map(select(.job | contains("short-"))) | length'
  check "what is said of team-a is as it was" same alnair alnair_of team-a
  check "nor is another run recorded" same runs runs_of_team_a
  check "nor are there metrics of another job" same jobs jobs_in_metrics
  check "nothing that is of no namespace was written" same global global
  check "nor an object of a listed kind of no namespace" equals '' kube get wide wide -o 'jsonpath={.metadata.annotations}'
  check "runs of team-b are in profiles of team-b" equals '["team-b"]' \
    eval "kube get workloadprofiles -o json | jq -c '[.items[].spec | select([.runs[]?.job | contains(\"/team-b/\")] | any) | .workload.namespace] | unique'"
  check "what cannot be written is told" within 60 eval '(( $(writes_refused) > before ))'
  check "a few times" eval '(( $(writes_refused) - before <= 6 ))'
  all_is_well usage
  kube delete crd trainings.example.com wides.example.com --timeout=60s >/dev/null
}
