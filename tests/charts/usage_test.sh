#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What jobs use: a real control plane, a real Prometheus, and exporters that the test plays. Takes six minutes, most of
# which the manager waits for its next look.
# shellcheck disable=SC2317 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

name=usage
# shellcheck source=tests/charts/cluster.sh
source tests/charts/cluster.sh
plugin=$PWD/build/release/bin/kubectl-grus

prometheus_pid='' exporter_pid='' agent_pid=''
stop() { [[ -z $1 ]] || { kill -KILL "$1" && wait "$1"; } 2>/dev/null; }
trap 'stop "$prometheus_pid"; stop "$exporter_pid"; clean_up' EXIT

# --- exporters: files that busybox serves
need "busybox" scripts/install-packages --real-node
mkdir -p -- "$GRUS_STATE/exporter"
: >"$GRUS_STATE/exporter/metrics"
exporter=$(free_port)
busybox httpd -f -p "127.0.0.1:$exporter" -h "$GRUS_STATE/exporter" &
exporter_pid=$!
# play POD UTILIZATION MEMORY_MIB CORES: from now on. Lines as dcgm-exporter and the kubelet's cAdvisor write them, as of
# their documentation; the scrape has no honorLabels, so that Prometheus renames the labels of the former.
play() {
  local seconds now=${EPOCHREALTIME/./}
  local millionths=$((now * $4)) at=$((now / 1000)) # cAdvisor says of when its numbers are.
  printf -v seconds '%d.%06d' $((millionths / 1000000)) $((millionths % 1000000))
  cat <<EOT
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-$1",device="nvidia0",modelName="NVIDIA A100",Hostname="n",namespace="team-a",pod="$1",container="worker"} $2
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-$1",device="nvidia0",modelName="NVIDIA A100",Hostname="n",namespace="team-a",pod="$1",container="worker"} $3
DCGM_FI_DEV_MEM_COPY_UTIL{gpu="0",UUID="GPU-$1",device="nvidia0",modelName="NVIDIA A100",Hostname="n",namespace="team-a",pod="$1",container="worker"} 9223372036854775794
container_cpu_usage_seconds_total{cpu="total",namespace="team-a",pod="$1",container="worker",id="/x"} $seconds $at
container_cpu_usage_seconds_total{cpu="total",namespace="team-a",pod="$1",container="",id="/"} $seconds $at
container_network_transmit_bytes_total{interface="eth0",namespace="team-a",pod="$1",container="",id="/"} $((now * 2)) $at
container_fs_write_seconds_total{device="/dev/sda",namespace="team-a",pod="$1",container="worker",id="/x"} 0
EOT
}
# play_process POD PERCENT PERCENT_OF_MEMORY: a process on GPU 3, as grus-node-agent writes it, with Alnair's names.
play_process() {
  local labels="gpu=\"3\",uuid=\"GPU-$1\",namespace=\"team-a\",pod=\"$1\",container=\"c\",pid=\"4711\""
  cat <<EOT
grus_gpu_utilization_ratio{gpu="3",uuid="GPU-$1",model="A100"} 0.97
grus_gpu_process_memory_bytes{$labels} 1073741824
grus_gpu_process_sm_ratio{$labels} 0.$2
alnair_gpu_mem_util{pid="4711",gpu_uuid="GPU-$1",gpu_idx="3",pod_name="$1",nodeName="n"} $3
EOT
}
# play_node NODE USED_MIB FREE_MIB BUSY_CORES LABEL: a V100 and one core of a node, as the node exporter names it.
play_node() {
  local seconds now=${EPOCHREALTIME/./}
  local millionths=$((now * (10 - $4) / 10))
  printf -v seconds '%d.%06d' $((millionths / 1000000)) $((millionths % 1000000))
  cat <<EOT
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-of-$1",modelName="Tesla V100-SXM2-16GB",Hostname="$1"} $2
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-of-$1",modelName="Tesla V100-SXM2-16GB",Hostname="$1"} $3
node_cpu_seconds_total{cpu="0",mode="idle"${5:-}} $seconds
EOT
}
# playing LINE...: each is the arguments of play, or of play_KIND behind a KIND, again and again: counters go on.
playing() {
  local line
  while :; do
    for line; do
      # shellcheck disable=SC2086 # A line is several words.
      case $line in
        process* | node*) play_$line ;;
        uname) echo 'node_uname_info{nodename="measured-2",sysname="Linux"} 1' ;;
        *) play $line ;;
      esac
    done >"$GRUS_STATE/exporter/next"
    mv -- "$GRUS_STATE/exporter/next" "$GRUS_STATE/exporter/metrics"
    sleep 0.5
  done
}

