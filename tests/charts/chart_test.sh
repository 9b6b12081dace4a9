#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The Helm chart, with a real helm and a real control plane: the server takes what it renders, and its permissions are
# enough for grus-manager and no more. Takes about a minute once helm and the cluster's programs are built.
# shellcheck disable=SC2317 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

name=chart
# shellcheck source=tests/charts/cluster.sh
source tests/charts/cluster.sh
# shellcheck source=tests/charts/account.sh
source tests/charts/account.sh
job=elastic-bert

check "helm is built" "$helm" version

# --- a cluster: two nodes of 8 GPUs, and the strictest pod security where the manager is to run
start_cluster 8 grus-system grus-team team-a team-b
# "warn" too: for a Deployment, what "enforce" will refuse later is only a warning.
security() { kube label --overwrite namespace grus-system grus-team pod-security.kubernetes.io/{enforce,warn}="$1" >/dev/null; }
security restricted

# The server's own validation, and no warning: unknown fields, deprecated versions, pod security. The pod of helm test
# needs the account to be there; deployment_test.sh runs it.
accepted() { # accepted FLAG...
  local output
  output=$(render --skip-tests "$@" 2>/dev/null | kube apply --dry-run=server --validate=strict -f - 2>&1) || { echo "$output"; return 1; }
  ! grep -i warning <<<"$output"
}
check "the server accepts the defaults" accepted
check "and everything set, but for the agent" accepted --values tests/charts/everything.yaml --set nodeAgent.enabled=false
refused() { ! accepted --values tests/charts/everything.yaml; }
check "which needs more, as it sees the PIDs of its node" prints 'host namespaces (hostPID=true)' refused
security privileged
check "and has it in a namespace that allows it" accepted --values tests/charts/everything.yaml
security restricted
for file in "$chart"/values-*.yaml; do
  check "and ${file##*/}" accepted --values "$file"
done
policy() { # policy FILTER FLAG...: the NetworkPolicy, by jq.
  render --show-only templates/networkpolicy.yaml --set networkPolicy.enabled=true "${@:2}" 2>/dev/null |
    kube create --dry-run=client --validate=false -f - -o json | jq -c "$1"
}
ports='[.spec.ingress[].ports[].port], [.spec.egress[].ports[].port]'
check "a NetworkPolicy: probes and metrics in; API server and DNS out" equals $'[8081,8080]\n[443,6443,53,53]' policy "$ports"
check "without metrics, only probes" equals $'[8081]\n[443,6443,53,53]' policy "$ports" --set metrics.enabled=false
check "metrics for those who are named" equals '[null,[{"ipBlock":{"cidr":"192.0.2.0/24"}}]]' \
  policy '[.spec.ingress[].from]' --set 'networkPolicy.metricsFrom[0].ipBlock.cidr=192.0.2.0/24'
check "for the pods of the Deployment" equals "$(render 2>/dev/null | kube create --dry-run=client -f - -o json |
  jq -c 'select(.kind == "Deployment").spec.selector')" policy .spec.podSelector
check "and one namespace" accepted --set 'namespaces={team-a}'
check "and no metrics, an account of one's own" \
  accepted --set metrics.enabled=false,serviceAccount.create=false,serviceAccount.name=mine,topologySpreadConstraints=null

# --- installed; kwok plays the pods of the Deployment
check "helm install" "$helm" install grus "$chart" --namespace grus-system --wait --timeout 60s
check "two replicas are there" kube -n grus-system wait deployment/grus --for='jsonpath={.status.readyReplicas}=2' --timeout=30s
check "the CRD is established" kube wait crd/elastichorovodjobs.ai.centauruscloud.io --for=condition=Established --timeout=30s

# may and may_not ACCOUNT-NAMESPACE ARGS...: kubectl auth can-i ARGS as the chart's account there.
can_i() { kube auth can-i "${@:2}" --as "system:serviceaccount:$1:grus"; }
may() { equals yes can_i "$@"; }
may_not() { equals no eval "can_i ${*@Q} || true"; }
while read -r args; do
  # shellcheck disable=SC2086 # Several words.
  check "may not: $args" may_not grus-system $args
