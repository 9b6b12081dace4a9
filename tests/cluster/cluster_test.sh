#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the local cluster itself: what tests, demo and benches rely on. Takes about a minute once
# the programs are built. Uses a state folder of its own and touches no other cluster.
set -uo pipefail

here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
cluster=$here/cluster
GRUS_STATE=$(mktemp -d "${TMPDIR:-/tmp}/grus-cluster-test.XXXXXX")
export GRUS_STATE
trap '"$cluster" down --all >/dev/null 2>&1; rm -rf -- "$GRUS_STATE"' EXIT

# shellcheck source=tests/kit/check.sh
source "$here/../kit/check.sh"

kube() { "$cluster" kubectl --name one -- "$@"; }


phase_is() { equals "$2" kube get pod "$1" -o 'jsonpath={.status.phase}'; }
ready_is() { equals "$2" kube get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'; }
container_is() { # container_is POD WANT FIELD: of its only container.
  equals "$2" kube get pod "$1" -o "jsonpath={.status.containerStatuses[0]$3}"
}
exit_code_is() { equals "$2" kube get pod "$1" -o 'jsonpath={.status.containerStatuses[0].state.terminated.exitCode}'; }
count_is() { # count_is WANT ARGS...: `kubectl get ARGS` lists WANT objects.
  local want=$1
  shift
  equals "$want" count_of "$@"
}
count_of() { kube get "$@" -o name | wc -l; }
pids() { grep -o '"pid": [0-9]*' "$GRUS_STATE/$1/state.json" | grep -o '[0-9]*'; }
pid_of() { grep -A1000 "\"name\": \"$2\"" "$GRUS_STATE/$1/state.json" | grep -m1 -o '"pid": [0-9]*' | grep -o '[0-9]*'; }
gone() { # gone PID...: none of them runs; a zombie that nobody collects does not count.
  local pid state
  for pid; do
    state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$pid/status" 2>/dev/null)
    [[ -z $state || $state == Z ]] || { echo "pid $pid still runs"; return 1; }
  done
}
pod() { # pod NAME [ANNOTATION]: a pod with one GPU.
  kube create -f - <<EOF
{"apiVersion": "v1", "kind": "Pod",
 "metadata": {"name": "$1", "annotations": {${2:-}}},
 "spec": {"restartPolicy": "Never", "containers": [
   {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
EOF
}

check "the programs are built" "$cluster" build
check "status without a cluster fails" fails "$cluster" status
check "an unknown flag is refused" prints "unknown flag --nme" "$cluster" up --nme x
check "a name that is a path is refused" prints "is not a name" "$cluster" up --name ../x

# --- images, which need no cluster
images=$GRUS_STATE/images
mkdir -p "$images/src/sub"
echo one >"$images/src/file"
ln "$images/src/file" "$images/src/sub/twin"
ln -s sub/twin "$images/src/link"
chmod 750 "$images/src/sub"
tar -C "$images" -cf "$images/base.tar" src
make_image() { # make_image FILE: an image of both kinds of layers.
  "$cluster" make-image "$images/$1" localhost/test:1 --env A=b --user 7 --workdir /w --entrypoint /bin/x --entrypoint --flag \
    "$images/base.tar" "$images/src=/opt/src"
}
layer() { tar -xOf "$images/one.tar" "layer-$1.tar"; }
config() { tar -xOf "$images/one.tar" --wildcards '*.json'; }
check "make-image" make_image one.tar
make_image two.tar
check "the same input gives the same bytes" cmp "$images/one.tar" "$images/two.tar"
check "a tar file is a layer as it is" cmp "$images/base.tar" <(layer 0)
check "a folder stands where it is to" \
  equals $'opt/src/\nopt/src/file\nopt/src/link\nopt/src/sub/\nopt/src/sub/twin' eval 'layer 1 | tar -t'
check "all of it is root's" equals 5 eval 'layer 1 | tar -tv --numeric-owner | grep -c " 0/0 "'
check "with its modes, links" prints '^drwxr-x--- .* opt/src/sub/$' eval 'layer 1 | tar -tv'
check "symbolic ones" prints 'opt/src/link -> sub/twin' eval 'layer 1 | tar -tv'
check "and hard ones" prints 'opt/src/sub/twin link to opt/src/file' eval 'layer 1 | tar -tv'
check "the digests are those of the layers" prints "sha256:$(layer 0 | sha256sum | cut -c1-64)\",\"sha256:$(layer 1 | sha256sum | cut -c1-64)" config
check "the words stand in the image" prints '"Entrypoint":."/bin/x","--flag".,"Env":."PATH=[^"]*","A=b".,"User":"7","WorkingDir":"/w"' config
check "and so does its name" prints '"RepoTags":."localhost/test:1".' config
gzip -k "$images/base.tar"
check "a compressed layer is refused" prints "is not an uncompressed tar file" "$cluster" make-image "$images/x.tar" localhost/x:1 "$images/base.tar.gz"
check "a name without registry is refused" prints "is not REGISTRY/NAME:TAG" "$cluster" make-image "$images/x.tar" x:1 "$images/base.tar"
check "which leaves nothing" fails eval 'ls "$images"/x.tar*'
rm -rf "$images"

# --- two clusters side by side, started at the same time; the pipe ends although they live on
"$cluster" up --name two </dev/null 2>&1 | cat >"$GRUS_STATE/two.out" &
two=$!
check "up, with its output in a pipe" prints "export KUBECONFIG=" "$cluster" up --name one
wait "$two"
check "a second cluster beside it" grep -q "export KUBECONFIG=" "$GRUS_STATE/two.out"
rm -f "$GRUS_STATE/two.out"
check "up again says that it is up" prints "already up" "$cluster" up --name one
check "status of both" "$cluster" status
check "the server reports its version" prints 'Server Version: v1.36' kube version
check "kubeconfig prints a path" test -f "$("$cluster" kubeconfig --name one)"

# --- nodes
check "four nodes with 8 GPUs" "$cluster" nodes 4 --gpus 8 --label pool=a100 --name one
check "they have the label" count_is 4 nodes -l pool=a100,nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB
check "they have 8 GPUs each" equals "8 8 8 8" kube get nodes -o 'jsonpath={.items[*].status.allocatable.nvidia\.com/gpu}'
check "the other cluster has no node" equals "" "$cluster" kubectl --name two -- get nodes -o name
check "also when KUBECONFIG names another cluster" \
  equals "" env KUBECONFIG="$("$cluster" kubeconfig --name one)" "$cluster" kubectl --name two -- get nodes -o name
check "another prefix leaves them alone" "$cluster" nodes 2 --prefix cpu --gpus 0 --name one
check "now there are six" count_is 6 nodes
check "the surplus is removed" "$cluster" nodes 0 --prefix cpu --name one
check "now there are four" count_is 4 nodes
check "GPUs of a node can change" "$cluster" nodes 4 --gpus 4 --name one
check "they have 4 GPUs each" equals "4 4 4 4" kube get nodes -o 'jsonpath={.items[*].status.allocatable.nvidia\.com/gpu}'
check "and back" "$cluster" nodes 4 --gpus 8 --name one

# --- what kwok plays
pod plain >/dev/null
check "a pod with a GPU turns Running and Ready" kube wait pod/plain --for=condition=Ready --timeout=10s
check "it has an address" prints '^10\.' kube get pod plain -o 'jsonpath={.status.podIP}'
kube annotate pod plain grus.test/ready=false >/dev/null
check "ready=false makes it not Ready" within 10 ready_is plain False
check "and it still runs" phase_is plain Running
kube annotate pod plain grus.test/ready- >/dev/null
check "without the annotation it is Ready again" within 10 ready_is plain True

# --- its log
log=$("$cluster" pod-log plain --name one)
log_is() { # log_is WANT ARGS...: `kubectl logs plain ARGS` prints WANT.
  local want=$1
  shift
  equals "$want" kube logs plain "$@"
}
check "pod-log prints the path of its log" test -f "$log"
check "which is empty" within 10 log_is ""
printf '%s\n' '2026-01-02T03:04:05.000000001Z stdout F one' '2026-01-02T03:04:06.5Z stdout P tw' \
  '2026-01-02T03:04:06.6Z stdout F o' >"$log"
check "a line gets its time, with nine digits, and its parts are one line" \
  log_is $'2026-01-02T03:04:05.000000001Z one\n2026-01-02T03:04:06.500000000Z two' --timestamps
check "sinceTime is of whole seconds" log_is two --since-time=2026-01-02T03:04:06.9Z
follow() { # Prints what comes until the line "end".
  timeout 20 "$cluster" kubectl --name one -- logs -f plain --tail=1 | sed -u '/^end$/q'
}
follow >"$GRUS_STATE/one/followed" &
followed=$!
check "a follower gets what is there" within 10 grep -q o "$GRUS_STATE/one/followed"
echo '2026-01-02T03:04:07Z stdout F end' >>"$log"
check "and what comes later" within 10 grep -q end "$GRUS_STATE/one/followed"
wait "$followed"
check "a pod in a namespace that is not there has no log" fails "$cluster" pod-log x --namespace none --name one
check "a name that is a path has no log" prints "is not a name" "$cluster" pod-log ../x --name one

kube annotate pod plain grus.test/outcome=fail >/dev/null
check "outcome=fail turns a running pod Failed" within 10 phase_is plain Failed
check "with exit code 1" exit_code_is plain 1
pod born-done '"grus.test/outcome": "succeed"' >/dev/null
check "a pod made with outcome=succeed turns Succeeded" within 10 phase_is born-done Succeeded
check "with exit code 0" exit_code_is born-done 0
pod born-failed '"grus.test/outcome": "fail"' >/dev/null
check "a pod made with outcome=fail turns Failed" within 10 phase_is born-failed Failed
pod born-unready '"grus.test/ready": "false"' >/dev/null
check "a pod made with ready=false turns Running" within 10 phase_is born-unready Running
check "and is not Ready" ready_is born-unready False
pod born-42 '"grus.test/outcome": "fail", "grus.test/exit-code": "42"' >/dev/null
check "a failure has the exit code it is told" within 10 exit_code_is born-42 42

# --- containers that wait, crash and stop slowly
restarting() { # restarting NAME ANNOTATION: as pod, but its container is started again.
  kube create -f - <<EOF
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1", "annotations": {$2}},
 "spec": {"containers": [{"name": "main", "image": "none"}]}}
EOF
}
pod waits '"grus.test/waiting": "ErrImageNeverPull: \"none\" is: not there"' >/dev/null
check "a container waits for its reason" within 10 container_is waits ErrImageNeverPull .state.waiting.reason
check "with its message" container_is waits '"none" is: not there' .state.waiting.message
check "in a pod that is Pending" phase_is waits Pending
check "has an address" prints '^10\.' kube get pod waits -o 'jsonpath={.status.podIP}'
check "and is not Ready" ready_is waits False
kube annotate pod waits grus.test/waiting- >/dev/null
check "without the annotation it runs" kube wait pod/waits --for=condition=Ready --timeout=10s
pod pulls '"grus.test/waiting": "ErrImagePull: no such host"' >/dev/null
check "an image cannot be pulled" within 10 container_is pulls ErrImagePull .state.waiting.reason
check "which is tried again later" within 20 \
  container_is pulls 'Back-off pulling image "none": ErrImagePull: no such host' .state.waiting.message
restarting crashes '"grus.test/crash": "2", "grus.test/exit-code": "139"' >/dev/null
uid=$(kube get pod crashes -o 'jsonpath={.metadata.uid}')
check "a crashed container starts again" within 10 container_is crashes 1 .restartCount
check "and tells how it ended" container_is crashes 139 .lastState.terminated.exitCode
check "the second time that is put off" within 20 container_is crashes \
  "back-off 10s restarting failed container=main pod=crashes_default($uid)" .state.waiting.message
check "and then it runs" kube wait pod/crashes --for=condition=Ready --timeout=10s
check "in the same pod" equals "$uid" kube get pod crashes -o 'jsonpath={.metadata.uid}'
pod crashes-once '"grus.test/crash": "1"' >/dev/null
check "without restarts a crash is the end" within 10 phase_is crashes-once Failed
restarting slow '"grus.test/stop-seconds": "5"' >/dev/null
kube wait pod/slow --for=condition=Ready --timeout=10s >/dev/null
before=$(date +%s)
kube delete pod slow --wait=false >/dev/null
check "a pod that stops slowly is Ready meanwhile" ready_is slow True
check "and goes" kube wait pod/slow --for=delete --timeout=20s
check "when it is time" test "$(($(date +%s) - before))" -ge 4
check "deleted pods go" kube delete pod --all --timeout=10s

kube create job train --image=none >/dev/null
check "a Job has a pod" within 20 count_is 1 pods -l job-name=train
check "it runs" kube wait pod -l job-name=train --for=condition=Ready --timeout=20s
check "the Job is not complete" within 20 equals "1" kube get job train -o 'jsonpath={.status.active}'
kube annotate pod -l job-name=train grus.test/outcome=succeed >/dev/null
check "outcome=succeed completes it" kube wait job/train --for=condition=Complete --timeout=30s

kube annotate node node-3 grus.test/ready=false >/dev/null
check "a node with ready=false is not Ready" kube wait node/node-3 --for=condition=Ready=False --timeout=10s
kube annotate node node-3 grus.test/ready- >/dev/null
check "and Ready again without it" kube wait node/node-3 --for=condition=Ready --timeout=10s
check "with room for pods again" "$cluster" nodes 4 --gpus 8 --name one

kube create -f - >/dev/null <<'EOF'
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: w}
spec:
  serviceName: w
  replicas: 34
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: w}}
  template:
    metadata: {labels: {app: w}}
    spec:
      terminationGracePeriodSeconds: 30
      containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]
