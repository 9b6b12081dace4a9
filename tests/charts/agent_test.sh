#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What grus-node-agent may write, with the chart's account on a real control plane: labels and annotations of its own node
# and events about it, and nothing else. Then grus-node-agent itself, with the fake driver. Takes a minute and a half.
# shellcheck disable=SC2317 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

name=agent
# shellcheck source=tests/charts/cluster.sh
source tests/charts/cluster.sh
bin=build/release/bin
agent_pid=
trap '[[ -z $agent_pid ]] || kill "$agent_pid" 2>/dev/null; clean_up' EXIT

start_cluster 2 grus-system
need "helm install" "$helm" install grus "$chart" --namespace grus-system --timeout 60s --set replicas=0,nodeAgent.enabled=true
agent_on() { # agent_on NODE: the name of its pod.
  kube -n grus-system get pods -l app.kubernetes.io/name=grus-node-agent --field-selector "spec.nodeName=$1" \
    -o 'jsonpath={.items[*].metadata.name}'
}
for node in node-0 node-1; do need "the agent of $node" within 60 prints '^grus-node-agent-' agent_on "$node"; done

# account FILE FLAG...: the kubeconfig of the agents' account, with a token that `kubectl create token FLAG...` gives.
account() {
  local token
  token=$(kube -n grus-system create token grus-node-agent "${@:2}") || return 1
  cp -- "$KUBECONFIG" "$1" || return 1
  kube --kubeconfig "$1" config unset users >/dev/null || return 1
  kube --kubeconfig "$1" config set-credentials agent --token "$token" >/dev/null || return 1
  kube --kubeconfig "$1" config set-context --current --user agent >/dev/null
}
own=$GRUS_STATE/own stray=$GRUS_STATE/stray
need "a token of the pod on node-0, as its kubelet asks for it" account "$own" --bound-object-kind Pod \
  --bound-object-name "$(agent_on node-0)"
need "and one of no pod" account "$stray"

patched() { kube --kubeconfig "$1" patch node "$2" --type merge -p "$3" "${@:4}"; }   # patched KUBECONFIG NODE PATCH [FLAG...]
labels() { printf '{"metadata": {"labels": {%s}}}' "$1"; }
annotations() { printf '{"metadata": {"annotations": {%s}}}' "$1"; }
its_labels='"nvidia.com/gpu.product": "H100", "nvidia.com/gpu.count": "2", "nvidia.com/gpu.memory": "81920", "nvidia.com/cuda.driver-version.full": "580.95.05"'
its_annotations='"ai.centauruscloud.io/gpu-labels": "x", "ai.centaurus.io/gpu-static": "x", "ai.centaurus.io/gpu-0": "x", "ai.centaurus.io/gpu-15": "x"'
none_of() { sed -E 's/: "[^"]*"/: null/g' <<<"$1"; }
policy=grus-system.grus-node-agent

need "the policy comes into force" within 30 prints 'may change only its own labels' patched "$own" node-0 "$(labels '"a": "b"')"
check "the API server understands all of it" equals '{}' \
  kube get validatingadmissionpolicy "$policy" -o 'jsonpath={.status.typeChecking}'

# --- its own node
check "it reads its node" kube --kubeconfig "$own" get node node-0
check "it writes its labels" patched "$own" node-0 "$(labels "$its_labels")"
check "so that they are there" equals 'H100 2 81920 580.95.05' kube get node node-0 -o \
  'jsonpath={.metadata.labels.nvidia\.com/gpu\.product} {.metadata.labels.nvidia\.com/gpu\.count} {.metadata.labels.nvidia\.com/gpu\.memory} {.metadata.labels.nvidia\.com/cuda\.driver-version\.full}'