done <<'EOF'
list secrets -A
watch secrets -A
patch secrets -n team-a
update elastichorovodjobs -n team-a
create trialjobs -n team-a
patch trialjobs -n team-a
delete trialjobs -n team-a
create pods --subresource=exec -n team-a
patch nodes
delete nodes
create rolebindings -n team-a
get leases/other -n grus-system
list leases -A
watch leases/other -n kube-system
patch leases/kube-scheduler -n kube-system
create leases -n team-a
EOF
for resource in persistentvolumeclaims persistentvolumes storageclasses priorityclasses resourcequotas \
  resourceclaims resourceclaimtemplates deviceclasses resourceslices namespaces; do
  check "may watch $resource" may grus-system watch "$resource" -A
  check "may not write $resource" may_not grus-system patch "$resource" -A
done
for resource in gpuqueues nodepools; do
  check "may watch $resource" may grus-system watch "$resource"
  check "may say how $resource are" may grus-system patch "$resource" --subresource=status
  check "may not write the spec of $resource" may_not grus-system patch "$resource"
  check "may not delete $resource" may_not grus-system delete "$resource"
done
check "may make jobs for trials" may grus-system create elastichorovodjobs -n team-a
check "and pods" may grus-system create pods -n team-a
check "may read the logs of trials and of running jobs" may grus-system get pods --subresource=log -n team-a
check "and ask for the pod before" may grus-system get pods -n team-a
check "may keep what was measured" may grus-system create workloadprofiles
check "and delete what is old" may grus-system delete workloadprofiles
check "may say how trials go" may grus-system patch trialjobs --subresource=status -n team-a
check "may renew its lease" may grus-system patch leases/grus -n grus-system
check "may watch the scheduler's lease" may grus-system watch leases/kube-scheduler -n kube-system
check "and that of scheduler-plugins, wherever it is" may grus-system list leases/sched-plugins-controllers -A
check "may name a job as owner that blocks its deletion" may grus-system update elastichorovodjobs --subresource=finalizers -A

# start_manager NAMESPACE: runs grus-manager as the chart's account there, with the arguments of the Deployment; only
# its ports are free ones.
start_manager() {
  local namespace=$1
  log=$GRUS_STATE/$namespace.log
  account_kubeconfig "$KUBECONFIG" "$namespace" "$GRUS_STATE/account" || return 1
  mapfile -t args < <(deployment_arguments "$namespace")
  env -u KUBECONFIG "$manager" --kubeconfig "$GRUS_STATE/account" "${args[@]}" >"$log" 2>&1 &
  manager_pid=$!
}
stop_manager() { # Leaves its exit status in `ended`; not inside of check(), whose subshell could not wait for it.
  kill -TERM "$manager_pid"
  wait "$manager_pid"
  ended=$?
  manager_pid=
}
show_log() { tail -n 5 "$log" | sed 's/^/      log: /'; }
# create_job NAMESPACE SED-SCRIPT: the example's job, changed.
create_job() { sed -E "$2" "examples/$job/job.yaml" | kube -n "$1" create -f -; }
has() { kube -n "$1" wait "ehj/$job" --for=jsonpath="$2=$3" --timeout=40s; }   # NAMESPACE FIELD VALUE
launcher=ai.centauruscloud.io/role=launcher
succeed() { # The training in team-a ends well.
  kube -n team-a wait pod -l "$launcher" --for=condition=Ready --timeout=20s >/dev/null
  kube -n team-a annotate pod -l "$launcher" grus.test/outcome=succeed >/dev/null
}
no_refusal() { ! grep -i -m 3 forbidden "$log"; }

start_manager grus-system || { echo "FAIL  the manager was not started"; failed=$((failed + 1)); finish; }
check "it is the chart's account" equals system:serviceaccount:grus-system:grus \
  kube --kubeconfig "$GRUS_STATE/account" auth whoami -o 'jsonpath={.status.userInfo.username}'
check "the manager takes its lease" kube -n grus-system wait lease/grus --for=create --timeout=20s
check "/healthz says ok" prints '200 OK' http "$(port health)" /healthz
check "/readyz says ok" prints '200 OK' http "$(port health)" /readyz
check "/metrics has numbers" prints '^workqueue_depth' http "$(port metrics)" /metrics