EOF
check "34 one-GPU pods on 4 x 8 GPUs: 34 made" within 20 count_is 34 pods -l app=w
check "32 run" within 20 count_is 32 pods -l app=w --field-selector status.phase=Running
check "2 wait" count_is 2 pods -l app=w --field-selector status.phase=Pending
old=$(kube get pods -l app=w -o 'jsonpath={.items[*].metadata.uid}')
all_are_others() { # All 34 pods are there, and none of them was there before.
  local uids uid
  uids=$(kube get pods -l app=w -o 'jsonpath={.items[*].metadata.uid}') || return 1
  [[ $(wc -w <<<"$uids") == 34 ]] || { echo "there are: $uids"; return 1; }
  for uid in $uids; do [[ $old != *"$uid"* ]] || { echo "$uid is still there"; return 1; }; done
}
kube delete pod -l app=w --wait=false >/dev/null
check "all deleted, 34 others are made" within 30 all_are_others
check "and 32 of them run" within 30 count_is 32 pods -l app=w --field-selector status.phase=Running
check "which the StatefulSet tells" within 30 equals 32 kube get statefulset w -o 'jsonpath={.status.readyReplicas}'
kube delete statefulset w >/dev/null
check "their pods go with the StatefulSet" within 20 count_is 0 pods -l app=w

