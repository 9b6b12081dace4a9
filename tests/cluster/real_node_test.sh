#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks clusters with a real node: what runs on it, that it comes back, and that nothing of it stays. Takes about 100 s
# once the programs are built. Needs root and what scripts/install-packages --real-node installs; where that is not to
# be had, GRUS_REAL_NODE=off leaves this test out.
set -uo pipefail

here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
cluster=$here/cluster
# shellcheck source=tests/kit/check.sh
source "$here/../kit/check.sh"

if [[ ${GRUS_REAL_NODE:-} == off ]]; then
  echo "NOT RUN: GRUS_REAL_NODE is off, so nothing is known of real nodes"
  finish
fi

GRUS_STATE=$(mktemp -d "${TMPDIR:-/tmp}/grus-real-node-test.XXXXXX")
export GRUS_STATE
cleanup() {
  "$cluster" down --all >/dev/null 2>&1
  rm -rf -- "$GRUS_STATE" "$scratch"
}
scratch=$(mktemp -d)
trap cleanup EXIT

kube() { "$cluster" kubectl --name one -- "$@"; }
on_node() { "$cluster" node-exec --name one -- "$@"; }
pid_of() { "$cluster" status --name "$1" 2>/dev/null | awk -v name="$2" '$1 == name {print $4}'; }
is() { equals "$2" kube get "$1" -o "jsonpath={$3}"; }   # is OBJECT WANT PATH
gpus() { kube get node real-0 -o 'jsonpath={.status.capacity.nvidia\.com/gpu} {.status.allocatable.nvidia\.com/gpu}'; }

# --- what of it would be left on the machine
machine() { # All that a node could change, less what names a cluster of somebody else.
  iptables-save
  grep -E " ($GRUS_STATE|/run|/var/lib|/var/log|/proc)" /proc/mounts
  head -v /proc/sys/net/ipv4/ip_forward /proc/sys/vm/overcommit_memory /proc/sys/kernel/{panic,panic_on_oops,hostname}
  ls -d /run/{containerd,netns,xtables.lock} /var/lib/{cni,containerd,kubelet} /var/log/{pods,containers} 2>/dev/null
}
same_machine() { diff "$scratch/machine" <(machine); }
id_of() { sed -n 's|^cgroupRoot: /||p' "$GRUS_STATE/$1/node/kubelet.yaml"; }
processes_in() { # processes_in PIDSPACE: all that run there, less zombies, which the machine's first process collects.
  local process command
  for process in /proc/[0-9]*; do
    [[ $(readlink "$process/ns/pid" 2>/dev/null) == "$1" ]] || continue
    command=$(tr '\0' ' ' 2>/dev/null <"$process/cmdline")
    [[ -z $command ]] || echo "$process $command"
  done
}
traces() { # traces ID PIDSPACE: what is left of a node.
  [[ $1 == grus* && $2 == pid:* ]] || { echo "'$1' '$2' is no node"; return 1; }
  ip -brief link show dev "$1" 2>/dev/null
  find /sys/fs/cgroup -name "$1"
  processes_in "$2"
}
space_of() { readlink "/proc/$(pid_of "$1" node-init)/ns/pid"; }
machine >"$scratch/machine"

if ! output=$("$cluster" up --name one --real-node --real-gpus 4 2>&1); then
  echo "NOT RUN: this machine cannot have a real node; GRUS_REAL_NODE=off leaves this test out. The reason:"
  echo "$output"
  failed=1
  finish
fi

# --- the node
check "the node is there, with its GPUs" equals "4 4" gpus
check "status shows its programs" prints "kubelet  *running" "$cluster" status --name one
check "up again says that it is up" prints "already up" "$cluster" up --name one --real-node --real-gpus 4
check "another number of GPUs is refused" prints "cannot change" "$cluster" up --name one --real-node
check "it is not tainted" is node/real-0 "" .spec.taints
check "kwok nodes beside it" "$cluster" nodes 2 --gpus 4 --name one
check "kwok has nothing to do with it" fails kube get node real-0 -o 'jsonpath={.metadata.annotations.kwok\.x-k8s\.io/node}' --allow-missing-template-keys=false