check "and its annotations" patched "$own" node-0 "$(annotations "$its_annotations")"
check "it takes the labels away" patched "$own" node-0 "$(labels "$(none_of "$its_labels")")"
check "and the annotations" patched "$own" node-0 "$(annotations "$(none_of "$its_annotations")")"
need "a label and an annotation of somebody else" patched "$KUBECONFIG" node-0 \
  '{"metadata": {"labels": {"mine": "yes"}, "annotations": {"mine": "yes"}}}'
while IFS='#' read -r what patch reason; do
  check "refused: $what" prints "denied request: grus-node-agent may change $reason" patched "$own" node-0 "$patch"
done <<EOT
another label#$(labels '"team": "a"')#only its own labels
a label by which pods choose nodes#$(labels '"node-role.kubernetes.io/gpu": ""')#only its own labels
another label of NVIDIA#$(labels '"nvidia.com/gpu.present": "true"')#only its own labels
a label that begins like its own#$(labels '"nvidia.com/gpu.count.x": "true"')#only its own labels
a change of a label#$(labels '"mine": "no"')#only its own labels
a label taken away#$(labels '"mine": null')#only its own labels
another label beside its own#$(labels "$its_labels, \"team\": \"a\"")#only its own labels
another annotation#$(annotations '"team": "a"')#only its own annotations
an annotation that begins like its own#$(annotations '"ai.centaurus.io/gpu-0x": "a"')#only its own annotations
a change of an annotation#$(annotations '"mine": "no"')#only its own annotations
an annotation taken away#$(annotations '"mine": null')#only its own annotations
a taint#{"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}#nothing but
a cordon#{"spec": {"unschedulable": true}}#nothing but
a finalizer#{"metadata": {"finalizers": ["example.com/wait"]}}#nothing but
an owner#{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "x"}]}}#nothing but
EOT

# --- all else
check "refused: its labels on another node" prints 'the token names node-0' patched "$own" node-1 "$(labels "$its_labels")"
check "refused: a token that names no node" prints 'the token names none' patched "$stray" node-0 "$(labels "$its_labels")"
check "it has no right on the status" prints 'cannot [a-z]* resource "nodes/status"' \
  patched "$own" node-0 '{"status": {"phase": "Running"}}' --subresource status
check "nor to delete" prints 'cannot delete resource "nodes"' kube --kubeconfig "$own" delete node node-0
check "nor to list" prints 'cannot list resource "nodes"' kube --kubeconfig "$own" get nodes
check "nor to write events elsewhere" equals no eval "kube --kubeconfig $own auth can-i create events.events.k8s.io -n grus-system || true"
need "if it had these rights" kube create clusterrole too-much --verb='*' --resource=nodes,nodes/status
need "by a mistake" kube create clusterrolebinding too-much --clusterrole=too-much --serviceaccount=grus-system:grus-node-agent
check "the policy refuses a status" within 20 prints 'denied request: grus-node-agent may change only the node' \
  patched "$own" node-0 '{"status": {"phase": "Running"}}' --subresource status
check "and a deletion" prints 'denied request' kube --kubeconfig "$own" delete node node-0
check "and a new node" prints 'denied request' kube --kubeconfig "$own" create -f - <<<'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0x"}}'
kube delete clusterrolebinding,clusterrole too-much >/dev/null
check "others are of no concern to it" patched "$KUBECONFIG" node-1 "$(labels '"nvidia.com/gpu.present": "true"')"

# --- grus-node-agent: one of the node's two GPUs has an error
printf '%s\n' 'driver version=580.95.05' \
  'gpu uuid=GPU-a model=TITAN used=1 total=12788432896 pciegen=3 pcielanes=16' \
  'gpu uuid=GPU-b model=TITAN used=1 total=12788432896 pciegen=3 pcielanes=16' 'xid gpu=1 code=48 id=1' >"$GRUS_STATE/nvml"
