# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For parts_test.sh to source: the real node, its agent, its pods, and what the kubelet has recorded.
: "${cluster:?}" "${GRUS_STATE:?}"

cluster_name=parts
work=$GRUS_STATE/work
bin=$PWD/build/release/bin
agent=
agent_arguments=()   # More of them.
agent_log=$work/agent.log
mode_label=sharing.ai.centauruscloud.io/mode
kubelet_record=/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint

kube() { "$cluster" kubectl --name "$cluster_name" -- "$@"; }
on_node() { "$cluster" node-exec --name "$cluster_name" -- "$@"; }
is() { equals "$2" kube get "$1" -o "jsonpath={$3}"; }   # is OBJECT WANT PATH
says() { prints "$2" kube get "$1" -o "jsonpath={$3}"; }   # says OBJECT PATTERN PATH

# --- GPUs: two each of 80, 40, 24 and 16 GiB; less what the driver needs, 79, 39, 23 and 15 GiB.
gpu() { printf 'GPU-8f6e1c2a-0000-4000-8000-00000000000%d' "$1"; }
gpu_sizes=(80 40 24 16 80 40 24 16)
gpu_count=8
play() { # play [FAULT]: the GPUs; the one of the line "gpu N ..." has what follows, other lines are added.
  local i more=
  {
    echo 'driver version=580.95.05'
    for ((i = 0; i < gpu_count; ++i)); do
      more=
      [[ ${1:-} != "gpu $i "* ]] || more=${1#"gpu $i "}
      echo "gpu uuid=$(gpu "$i") model=Fake used=1 total=$((gpu_sizes[i] << 30)) $more"
    done
    [[ ${1:-} == "gpu "* ]] || echo "${1:-}"
  } >"$work/nvml.new"
  mv -- "$work/nvml.new" "$work/nvml"
}
gib_of_gpus() { # As parts.jq has it.
  local i
  for ((i = 0; i < gpu_count; ++i)); do echo "{\"$(gpu "$i")\": $((gpu_sizes[i] - 1))}"; done | jq -sc add
}

# --- the agent
start_agent() {
  rm -f -- "$work/agent.pid"
  # The shell's process becomes the agent; its number is that of the node.
  # shellcheck disable=SC2016 # For that shell.
  on_node sh -c 'echo $$ >"$0"; exec "$@"' "$work/agent.pid" env LD_LIBRARY_PATH="$bin/fake-nvml" GRUS_FAKE_NVML="$work/nvml" \
    "$bin/grus-node-agent" --node-name=real-0 --share-gpus --metrics-bind-address=127.0.0.1:0 --kubeconfig="$work/kubeconfig" \
    "${agent_arguments[@]}" >>"$agent_log" 2>&1 &
  agent=$!
}
stop_agent() { # stop_agent [SIGNAL]
  [[ -n $agent ]] || return 0
  on_node kill "-${1:-TERM}" "$(<"$work/agent.pid")"
  wait "$agent" 2>/dev/null
  agent=
}
offers() { # offers GIB PERCENT: what the node may give.
  equals "$1 $2" kube get node real-0 -o 'jsonpath={.status.allocatable.alnair/vgpu-memory} {.status.allocatable.alnair/vgpu-compute}'
}
# The agent's metrics of parts: "NAME POD CONTAINER GPU NUMBER" for each, without the beginning of the name.
part_metrics() {
  local port
  port=$(sed -n 's/.*metrics_port=\([0-9]*\).*/\1/p' "$agent_log" | tail -n 1)
  on_node busybox wget -qO- "http://127.0.0.1:$port/metrics" | sed -nE \
    's/^grus_gpu_(part(less)?_[a-z_]*)\{gpu="[0-9]+",uuid="([^"]*)",namespace="default",pod="([^"]*)",container="([^"]*)"(,enforcement="None")?\} /\1 \4 \5 \3 /p' \
    | awk '{printf "%s %s %s %s %.2f\n", $1, $2, $3, $4, $5}' | sed 's/\.00$//' | sort
}
set_mode() { kube label node real-0 --overwrite "$mode_label=$1" >/dev/null; }

# --- the kubelet
pid_of() { "$cluster" status --name "$cluster_name" 2>/dev/null | awk -v name="$1" '$1 == name {print $4}'; }
restart_kubelet() {
  kill -KILL "$(pid_of kubelet)" && "$cluster" up --name "$cluster_name" --real-node --real-gpus 0
}

# --- pods
containers_of() { kube get pods -l app=parts -o 'jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[*].containerID}{"\n"}{end}'; }
record() { on_node cat "$kubelet_record"; }
part() { # part NAME LIMITS [MORE] [ANNOTATIONS]: a pod; these and MORE, fields of its container, are JSON without braces.
  cat <<JSON
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1", "labels": {"app": "parts"}, "annotations": {${4:-}}},
 "spec": {"nodeSelector": {"grus.test/real": "true"}, "terminationGracePeriodSeconds": 1, "containers": [$(container main "$2" "${3:-}")]}}
JSON
}
container() { # container NAME LIMITS [MORE]
  cat <<JSON
{"name": "$1", "image": "localhost/box:1", "imagePullPolicy": "Never", "resources": {"limits": {$2}}, "command": ["/bin/sh", "-c",
  "echo parts \$NVIDIA_VISIBLE_DEVICES \$ALNAIR_VGPU_MEMORY \${ALNAIR_VGPU_COMPUTE:-0} \$GRUS_GPU_MEMORY_MIB; exec sleep 100000"] ${3:+, $3}}
JSON
}
milli() { # milli NAME THOUSANDTHS [ANNOTATIONS] [THOUSANDTHS]: a pod; the second number is for a second container.
  # shellcheck disable=SC2016 # For the shell in the container.
  local tell='echo milli $NVIDIA_VISIBLE_DEVICES $GRUS_GPU_MILLI $GRUS_GPU_MEMORY_MIB; exec sleep 100000'
  part "$1" "\"ai.centauruscloud.io/gpu-milli\": $2" '' "${3:-}" | jq -c --arg tell "$tell" --argjson second "${4:-0}" \
    '.spec.containers[0].command[2] = $tell | .spec.containers[0] as $first
     | if $second > 0 then .spec.containers += [$first | .name = "aside" | .resources.limits["ai.centauruscloud.io/gpu-milli"] = $second] else . end'
}
after_init() { # after_init THOUSANDTHS: the pod on standard input, with an init container that asks for them.
  jq -c --argjson milli "$1" '.spec.initContainers = [.spec.containers[0] | .name = "init" | .command[2] = "exit 0"
    | .resources.limits["ai.centauruscloud.io/gpu-milli"] = $milli]'
}
# What a pod of the mode milli has, "CONTAINER GPU THOUSANDTHS MIB" for each GPU: by the kubelet's record, by the environment, by
# the annotation, by the metrics.
milli_recorded() {
  local container gpu count
  record | jq -r --arg uid "$(kube get pod "$1" -o 'jsonpath={.metadata.uid}')" '.Data.PodDeviceEntries[] | select(.PodUID == $uid and .ContainerName != "init")
      | .ContainerName as $container | [.DeviceIDs[][] | sub("_[0-9]+$"; "")] | group_by(.)[] | "\($container) \(.[0]) \(length)"' \
    | while read -r container gpu count; do
        echo "$container $gpu $count $(((gpu_sizes[${gpu: -1}] * 1024 - 500) * count / 1000))"
      done | sort
}
milli_told() {
  local container
  for container in $(kube get pod "$1" -o 'jsonpath={.spec.containers[*].name}'); do
    kube logs "$1" -c "$container" | jq -rR --arg container "$container" 'split(" ")[1:] | map(split(",")) | transpose[] | "\($container) \(join(" "))"'
  done | sort
}
milli_noted() {
  kube get pod "$1" -o 'jsonpath={.metadata.annotations.sharing\.ai\.centauruscloud\.io/gpus}' \
    | jq -r 'to_entries[] | .key as $container | .value | ., .more[]? | "\($container) \(.gpu) \(.milli) \(.memoryMiB)"' | sort
}
milli_measured() {
  part_metrics | awk -v pod="$1" '$2 == pod && $1 == "part_milli" {of[$3 " " $4] = $5}
    $2 == pod && $1 == "part_memory_limit_bytes" {mib[$3 " " $4] = $5 / 1048576} END {for (one in of) print one, of[one], mib[one]}' | sort
}
milli_agrees() { # milli_agrees POD COUNT: it has something of so many GPUs, and all that tells of it tells the same.
  local recorded
  recorded=$(milli_recorded "$1")
  [[ $(wc -l <<<"$recorded") == "$2" ]] && equals "$recorded" milli_told "$1" && equals "$recorded" milli_noted "$1" \
    && equals "$recorded" milli_measured "$1"
}
alnair() { printf '"alnair/vgpu-memory": %d, "alnair/vgpu-compute": %d' "$1" "$2"; }   # alnair GIB PERCENT
shared() { # shared NAME GIB ANNOTATIONS [GIB]: a pod of gpushare; the second number is for a second container.
  # shellcheck disable=SC2016 # For the shell in the container.
  local tell='echo share $NVIDIA_VISIBLE_DEVICES $ALIYUN_COM_GPU_MEM_IDX $ALIYUN_COM_GPU_MEM_POD $ALIYUN_COM_GPU_MEM_CONTAINER $ALIYUN_COM_GPU_MEM_DEV; exec sleep 100000'
  part "$1" "\"aliyun.com/gpu-mem\": $2" '' "$3" | jq -c --arg tell "$tell" --argjson second "${4:-0}" \
    '.spec.containers[0].command[2] = $tell | .spec.containers[0] as $first
     | if $second > 0 then .spec.containers += [$first | .name = "aside" | .resources.limits["aliyun.com/gpu-mem"] = $second] else . end'
}
assumed() { # assumed INDEX TIME: as gpushare's extender writes it.
  printf '"ALIYUN_COM_GPU_MEM_IDX": "%d", "ALIYUN_COM_GPU_MEM_ASSIGNED": "false", "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "%d"' "$1" "$2"
}
gpushare_notes() { # gpushare_notes POD
  kube get pod "$1" -o json | jq -r '.metadata.annotations | ["IDX", "POD", "DEV", "ASSIGNED"] as $keys | [.["ALIYUN_COM_GPU_MEM_" + $keys[]] // "none"] | join(" ")'
}
ids_given() { # ids_given RESOURCE: how often the one that is given most often, and how many are.
  record | jq -r --arg resource "$1" '[.Data.PodDeviceEntries[] | select(.ResourceName == $resource) | .DeviceIDs[][]]
    | "\(group_by(.) | map(length) | max) \(length)"'
}
recorded() { # What the kubelet has recorded of each container of alnair's pods, as part_metrics() says it.
  kube get pods -o json >"$work/pods.json" && record | jq -r --slurpfile pods "$work/pods.json" '
    ($pods[0].items | map({key: .metadata.uid, value: .metadata.name}) | from_entries) as $names
    | def count($resource): map(select(.resource == $resource) | .ids | length) | add // 0;
      [.Data.PodDeviceEntries[] | select($names[.PodUID]) | {pod: $names[.PodUID], container: .ContainerName, resource: .ResourceName, ids: [.DeviceIDs[][]]}]
    | group_by([.pod, .container])[] | "\(.[0].pod) \(.[0].container) \(.[0].ids[0] | sub("_[0-9]+$"; ""))" as $whose
    | "part_milli \($whose) \(count("alnair/vgpu-compute") * 10)", "part_memory_limit_bytes \($whose) \(count("alnair/vgpu-memory") * 1073741824)"' | sort
}
metrics_agree() { [[ $(recorded) == "$(part_metrics | grep -E '^part_(milli|memory_limit_bytes) ')" ]]; }
remove() { kube delete pods "$@" --timeout=60s; }   # Returns once the kubelet has ended them.
runs() { kube wait "${@/#/pod/}" --for=jsonpath='{.status.phase}'=Running --timeout=40s; }
mixed() { # mixed COUNT: as many pods, with amounts that fit together; every fifth has two containers.
  local i unit=$((80 / $1)) gib percent second pod
  ((unit > 0)) || unit=1
  for ((i = 0; i < $1; ++i)); do
    gib=$((unit * (1 + i / 2 % 3))) percent=$((unit * (1 + i % 9))) second=
    ((i % 7 != 3)) || percent=0
    ((i % 5 != 4)) || second=$(container second "$(alnair 1 "$unit")")
    pod=$(part "m$i" "$(alnair "$gib" "$percent")")
    echo "${pod/%]\}\}/${second:+, $second}]\}\}}"
  done
}
at_once() { # at_once COUNT: mixed() pods, of which the kubelet hears together.
  mixed "$1" >"$work/mixed.json"
  kube cordon real-0 && kube create -f "$work/mixed.json" && kube uncordon real-0
}
copies() { # copies NAME COUNT LIMITS: a ReplicaSet of such pods.
  part "$1" "$3" | jq --argjson count "$2" '.spec as $spec | .metadata.name as $name
    | {apiVersion: "apps/v1", kind: "ReplicaSet", metadata: {name: $name},
       spec: {replicas: $count, selector: {matchLabels: {set: $name}},
         template: {metadata: {labels: {app: "parts", set: $name}}, spec: $spec}}}'
}
agree() { # agree COUNT: so many containers hold parts, and all that tells of them tells the same.
  kube get pods -o json >"$work/pods.json" && record >"$work/record.json" || return 1
  kube logs -l app=parts --all-containers --prefix --ignore-errors >"$work/seen" 2>&1
  jq -nr --slurpfile pods "$work/pods.json" --slurpfile record "$work/record.json" --rawfile seen "$work/seen" \
    --argjson gib "$(gib_of_gpus)" -f tests/nodeagent/parts/parts.jq >"$work/verdict" || return 1
  equals "$1 containers" cat "$work/verdict"
}

start_node() {
  mkdir -p "$work/root/bin"
  need "a cluster with a real node" "$cluster" up --name "$cluster_name" --real-node --real-gpus 0
  cp "$(type -P busybox)" "$work/root/bin/"
  local tool
  for tool in sh env sleep; do ln -s busybox "$work/root/bin/$tool"; done
  need "an image" "$cluster" make-image "$work/box.tar" localhost/box:1 --entrypoint /bin/sh "$work/root=/"
  need "it is on the node" "$cluster" load-image "$work/box.tar" --name "$cluster_name"
  local kubeconfig server
  kubeconfig=$("$cluster" kubeconfig --name "$cluster_name") || finish
  server=$(awk '$1 == "server:" {print $2}' "${kubeconfig%/*}/node/kubelet.kubeconfig")   # As the node reaches it.
  sed "s#server: .*#server: $server#" "$kubeconfig" >"$work/kubeconfig"
}