# --- an image, and pods of it
mkdir -p "$scratch/root/bin"
cp "$(type -P busybox)" "$scratch/root/bin/"
for tool in sh ls cat wget nslookup httpd hostname sleep mkdir nc true dd; do ln -s busybox "$scratch/root/bin/$tool"; done
"$cluster" kubectl --name one -- version --client >/dev/null   # Builds it where it is not.
cp "$(readlink "/proc/$(pid_of one kube-apiserver)/exe" | xargs dirname)/kubectl" "$scratch/root/bin/"
check "an image of our own" "$cluster" make-image "$scratch/box.tar" localhost/box:1 --entrypoint /bin/sh "$scratch/root=/"
check "load it" "$cluster" load-image "$scratch/box.tar" --name one
check "what is no image is refused" prints "load image" "$cluster" load-image "$here/README.md" --name one
kube apply -f - >/dev/null <<'YAML'
apiVersion: v1
kind: Service
metadata: {name: w}
spec: {clusterIP: None, selector: {app: w}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: w}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: w}
spec:
  serviceName: w
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: w}}
  template:
    metadata: {labels: {app: w}}
    spec:
      nodeSelector: {grus.test/real: "true"}
      containers:
      - name: main
        image: localhost/box:1
        imagePullPolicy: Never
        args: [-c, "trap exit TERM; echo hello from $(hostname); mkdir /www; hostname >/www/index.html; httpd -p 8080 -h /www; while :; do sleep 0.2; done"]
        readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
        resources: {limits: {nvidia.com/gpu: 2}}