start_agent() {
  LD_LIBRARY_PATH=$bin/fake-nvml GRUS_FAKE_NVML=$GRUS_STATE/nvml "$bin/grus-node-agent" --node-name=node-0 --alnair-annotations \
    --metrics-bind-address=127.0.0.1:0 --kubeconfig="$own" >"$GRUS_STATE/agent.log" 2>&1 &
  agent_pid=$!
}
start_agent
check "it labels its node" within 30 equals 'TITAN 2 12196' kube get node node-0 -o \
  'jsonpath={.metadata.labels.nvidia\.com/gpu\.product} {.metadata.labels.nvidia\.com/gpu\.count} {.metadata.labels.nvidia\.com/gpu\.memory}'
check "and annotates it" equals "{'count': '2', 'model': 'TITAN', 'mem_size': '12GB', 'pcie_gen_width': '3x16'}" \
  kube get node node-0 -o 'jsonpath={.metadata.annotations.ai\.centaurus\.io/gpu-static}'
check "kubectl describe shows what is wrong" within 20 prints 'Warning *GpuSick .*Xid 48 of GPU 1 (GPU-b)' kube describe node node-0
check "nothing was forbidden to it" fails grep -i -e forbidden -e 'may not' "$GRUS_STATE/agent.log"
((failed == 0)) || tail -n 5 "$GRUS_STATE/agent.log" | sed 's/^/      log: /'
kill "$agent_pid" && wait "$agent_pid"
check "it ends well" equals 0 echo $?

# --- parts of GPUs: what it and others may write of pods
for pod in here there; do
  node=node-0
  [[ $pod == here ]] || node=node-1
  need "a pod on $node" kube create -f - <<EOT
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$pod", "annotations": {"mine": "yes"}},
 "spec": {"nodeName": "$node", "containers": [{"name": "main", "image": "localhost/x:1"}]}}
EOT
done
noted() { kube --kubeconfig "$1" patch pod "$2" --type merge -p "$3" "${@:4}"; }   # noted KUBECONFIG POD PATCH [FLAG...]
its_notes='"sharing.ai.centauruscloud.io/gpus": "x", "sharing.ai.centauruscloud.io/enforcement": "None", "ai.centaurus.io/alnair-gpu-id": "x", "ai.centaurus.io/alnair-id": "x", "ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"'
check "unless asked for, it has no right to write pods" equals no eval "kube --kubeconfig $own auth can-i patch pods || true"
lists_pools() { kube --kubeconfig "$own" auth can-i list nodepools.ai.centauruscloud.io || true; }
check "nor to list NodePools" equals no lists_pools
check "and cannot" prints 'cannot [a-z]* resource "pods"' noted "$own" here "$(annotations "$its_notes")"
old_pod=$(agent_on node-0)
check "helm upgrade, with parts of GPUs" "$helm" upgrade grus "$chart" --namespace grus-system --timeout 60s \
  --set replicas=0,nodeAgent.enabled=true,nodeAgent.sharing.enabled=true
is_replaced() { [[ $(agent_on node-0) == grus-node-agent-* && $(agent_on node-0) != *"$old_pod"* ]]; }
need "the pod of the agent is a new one" within 90 is_replaced
need "and its token" account "$own" --bound-object-kind Pod --bound-object-name "$(agent_on node-0)"
need "the policies come into force" within 30 prints 'may change only its own annotations of the pod' noted "$own" here "$(annotations '"a": "b"')"
need "also that for others" within 30 prints 'only grus writes them' noted "$KUBECONFIG" here "$(annotations "$its_notes")"
for which in pods notes; do
  check "the API server understands all of $which" equals '{}' \
    kube get validatingadmissionpolicy "$policy-$which" -o 'jsonpath={.status.typeChecking}'
done
check "it says which GPU a pod of its node has" noted "$own" here "$(annotations "$its_notes")"
check "and takes it back" noted "$own" here "$(annotations "$(none_of "$its_notes")")"
while IFS='#' read -r what pod patch reason; do
  check "refused: $what" prints "denied request: grus-node-agent may change $reason" noted "$own" "$pod" "$patch"