check "a job for 34 workers, on room for 16" create_job team-a 's/minReplicas: .*/minReplicas: 4/'
check "what fits is ready" has team-a '{.status.replicas.ready}' 16
check "and it runs" has team-a '{.status.phase}' Running
# Without this label a child is hidden from the manager's watches: each must be found by name and mended. So this asks for
# all that may be done to children. Workers are watched whatever their labels.
children=services,configmaps,jobs.batch
label=app.kubernetes.io/managed-by
its=ai.centauruscloud.io/job-name=$job
workers=$its,ai.centauruscloud.io/role=worker
kube -n team-a label "$children" -l "$its" "$label-" >/dev/null
kube -n team-a label pods -l "$workers" "$label-" >/dev/null
check "children that lost their label get it back" kube -n team-a wait "$children" -l "$its" \
  --for="jsonpath={.metadata.labels.${label//./\\.}}=grus" --timeout=20s
# Some may be on their way out: more were asked for than there is room.
check "and so do workers" within 20 equals "" kube -n team-a get pods -l "$workers,!$label" -o name
lost=node-0
[[ $(kube -n team-a get pods -l "$launcher" -o 'jsonpath={.items[*].spec.nodeName}') != *"$lost"* ]] || lost=node-1
check "a node is lost" kube delete node "$lost" --wait=false
check "it shrinks to 8" has team-a '{.status.replicas.ready}' 8
kube -n team-a scale ehj "$job" --replicas=5 >/dev/null
check "scaled to 5, it has 5" has team-a '{.status.replicas.ready}' 5
succeed
check "it succeeds" kube -n team-a wait "ehj/$job" --for=condition=Complete --timeout=40s
check "its workers go" kube -n team-a wait pods -l "$workers" --for=delete --timeout=40s
check "its events were written" within 20 prints 'Succeeded\|Completed\|Finished' \
  kube -n team-a get events.events.k8s.io --field-selector "regarding.name=$job"
stop_manager
check "the manager ends with 0" test "$ended" = 0
check "and gives its lease back" equals "" kube -n grus-system get lease grus -o 'jsonpath={.spec.holderIdentity}'
check "nothing was forbidden to it" no_refusal
((failed == 0)) || show_log

# --- metrics for those who may read them
check "upgraded to secure metrics" \
  "$helm" upgrade grus "$chart" --namespace grus-system --reuse-values --set metrics.secure=true --wait --timeout 60s
start_manager grus-system
https() { # https TOKEN: /metrics of the manager.
  printf 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n' "$1" |
    timeout 10 openssl s_client -quiet -connect "127.0.0.1:$(port metrics)" 2>/dev/null
}
kube -n team-a create serviceaccount prometheus >/dev/null
token=$(kube -n team-a create token prometheus)
check "it is ready" within 20 prints '200 OK' http "$(port health)" /readyz
check "plain HTTP is not answered" fails prints HTTP http "$(port metrics)" /metrics
check "nor a token that the API server does not know" prints '401 Unauthorized' https nonsense
check "nor an account without the right, and it is told which" \
  prints '^system:serviceaccount:team-a:prometheus may not get /metrics: a ClusterRole with nonResourceURLs' https "$token"
kube create clusterrolebinding metrics --clusterrole=grus-system:grus:metrics --serviceaccount=team-a:prometheus >/dev/null
check "bound to the chart's role, it gets them" within 20 prints '^workqueue_depth' https "$token"
check "and nothing was forbidden to the manager" no_refusal
stop_manager
kube delete clusterrolebinding metrics >/dev/null

# --- uninstalled: the jobs stay
check "helm uninstall" "$helm" uninstall grus --namespace grus-system --wait --timeout 60s
check "the CRD and the jobs stay" kube -n team-a get ehj "$job"
check "the permissions go" equals "" kube get clusterroles,clusterrolebindings -l app.kubernetes.io/name=grus -o name
kube -n team-a delete ehj "$job" --wait >/dev/null