# --- a process dies
scheduler=$(pid_of one kube-scheduler)
kill -KILL "$scheduler"
check "the killed process is gone" within 5 gone "$scheduler"
check "status names it" prints "cluster one: kube-scheduler is dead" "$cluster" status --name one
check "and fails" fails "$cluster" status --name one
check "the other cluster is fine" "$cluster" status --name two
check "up starts what is dead" prints "starting kube-scheduler" "$cluster" up --name one
check "status is fine again" "$cluster" status --name one
check "with what was in it" count_is 4 nodes

# --- a real node (real_node_test.sh has the rest)
check "without one nothing runs on it" prints "has no real node" "$cluster" node-exec --name one -- true
check "GPUs of none are refused" prints "goes with --real-node" "$cluster" up --name one --real-gpus 2
listens_at() { # The address of cluster $1's API server, in the kernel's spelling.
  local port
  port=$(grep -o '"apiServer": [0-9]*' "$GRUS_STATE/$1/state.json" | grep -o '[0-9]*')
  awk -v port="$(printf '%04X' "$port")" '$4 == "0A" && $2 ~ ":" port "$" {print $2}' /proc/net/tcp /proc/net/tcp6 | cut -d: -f1
}
check "its server listens on loopback only" equals 0100007F listens_at one

# --- features
check "features of a cluster that is there cannot change" prints "cannot change" "$cluster" up --name one --feature-gates GenericWorkload=true