done <<EOT
a pod of another node#there#$(annotations "$its_notes")#only pods of the node
another annotation of a pod#here#$(annotations '"team": "a"')#only its own annotations of the pod
when gpushare assumed its GPU#here#$(annotations '"ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1"')#only its own annotations of the pod
the GPU that the manager plans#here#$(annotations '"sharing.ai.centauruscloud.io/planned-gpu": "x"')#only its own annotations of the pod
an annotation of a pod taken away#here#$(annotations '"mine": null')#only its own annotations of the pod
a label of a pod#here#$(labels '"team": "a"')#nothing but annotations of the pod
a finalizer of a pod#here#{"metadata": {"finalizers": ["example.com/wait"]}}#nothing but annotations of the pod
a deadline#here#{"spec": {"activeDeadlineSeconds": 100}}#nothing but annotations of the pod
EOT
check "refused: a token that names no node, for a pod" prints 'the token names none' noted "$stray" here "$(annotations "$its_notes")"
check "refused: the manager, too, if a template says so" prints 'only grus writes them' kube create --as system:serviceaccount:grus-system:grus -f - <<'EOT'
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "copied", "annotations": {"sharing.ai.centauruscloud.io/gpus": "{}"}},
 "spec": {"containers": [{"name": "main", "image": "localhost/x:1"}]}}
EOT
check "refused: a user who says which GPU it has" prints 'only grus writes them' kube create -f - <<'EOT'
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "liar", "annotations": {"sharing.ai.centauruscloud.io/planned-gpu": "GPU-a"}},
 "spec": {"containers": [{"name": "main", "image": "localhost/x:1"}]}}
EOT
with_memory() { # with_memory NAME MIB [paged] [LIMITS]
  kube create -f - <<EOT
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1", "annotations": {"sharing.ai.centauruscloud.io/${3:-memory}-mib": "$2"}},
 "spec": {"containers": [{"name": "main", "image": "localhost/x:1", "resources": {"limits": {${4:-}}}}]}}
EOT
}
check "a user may say how much memory the pod gets" with_memory large 8192
check "refused: an amount that makes no sense" prints 'expected MiB of memory for each container' with_memory wrong 8Gi
check "refused: to change it afterwards" prints 'only grus writes them' noted "$KUBECONFIG" large "$(annotations '"sharing.ai.centauruscloud.io/memory-mib": "1"')"
part='"ai.centauruscloud.io/gpu-milli": 300'
check "a user may ask for memory that is paged" with_memory paged 8192 paged "$part"
check "with as much memory of the node" with_memory paged-in-room 8192 paged "$part, \"memory\": \"8Gi\""
check "refused: with less" prints 'raise resources.limits.memory to more than 8192Mi' with_memory wrong 8192 paged "$part, \"memory\": \"8191Mi\""
sidecar() { # sidecar MIB LIMITS: it asks for them.
  kube create -f - <<EOT
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "side", "annotations": {"sharing.ai.centauruscloud.io/paged-mib": "$1"}},
 "spec": {"containers": [{"name": "main", "image": "localhost/x:1"}],
  "initContainers": [{"name": "side", "image": "localhost/x:1", "restartPolicy": "Always", "resources": {"limits": {$2}}}]}}
EOT
}
check "a sidecar has what is paged, too" sidecar 8192 "$part"
check "refused: with less memory of the node" prints 'raise resources.limits.memory' sidecar 8192 "$part, \"memory\": \"1Gi\""
check "refused: without a part" prints 'no container has a limit of ai.centauruscloud.io/gpu-milli' with_memory wrong 8192 paged '"memory": "64Gi"'
check "refused: an amount of it that makes no sense" prints 'expected MiB of memory beside the part' with_memory wrong 0 paged "$part"
check "refused: to change it afterwards" prints 'only grus writes them' noted "$KUBECONFIG" paged "$(annotations '"sharing.ai.centauruscloud.io/paged-mib": "1"')"
need "what the agent wrote" noted "$own" here "$(annotations "$its_notes")"
check "refused: a user who changes it" prints 'only grus writes them' noted "$KUBECONFIG" here "$(annotations '"sharing.ai.centauruscloud.io/gpus": "y"')"
check "refused: a user who removes it" prints 'only grus writes them' noted "$KUBECONFIG" here "$(annotations '"sharing.ai.centauruscloud.io/gpus": null')"
check "others may change all else" noted "$KUBECONFIG" here "$(annotations '"mine": "still"')"
check "and delete the pod" kube delete pod here --grace-period=0 --force