# --- Prometheus
cat >"$GRUS_STATE/prometheus.yml" <<EOT
global: {scrape_interval: 5s}
scrape_configs:
  - job_name: grus-metrics
    file_sd_configs: [{files: ["$GRUS_STATE/manager.json"], refresh_interval: 2s}]
  - job_name: grus-node-agent
    honor_labels: true
    file_sd_configs: [{files: ["$GRUS_STATE/agent.json"], refresh_interval: 2s}]
  - job_name: exporter
    static_configs: [{targets: ["127.0.0.1:$exporter"], labels: {namespace: monitoring, pod: exporter-x, container: exporter}}]
EOT
listen=$(free_port)
start_prometheus() {
  tests/charts/prometheus --config.file="$GRUS_STATE/prometheus.yml" --storage.tsdb.path="$GRUS_STATE/tsdb" \
    --web.listen-address="127.0.0.1:$listen" >"$GRUS_STATE/prometheus.log" 2>&1 &
  prometheus_pid=$!
}
# Two hours of a training on one node: epochs of five minutes, with half a minute of evaluation. Its CPUs have no exporter.
past() {
  awk -v now="$EPOCHSECONDS" '
    function series(name, high, low,   at) {
      printf "# TYPE %s gauge\n", name
      for (at = now - 7200; at < now - 30; at += 15)
        printf "%s{gpu=\"0\",exported_namespace=\"team-a\",exported_pod=\"epochs-0\",job=\"exporter\"} %d %d\n", name, at % 300 < 270 ? high : low, at
    }
    BEGIN {
      series("DCGM_FI_DEV_GPU_UTIL", 98, 40)
      series("DCGM_FI_DEV_MEM_COPY_UTIL", 45, 20)
      series("DCGM_FI_DEV_FB_USED", 10000, 11000)
      print "# EOF"
    }' >"$GRUS_STATE/past"
  tests/charts/prometheus promtool tsdb create-blocks-from openmetrics "$GRUS_STATE/past" "$GRUS_STATE/tsdb" >"$GRUS_STATE/promtool.log" 2>&1
}
need "a past" past
start_prometheus
need "Prometheus is ready" within 120 prints ' 200 ' http "$listen" /-/ready

# --- a job that trains
start_cluster 8 grus-system team-a
need "the chart" "$helm" install grus "$chart" --namespace grus-system --timeout 60s --set replicas=0
need "its kinds are served" within 30 kube get elastichorovodjobs,workloadprofiles -A
extender=$(free_port)
start_manager --controllers=elastic,gang,trial,queues,profiler,extender --extender-address="127.0.0.1:$extender" \
  --usage-prometheus="http://127.0.0.1:$listen" --usage-selector='job="exporter"' \
  --alnair-annotations --owner-kinds=pytorchjobs.kubeflow.org,statefulsets.apps
serves() { http "$(port metrics)" /metrics | grep -q '200 OK'; }
need "the manager has metrics" within 60 serves
echo "[{\"targets\": [\"127.0.0.1:$(port metrics)\"], \"labels\": {\"namespace\": \"grus-system\"}}]" >"$GRUS_STATE/manager.json"
kube create --dry-run=client -f examples/elastic-bert/job.yaml -o json |
  jq 'select(.kind == "ElasticHorovodJob") | .metadata.namespace = "team-a" | .metadata.name = "train" |
    .spec.workersSpec.minReplicas = 2 | .spec.workersSpec.maxReplicas = 2 | del(.spec.workersSpec.targetReplicas)' >"$GRUS_STATE/job.json"