# --- a recycled pid: state.json names a process that is not ours
sleep 300 &
stranger=$!
stray=$(pid_of two kwok)
sed -i "s/\"pid\": $stray,/\"pid\": $stranger,/" "$GRUS_STATE/two/state.json"
check "a recycled pid counts as dead" prints "kwok is dead" "$cluster" status --name two

# --- the end
one=$(pids one)
two=$(pids two | grep -v -x "$stranger")
check "down" prints "cluster one is down" "$cluster" down --name one
# shellcheck disable=SC2086 # One word a pid.
check "no process of it is left" gone $one
check "no folder of it is left" fails test -e "$GRUS_STATE/one"
check "the other cluster's server lives" "$cluster" kubectl --name two -- get --raw /readyz
check "down again is no error" prints "there is no cluster one" "$cluster" down --name one
check "down of all" "$cluster" down --all
# shellcheck disable=SC2086
check "no process is left" gone $two
check "a stranger with the pid was spared" kill -0 "$stranger"
kill "$stranger" "$stray"
check "the state folder is gone" fails test -e "$GRUS_STATE"

# --- what is missing is said in one line
no_go() { # Only what the wrapper needs, and no go.
  local bin result
  bin=$(mktemp -d)
  for tool in bash readlink dirname cat sha256sum env; do ln -s "$(type -P $tool)" "$bin/$tool"; done
  PATH=$bin GRUS_CACHE=$bin/cache "$cluster" build 2>&1
  result=$?
  rm -rf -- "$bin"
  return "$result"
}
check "without Go it says so" prints "go is missing" no_go
check "in one line" equals 1 eval '{ no_go || true; } | wc -l'
check "and fails" fails no_go
no_network() {
  local folder result
  folder=$(mktemp -d)
  GRUS_CACHE=$folder/cache GOMODCACHE=$folder/mod GOPROXY=off GOFLAGS=-modcacherw "$cluster" build 2>&1
  result=$?
  rm -rf -- "$folder"
  return "$result"
}
check "without modules it says so" prints "cannot be downloaded" no_network
check "and fails" fails no_network

finish