# --- one namespace only
check "helm install for one namespace, with the CRDs that stayed" "$helm" install grus "$chart" --namespace grus-team \
  --take-ownership --wait --timeout 60s --set 'namespaces={team-a}'
check "helm upgrade keeps the values" "$helm" upgrade grus "$chart" --namespace grus-team --wait --timeout 60s \
  --reset-then-reuse-values --set replicas=1
check "one namespace, one replica" prints '^1 .*--namespaces=team-a' \
  kube -n grus-team get deployment grus -o 'jsonpath={.spec.replicas} {.spec.template.spec.containers[0].args}'
check "may list pods there" may grus-team list pods -n team-a
check "may keep what was measured for all" may grus-team create workloadprofiles
check "may watch the queues of all" may grus-team watch gpuqueues
check "and the namespaces that they select" may grus-team watch namespaces
check "may not elsewhere" may_not grus-team list pods -n team-b
check "may not patch jobs elsewhere" may_not grus-team patch elastichorovodjobs --subresource=status -n team-b
start_manager grus-team
check "its manager takes its lease" kube -n grus-team wait lease/grus --for=create --timeout=20s
check "a job there" create_job team-a 's/(min|target)Replicas: .*/\1Replicas: 2/'
check "it runs" has team-a '{.status.phase}' Running
suspend() { kube -n team-a patch ehj "$job" --type merge -p "{\"spec\": {\"runPolicy\": {\"suspend\": $1}}}" >/dev/null; }
suspend true
check "it can be suspended" has team-a '{.status.phase}' Suspended
check "then it has no launcher" kube -n team-a wait "job/$job-launcher" --for=delete --timeout=30s
suspend false
check "it runs again" has team-a '{.status.phase}' Running
kube -n team-a patch ehj "$job" --type merge -p '{"spec": {"runPolicy": {"ttlSecondsAfterFinished": 0}}}' >/dev/null
succeed
check "it is removed when its time to live is over" kube -n team-a wait "ehj/$job" --for=delete --timeout=30s
stop_manager
check "its manager ends with 0" test "$ended" = 0
check "it watches claims" may grus-team list persistentvolumeclaims -n team-a
check "and quotas" may grus-team list resourcequotas -n team-a
check "nothing was forbidden to it either" no_refusal
((failed == 0)) || show_log

# --- one namespace, and the GPUs that the others hold
sed 's/guaranteed: 8/guaranteed: 4/' tests/charts/queues.yaml | kube create -f - >/dev/null   # A node was lost.
start_manager grus-team
reason() { kube get gpuqueue vision -o 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}'; }
check "a queue says that GPUs held elsewhere look free" within 20 equals NamespacesNotWatched reason
stop_manager
check "upgraded to count all pods" "$helm" upgrade grus "$chart" --namespace grus-team --wait --timeout 60s \
  --reset-then-reuse-values --set countAllPods=true
check "may list pods everywhere" may grus-team list pods -A
check "and still not delete them" may_not grus-team delete pods -n team-b
kube -n team-b create -f - <<'END' >/dev/null
apiVersion: v1
kind: List
items:
  - &pod
    apiVersion: v1
    kind: Pod
    metadata: {name: notebook-0}
    spec:
      nodeName: node-0
      containers: [{name: main, image: example/notebook, resources: {limits: {nvidia.com/gpu: 8}}}]
  - <<: *pod
    metadata: {name: notebook-1}
    spec:
      nodeName: node-1
      containers: [{name: main, image: example/notebook, resources: {limits: {nvidia.com/gpu: 8}}}]
END
start_manager grus-team
check "then the queue is ready" within 20 equals Ready reason
check "a job where all GPUs are held elsewhere" create_job team-a 's/(min|target)Replicas: .*/\1Replicas: 2/'
check "waits for room" within 20 equals WaitingForRoom \
  kube -n team-a get ehj "$job" -o 'jsonpath={.status.conditions[?(@.type=="Reconciling")].reason}'
kube -n team-b delete pods --all --grace-period=0 --force >/dev/null 2>&1
check "and runs when they are given back" has team-a '{.status.phase}' Running
stop_manager
check "nothing was forbidden" no_refusal
((failed == 0)) || show_log

finish