need "a job" kube create -f "$GRUS_STATE/job.json"
phase() { kube -n team-a get ehj train -o 'jsonpath={.status.phase}'; }
need "it runs" within 60 equals Running phase
cat >"$GRUS_STATE/bare.json" <<'EOT'
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "notebook", "namespace": "team-a"}, "spec": {"containers": [
  {"name": "c", "image": "jupyter", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
EOT
need "a pod of its own" kube create -f "$GRUS_STATE/bare.json"
# One that began two hours ago, on a node that nobody plays.
kube create -f - >/dev/null <<'EOT'
{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "pytorchjobs.kubeflow.org"},
  "spec": {"group": "kubeflow.org", "scope": "Namespaced", "names": {"plural": "pytorchjobs", "kind": "PyTorchJob"},
    "versions": [{"name": "v1", "served": true, "storage": true,
      "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}
EOT
foreign() { kube create -f - <<<'{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "epochs", "namespace": "team-a"}}'; }
need "a job of another kind" within 30 foreign
uid=$(kube -n team-a get pytorchjob epochs -o 'jsonpath={.metadata.uid}')
kube create -f - >/dev/null <<EOT
{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ghost", "labels": {"nvidia.com/gpu.memory": "81920"}}},
  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "epochs-0", "namespace": "team-a", "ownerReferences": [
    {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "epochs", "uid": "$uid", "controller": true}]},
    "spec": {"nodeName": "ghost", "containers": [{"name": "c", "image": "train", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}]}
EOT
need "its node has a GPU" kube patch node ghost --subresource=status --type=merge -p '{"status": {"capacity": {"nvidia.com/gpu": "1"}}}'
began=$(date -u -d '-2 hours' +%Y-%m-%dT%H:%M:%SZ)
need "a training that goes on" kube -n team-a patch pod epochs-0 --subresource=status --type=merge \
  -p "{\"status\": {\"phase\": \"Running\", \"startTime\": \"$began\"}}"
# Jobs of Kubernetes' own controllers.
template='"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "%s", "containers": [
  {"name": "c", "image": "train", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}'
# shellcheck disable=SC2059 # The template is a format.
need "a StatefulSet" kube -n team-a create -f - <<<"{\"apiVersion\": \"apps/v1\", \"kind\": \"StatefulSet\", \"metadata\": {\"name\": \"shared\"},
  \"spec\": {\"serviceName\": \"s\", \"selector\": {\"matchLabels\": {\"a\": \"b\"}}, $(printf "$template" Always)}}"
# shellcheck disable=SC2059
need "a Job" kube -n team-a create -f - <<<"{\"apiVersion\": \"batch/v1\", \"kind\": \"Job\", \"metadata\": {\"name\": \"batch\"}, \"spec\": {$(printf "$template" Never)}}"
pod_of_job() { kube -n team-a get pods -l job-name=batch --field-selector=status.phase=Running -o 'jsonpath={.items[0].metadata.name}'; }
need "its pod runs" within 60 prints '^batch-' pod_of_job
need "and that of the StatefulSet" within 60 equals Running kube -n team-a get pod shared-0 -o 'jsonpath={.status.phase}'
batch=$(pod_of_job)
their_pods() { kube -n team-a get pods "$batch" shared-0 -o 'jsonpath={.items[*].metadata.uid}'; }
pods_before=$(their_pods)
playing "process shared-0 11 7" "$batch 40 100 0" "train-workers-0 80 20000 3" "train-workers-1 60 30000 1" "notebook 2 500 0" "epochs-0 95 10000 0" \
  "node measured-1 4000 12000 1 ,node=\"measured-1\"" "node measured-2 4000 12000 8" "node measured-3 9000 7000 1 ,node=\"measured-3\"" uname &
players=$!
trap 'kill "$players" 2>/dev/null; stop "$agent_pid"; stop "$prometheus_pid"; stop "$exporter_pid"; clean_up' EXIT

runs() { # runs [JQ]: all that are recorded.
  kube get workloadprofiles -o json | jq -r "[.items[].spec.runs // [] | .[]] | ${1:-.}"
}
of() { runs ".[] | select(.job == \"$1\") | $2"; }   # of JOB JQ
job=ElasticHorovodJob/team-a/train
need "its run is recorded" within 150 equals 2 of "$job" .gpus
check "with the mean of its GPUs" within 150 equals 70 of "$job" .usage.gpuUtilizationPercent
check "and the busiest" within 100 equals 80 of "$job" .usage.maxGpuUtilizationPercent
check "the memory of the fullest" within 100 equals $((30000 * 1048576)) of "$job" .usage.maxGpuMemoryBytes
check "a blank is no number" equals null of "$job" .usage.memoryBandwidthPercent
cores() { awk -v cores="$(of "$job" .usage.cpuCores)" 'BEGIN {exit !(cores > 3 && cores < 5)}'; }
check "the cores of both workers, each counted once" within 100 cores
check "the type of its GPUs" equals NVIDIA-A100-SXM4-80GB of "$job" .gpuType
check "it has not ended" equals null of "$job" .end
check "a pod without a controller is a job of its own" within 150 equals 2 of Pod/team-a/notebook .usage.gpuUtilizationPercent
check "the exporter is none" within 150 equals 5 runs length
epochs=PyTorchJob/team-a/epochs
check "what a job of another kind does" within 150 equals Training of "$epochs" .character.kind
check "in cycles of five minutes" equals 300 of "$epochs" '.character.cycleSeconds | . / 10 | round * 10'
check "what it waits for" equals Compute of "$epochs" .character.bottleneck
memory_is_predicted() { [[ $(of "$epochs" ".character.predictedMaxGpuMemoryBytes / 1048576 | . >= 10800 and . <= 11600") == true ]]; }
check "and how much memory it will have used" within 100 memory_is_predicted
check "in a sentence" prints '^training on 1 GPU in cycles of 5' of "$epochs" .character.message
check "nothing is said of a job before it has run for five minutes" equals null of "$job" .character
check "what the workload uses on such GPUs" equals 70 \
  eval "kube get workloadprofiles -o json | jq '.items[].spec | select(.runs[0].gpus == 2) | .features[0].usage.gpuUtilizationPercent'"
check "a newcomer's view" prints 'train *2 *70%.*29.3Gi' "$plugin" top --kubeconfig "$KUBECONFIG" -A
check "with what it does and what holds it back" prints 'epochs .* Training *Compute' "$plugin" top --kubeconfig "$KUBECONFIG" -A
check "of one namespace" prints 'nothing' "$plugin" top --kubeconfig "$KUBECONFIG" -n default

# --- Alnair's annotations
# The manager writes eight a second: what stands on one object says nothing yet of the next.
note() { kube -n team-a get "$1" "$2" -o json | jq -r --arg name "$3" '.metadata.annotations[$name] // "none"'; }   # of KIND NAME
on_pod() { note pod "$1" "alnair.centaurusinfra.io/$2"; }
check "what a pod's GPU did, where no process is known" within 150 equals "{'gpu_0': 80}" on_pod train-workers-0 gpu_util
check "a blank is no number here either" equals none on_pod train-workers-0 gpu_mem_util
# Rates of counters that are scraped at 5 s: a bit more or less.
check "its cores in percent" prints '^[23][0-9][0-9]\.[0-9]*$' on_pod train-workers-0 max_cpu_util
check "what it sent, in MB/s" prints '^[12]\.[0-9]*$' on_pod train-workers-0 max_network_mbps
check "a time of writing that nobody counts is not 0" equals none on_pod train-workers-0 max_disk_io
check "of each process, where they are known" within 100 equals "{'gpu_3_4711': 11}" on_pod shared-0 gpu_util
check "its memory controller's share" within 100 equals "{'gpu_3_4711': 7}" on_pod shared-0 gpu_mem_util
check "on the job" within 100 prints "^{.*'node-.-gpu-0_mem_mb': 20000.0, 'node-.-gpu-0_util': 80.0, 'node': 'node-.'}\$" \
  note ehj train ai.centaurus.io/train-workers-0
check "of each of its pods" within 100 prints "'node-.-gpu-0_util': 60.0" note ehj train ai.centaurus.io/train-workers-1
check "on a StatefulSet that is listed" within 100 prints "'node-.-gpu-3_mem_mb': 1024.0, 'node-.-gpu-3_util': 97.0" note statefulset shared ai.centaurus.io/shared-0
check "on a Job" within 100 prints "'node-.-gpu-0_util': 40.0" note job batch "ai.centaurus.io/$batch"
check "on a kind of others" within 100 prints "'ghost-gpu-0_util': 9[58].0" note pytorchjob epochs ai.centaurus.io/epochs-0
every_dict() { kube -n team-a get pods,ehj,jobs,statefulsets,pytorchjobs -o json |
  jq -r '.items[].metadata.annotations // {} | to_entries[] | select(.key | test("^ai.centaurus.io/|gpu_.*util$")).value'; }
number='[0-9]+(\.[0-9]+)?'
other_texts() { every_dict | grep -vE "^\{'[^']+': $number(, '[^']+': $number)*(, 'node': '[^']+')?\}\$"; }
check "all are dicts as Python writes them" fails other_texts
check "they are many" eval '(( $(every_dict | wc -l) >= 8 ))'
if python3 -c 'import ast' 2>/dev/null; then
  literal_eval() { every_dict | python3 -c 'import ast, sys; [ast.literal_eval(line) for line in sys.stdin]'; }
  check "and Python reads them" literal_eval
fi
check "no controller took them for news: the pods are the same" equals "$pods_before" their_pods
check "nor is there another generation" equals '1 1' \
  eval "kube -n team-a get statefulset/shared job/batch -o 'jsonpath={.items[*].metadata.generation}'"
versions() { kube -n team-a get pod/shared-0 pod/train-workers-0 statefulset/shared -o 'jsonpath={.items[*].metadata.resourceVersion}'; }
versions_before=$(versions) versions_since=$SECONDS

# --- a NodePool whose nodes are scored by what is measured
for node in measured-1 measured-2 measured-3; do
  need "node $node" kube create -f - <<<"{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"$node\", \"labels\": {\"pool\": \"measured\"}},
    \"spec\": {\"taints\": [{\"key\": \"played\", \"effect\": \"NoSchedule\"}]}}"
  need "its GPUs" kube patch node "$node" --subresource=status --type=merge -p '{"status": {"capacity": {"nvidia.com/gpu": "4"}, "allocatable": {"nvidia.com/gpu": "4"}}}'
done
need "the pool" kube create -f - <<'EOT'
{"apiVersion": "ai.centauruscloud.io/v1alpha1", "kind": "NodePool", "metadata": {"name": "measured"},
  "spec": {"nodeSelector": {"pool": "measured"}, "placement": "UtilSched"}}
EOT
scores() { # Of these three, for a pod that asks for a GPU.
  curl -fsS --max-time 5 "http://127.0.0.1:$extender/scheduler/prioritize" --data-binary @- <<'EOT' | jq -c '[.[].Score]'
{"Pod": {"metadata": {"name": "p", "namespace": "team-a", "uid": "1"}, "spec": {"containers": [
  {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}}]}},
  "NodeNames": ["measured-1", "measured-2", "measured-3"]}
EOT
}
# 65.1 + 2.5 + 0.3, 65.1 + 2.5 + 2.4, 65.1 + 5.6 + 0.3: the node exporter of measured-2 has no label, but its system a name.
check "a node is the better the more of its GPUs and CPUs is in use" within 100 equals '[0,6,10]' scores

# --- what alerts and dashboards ask for is there
launcher=$(kube -n team-a get pods -l ai.centauruscloud.io/job-name=train,ai.centauruscloud.io/role=launcher -o 'jsonpath={.items[0].metadata.name}')
for step in {1..40}; do
  echo "$(date -u -d "-$((410 - 10 * step)) seconds" +%Y-%m-%dT%H:%M:%S.%NZ) stdout F step $step/400 loss 2.3"
done >>"$("$cluster" pod-log "$launcher" --namespace team-a --name "$cluster_name")"
cat >"$GRUS_STATE/nvml" <<'EOT'
driver version=580.95.05
gpu uuid=GPU-1 model=A100 util=37 memutil=12 used=1024 total=4096 power=250000 pcierx=10 pcietx=20 nvrx=1 nvtx=2
xid gpu=0 code=79 id=1
EOT
LD_LIBRARY_PATH=build/release/bin/fake-nvml GRUS_FAKE_NVML=$GRUS_STATE/nvml build/release/bin/grus-node-agent --node-name=node-0 \
  --metrics-bind-address=127.0.0.1:0 --kubeconfig="$KUBECONFIG" >"$GRUS_STATE/agent.log" 2>&1 &
agent_pid=$!
need "the agent serves" within 20 grep -q metrics_port= "$GRUS_STATE/agent.log"
echo "[{\"targets\": [\"127.0.0.1:$(sed -nE 's/.*metrics_port=([0-9]+).*/\1/p' "$GRUS_STATE/agent.log")\"], \"labels\": {\"node\": \"node-0\"}}]" >"$GRUS_STATE/agent.json"
finds() { [[ $(tests/charts/prometheus promtool query instant "http://127.0.0.1:$listen" "$1" 2>&1) == *'=>'* ]]; }   # finds QUERY
check "the agent's GPUs" within 30 finds grus_gpu_nvlink_receive_bytes_total
check "the job's step" within 100 finds grus_job_step
mapfile -t queries < <(jq -r '.panels[].targets[]?.expr' "$chart"/dashboards/gpu*.json |
  sed -E 's/[$]namespace/grus-system/g; s/[$]job/grus-metrics/g; s/[$]__rate_interval/1m/g; s/[$](team|name|node)/.*/g')
check "there are queries" test "${#queries[@]}" -gt 15
for query in "${queries[@]}"; do
  check "$query" within 60 finds "$query"
done
check "one with a label that is not there would not" fails finds 'grus_job_gpus{job_kind="mystery"}'
# What alerts_test.yaml tries them with: names and labels, but for those that the scrape adds.
labelled() { sed -nE 's/^(grus_job_(gpu|step)[a-z_]*)\{([^}]*)\}.*/\1 \3/p' | sed -E 's/(namespace|job|instance)="[^"]*",? ?//g; s/="[^"]*"//g; s/,? *$//; s/, ?/,/g' | sort -u; }
tried_with() { sed -nE "s/.*series: '([^']*)'.*/\\1/p" tests/charts/alerts_test.yaml | labelled; }
exported() { http "$(port metrics)" /metrics | tr -d '\r' | labelled; }
check "alerts are tried with the manager's labels" equals "$(tried_with)" exported
for metric in $(grep -oE 'grus_job_[a-z_]+' "$chart/files/alerts.yaml" | sort -u); do
  check "alerts look at $metric" finds "$metric{namespace=\"grus-system\", job=\"grus-metrics\"}"
done
check "and at the agent's problems, as they are tried" within 60 finds 'max by (node, reason) (grus_node_gpu_problems{node="node-0", reason="GpuSick"}) > 0'
for metric in $(grep -oE 'grus_node_[a-z_]+' "$chart/files/alerts.yaml" | sort -u); do
  check "alerts look at $metric" finds "$metric"
done
stop "$agent_pid"
agent_pid=''
need "a sweep has passed" within 100 eval '(( SECONDS - versions_since > 70 ))'
check "what does not move is not written again" equals "$versions_before" versions

# --- Prometheus goes, and comes back empty
stop "$prometheus_pid"
prometheus_pid=''
check "that it does not answer is told" within 150 grep -q 'what jobs use is not known' "$log"
rm -rf -- "$GRUS_STATE/tsdb"
start_prometheus

# --- the end
need "the job is deleted" kube -n team-a delete ehj train
ended() { [[ $(of "$job" .end) != null ]]; }
check "its run stays, and has ended" within 200 ended
check "it was deleted" equals Deleted of "$job" .outcome
check "its numbers stay" equals 80 of "$job" .usage.maxGpuUtilizationPercent
check "the log says each failure once" equals 1 eval "grep 'what jobs use is not known' '$log' | grep -c '\"highest GPU utilisation\"'"

finish