YAML
run() { # run NAME COMMAND: a pod on the real node that runs a shell command, without GPUs.
  kube run "$1" --image=localhost/box:1 --image-pull-policy=Never --restart=Never \
    --overrides='{"spec": {"nodeSelector": {"grus.test/real": "true"}}}' -- -c "$2" >/dev/null
}
check "two pods run" kube rollout status statefulset/w --timeout=60s
check "kubectl logs" within 5 equals "hello from w-0" kube logs w-0
check "kubectl exec" equals w-1 kube exec w-1 -- hostname
check "a pod finds another by the name of a headless Service" within 30 equals w-0 kube exec w-1 -- wget -qO- http://w-0.w.default.svc.cluster.local:8080
check "a Service by its short name" within 30 prints '^w-[01]$' kube exec w-1 -- wget -qO- http://web
check "a name that is not there does not resolve" fails kube exec w-1 -- nslookup nobody.default.svc.cluster.local
check "it knows the API server's address" equals 10.0.0.1 kube exec w-1 -- sh -c 'echo $KUBERNETES_SERVICE_HOST'
check "and is known there" prints system:serviceaccount:default:default kube exec w-1 -- kubectl auth whoami
check "the API server reaches a pod" equals w-0 kube get --raw /api/v1/namespaces/default/pods/w-0:8080/proxy/
port_forward() {
  local port result=0
  "$cluster" kubectl --name one -- port-forward pod/w-0 :8080 >"$scratch/forward" &
  within 10 grep -q Forwarding "$scratch/forward" || result=1
  port=$(sed -n 's/^Forwarding from 127.0.0.1:\([0-9]*\).*/\1/p' "$scratch/forward")
  equals w-0 busybox wget -qO- "http://127.0.0.1:$port" || result=1
  kill $! && wait $! 2>/dev/null
  return "$result"
}
check "kubectl port-forward" port_forward
kube run greedy --image=localhost/box:1 --overrides='{"spec": {"nodeSelector": {"grus.test/real": "true"}, "containers":
  [{"name": "greedy", "image": "localhost/box:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}' >/dev/null
check "a fifth GPU is not there" within 10 prints "Insufficient nvidia.com/gpu" \
  kube get pod greedy -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}'
run bad 'echo oh; exit 3'
check "a pod that fails tells its exit code" within 20 is pod/bad 3 '.status.containerStatuses[0].state.terminated.exitCode'
check "and keeps its log" equals oh kube logs bad
kube run none --image=localhost/none:1 --image-pull-policy=Never --overrides='{"spec": {"nodeName": "real-0"}}' >/dev/null
check "an image that was not loaded is missed" within 20 \
  is pod/none ErrImageNeverPull '.status.containerStatuses[0].state.waiting.reason'
kube run fake --image=none --overrides='{"spec": {"nodeSelector": {"type": "kwok"}}}' >/dev/null
check "pods of kwok run beside" kube wait pod/fake --for=condition=Ready --timeout=20s
echo '2026-01-02T03:04:05Z stdout F played' >"$("$cluster" pod-log fake --name one)"
check "with their logs" within 10 equals played kube logs fake
kube delete pod bad none fake greedy --wait=false >/dev/null
check "deleted pods go" kube wait pod/bad pod/none pod/fake pod/greedy --for=delete --timeout=20s

# --- the node from inside
check "node-exec is on the node" equals real-0 on_node hostname
check "which has a bridge that the machine has not" prints cni0 on_node ip -brief link
check "node-exec passes input" equals hi eval 'echo hi | on_node cat'
check "and the exit status" eval 'on_node sh -c "exit 7"; [[ $? == 7 ]]'
check "the machine's settings, rules and mounts are as before" same_machine

# --- a bad network
address=$(kube get pod w-0 -o 'jsonpath={.status.podIP}')
trips() { busybox ping -c "$1" -i 0.03 -W 1 "$address"; }
net() { "$cluster" node-net --name one "$@"; }
average() { trips 3 | sed -n 's|.*min/avg/max = [0-9.]*/\([0-9]*\).*|\1|p'; }
between() { # between LOW HIGH COMMAND...: the number it prints.
  local low=$1 high=$2 got
  shift 2
  got=$("$@") && [[ -n $got ]] && ((got >= low && got <= high)) || { echo "not between $low and $high: $got"; return 1; }
}
check "the network is fast" between 0 20 average
net delay 40
check "delay 40 takes so long both ways" between 80 140 average
check "status shows it" prints "node-delay  *running" "$cluster" status --name one
net delay 20 loss 50
check "with loss 50, a quarter of the trips succeeds" between 5 60 eval "trips 100 | grep -c 'bytes from'"
net cut
check "cut, none comes through" prints " 100% packet loss" trips 3
check "nor do logs" fails timeout 3 "$cluster" kubectl --name one -- logs w-0
check "pods still reach each other" equals w-1 on_node busybox wget -qO- "http://$(kube get pod w-1 -o 'jsonpath={.status.podIP}'):8080"
net heal
check "healed, all do" prints " 0% packet loss" trips 3
check "and logs come" within 10 equals "hello from w-0" kube logs w-0
check "a fault that is none is refused" prints "node-net: say cut" net sever
check "nothing of it is left" equals "" on_node sh -c 'iptables -t mangle -S GRUS-NET | grep -v ^-N; pgrep -f [n]ode-delay || true'

# --- a second one beside it
"$cluster" up --name two --real-node >"$scratch/two" 2>&1 &
wait $!
check "a second cluster with a real node" grep -q "is up after" "$scratch/two"
check "has other addresses" fails equals "$(kube get node real-0 -o 'jsonpath={.status.addresses[0].address}')" \
  "$cluster" kubectl --name two -- get node real-0 -o 'jsonpath={.status.addresses[0].address}'

# --- a node falls silent, which takes a minute to be seen; meanwhile:
two() { "$cluster" kubectl --name two -- "$@"; }
"$cluster" nodes 2 --name two >/dev/null
"$cluster" node-net cut --name two

# --- what dies comes back
container() { kube get pod w-0 -o 'jsonpath={.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}'; }
before=$(container)
for program in kubelet containerd coredns kube-proxy; do
  kill -KILL "$(pid_of one $program)"
  check "status misses $program" within 5 prints "$program is dead" "$cluster" status --name one
  check "up starts it again" prints "starting $program" "$cluster" up --name one
done
check "containers do not notice" equals "$before" container
check "the GPUs are there" equals "4 4" gpus
check "exec works" kube exec w-0 -- true
check "names resolve" within 10 equals w-1 kube exec w-0 -- wget -qO- http://w-1.w:8080

space=$(space_of one)
kill -KILL "$(pid_of one node-init)"
check "without its first process the node is gone" within 10 equals "" processes_in "$space"
check "status says so" prints "node-init is dead" "$cluster" status --name one
check "and node-exec" prints "is dead; start it again" on_node true
check "the other cluster is fine" "$cluster" status --name two
check "up makes it again" prints "starting node-init" "$cluster" up --name one --real-node --real-gpus 4
check "with its GPUs" equals "4 4" gpus
restarted() { [[ $(kube get pods -l app=w -o 'jsonpath={.items[*].status.containerStatuses[0].restartCount}') == "1 1" ]]; }
check "its pods start again" within 30 restarted
check "and are ready" kube wait pod -l app=w --for=condition=Ready --timeout=30s
check "on a network that works" within 20 equals w-1 kube exec w-0 -- wget -qO- http://w-1.w:8080

# --- the silent node
check "a silent node turns NotReady" two wait node/real-0 --for=condition=Ready=Unknown --timeout=90s
check "those of kwok do not" two wait node/node-0 node/node-1 --for=condition=Ready --timeout=1s
"$cluster" node-net heal --name two
check "healed, it is Ready again" two wait node/real-0 --for=condition=Ready --timeout=30s

# --- `up` dies on its way
for after in "starting node-init" "starting etcd" "starting kube-controller-manager"; do
  rm -f -- "$scratch/three"   # Else what the one before said may be read before this one begins.
  "$cluster" up --name three --real-node >"$scratch/three" 2>&1 &
  up=$!
  check "it comes to \"$after\"" within 60 grep -q "$after" "$scratch/three"
  kill -KILL "$up"
  wait "$up" 2>/dev/null
  id=$(id_of three) space=$(space_of three)
  check "killed after \"$after\", down cleans up" prints "cluster three is down" "$cluster" down --name three
  check "nothing of it is left" equals "" traces "$id" "$space"
done

# --- the end
id=$(id_of one) space=$(space_of one)
check "down" prints "cluster one is down" "$cluster" down --name one
check "nothing of the node is left" equals "" traces "$id" "$space"
check "down again is no error" prints "there is no cluster one" "$cluster" down --name one
check "the other cluster is fine" "$cluster" status --name two
id=$(id_of two) space=$(space_of two) processes=$(grep -o '"pid": [0-9]*' "$GRUS_STATE/two/state.json" | grep -o '[0-9]*')
# shellcheck disable=SC2086 # One word a pid.
kill -KILL $processes
check "all of it killed, down cleans up" prints "cluster two is down" "$cluster" down --name two
check "nothing of it is left" equals "" traces "$id" "$space"
check "the machine is as before" same_machine

# --- who cannot
program=$(readlink -f "$(ls -t "${GRUS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/grus}"/command/* | head -n 1)")
cp "$program" "$scratch/cluster"
chmod 755 "$scratch"
somebody() { GRUS_CLUSTER_SOURCE=$here GRUS_CACHE=$scratch GRUS_STATE=$scratch setpriv --reuid 65534 --clear-groups "$scratch/cluster" "$@"; }
check "who is not root is told" prints "needs root" somebody up --real-node
check "and fails" fails somebody up --real-node
bare() { GRUS_CLUSTER_SOURCE=$here PATH=$scratch "$scratch/cluster" up --real-node; }
check "what is missing is named, with the remedy" \
  prints "missing here: containerd, ctr, .*runc.*scripts/install-packages --real-node" bare
check "a state folder that the node hides is refused" \
  prints "is not visible from a real node" env GRUS_STATE=/var/lib/grus "$cluster" up --real-node

finish