# --- parts of GPUs for claims: which ResourceSlices it may write
slice() { # slice NAME NODE [DRIVER] [POOL]
  cat <<EOT
{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "$1"},
 "spec": {"driver": "${3:-gpu.ai.centauruscloud.io}", "nodeName": "$2", "pool": {"name": "${4:-$2}", "generation": 1, "resourceSliceCount": 1}, "devices": []}}
EOT
}
creates() { slice "${@:2}" | kube --kubeconfig "$1" create -f -; }   # creates KUBECONFIG NAME NODE [DRIVER] [POOL]
only='denied request: grus-node-agent may write only ResourceSlices'
need "the policy comes into force" within 30 prints "$only" creates "$own" far node-1
check "the API server understands all of it" equals '{}' \
  kube get validatingadmissionpolicy "$policy-slices" -o 'jsonpath={.status.typeChecking}'
check "it offers GPUs of its node" creates "$own" near node-0
check "refused: those of another driver" prints "$only" creates "$own" other node-0 gpu.nvidia.com
check "refused: in another node's pool" prints "$only" creates "$own" pooled node-0 gpu.ai.centauruscloud.io node-1
check "refused: a token that names no node, for a slice" prints 'the token names none' creates "$stray" stray node-0
need "a slice of another node" creates "$KUBECONFIG" far node-1
need "and one of another driver on its own" creates "$KUBECONFIG" other node-0 gpu.nvidia.com
grows='{"spec": {"pool": {"generation": 2}}}'
check "it writes its slice again" kube --kubeconfig "$own" patch resourceslice near --type merge -p "$grows"
check "refused: to change another node's" prints "$only" kube --kubeconfig "$own" patch resourceslice far --type merge -p "$grows"
check "refused: to remove another node's" prints "$only" kube --kubeconfig "$own" delete resourceslice far
check "refused: to remove another driver's" prints "$only" kube --kubeconfig "$own" delete resourceslice other
check "it removes its slice" kube --kubeconfig "$own" delete resourceslice near
check "it lists NodePools, for what they allow of memory" equals yes lists_pools
check "it reads claims" prints 'not found' kube --kubeconfig "$own" get resourceclaim none
check "but lists none, and writes none" equals no,no, eval \
  "for verb in list patch; do kube --kubeconfig $own auth can-i \$verb resourceclaims.resource.k8s.io | tr '\n' ','; done; true"

# --- with the role of an older chart
need "the role of an older chart" kube patch clusterrole grus-system:grus:node-agent --type json -p \
  '[{"op": "replace", "path": "/rules", "value": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]}]'
start_agent
check "it says what it lacks" within 30 prints 'may not label its node.*verb=get.*cannot get resource' cat "$GRUS_STATE/agent.log"
check "once" equals 1 grep -c 'may not label its node' "$GRUS_STATE/agent.log"
address=127.0.0.1:$(sed -nE 's/.*metrics_port=([0-9]+).*/\1/p' "$GRUS_STATE/agent.log")
served() { exec 3<>"/dev/tcp/${address/://}" && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3 && cat <&3; }
check "and serves metrics" prints 'grus_node_gpu_problems{reason="GpuSick"} 1' served
kill "$agent_pid" && wait "$agent_pid"
agent_pid=

finish
