#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The Helm chart without a cluster: what it renders, and what it refuses. Takes 20 seconds once helm is built.
# shellcheck disable=SC2317 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

name=values
# shellcheck source=tests/charts/cluster.sh
source tests/charts/cluster.sh

refuses() { # refuses PATTERN FLAG...: helm fails and says why.
  local pattern=$1 got
  shift
  if got=$(render "$@" 2>&1); then
    echo "it was accepted"
    return 1
  fi
  grep -q -e "$pattern" <<<"$got" || { echo "no '$pattern' in: $got"; return 1; }
}

check "helm is built" "$helm" version
check "lint finds nothing" "$helm" lint --strict "$chart"
check "lint with everything set finds nothing" "$helm" lint --strict "$chart" --values tests/charts/everything.yaml

for file in "$chart"/values-*.yaml; do
  check "lint with ${file##*/} finds nothing" "$helm" lint --strict "$chart" --values "$file"
done
on_openshift() { render --values "$chart/values-openshift.yaml" --show-only "templates/$1.yaml" "${@:2}" 2>/dev/null; }
check "on OpenShift the user is the namespace's" fails prints 'runAsUser\|runAsGroup' on_openshift deployment
check "which is not root" prints 'runAsNonRoot: true' on_openshift deployment
check "and DNS can be reached" prints 'port: 5353' on_openshift networkpolicy --set networkPolicy.enabled=true

# --- the extender
extended() { render --set extender.enabled=true,extender.certSecret=grus-extender,metrics.secure=true,metrics.certSecret=grus-metrics "$@"; }
check "the extender comes with its certificate" prints 'secretName: grus-extender' extended
check "beside that of the metrics" prints 'secretName: grus-metrics' extended
check "with a Service" prints 'name: grus-extender' extended --show-only templates/extender-service.yaml
check "and the name of its clients" prints 'extender-clients=system:kube-scheduler,other' extended --set 'extender.clients={system:kube-scheduler,other}'
check "and the weights of models" prints 'gpu-weights=A100=14,L4=6.5' extended --set extender.gpuWeights.A100=14,extender.gpuWeights.L4=6.5
with_model() { extended --set extender.interferenceModel=known-pairs; }
check "and what is known of pairs of jobs" prints 'interference-model=/etc/grus/interference/model.json' with_model
check "from its ConfigMap" prints 'name: known-pairs' with_model
check "by default there is none" fails prints '[-]extender\|extender-' render

# --- values that are refused, with a word on where
while IFS='|' read -r flag pattern; do
  check "refused: $flag" refuses "$pattern" --set "$flag"
done <<'EOF'
crds.install=maybe|at '/crds/install': got string, want boolean
crds.keep=1|at '/crds/keep'
crds.podGroups=none|at '/crds/podGroups'
crds.olderPodGroups=none|at '/crds/olderPodGroups'
crds.upgrade=true|at '/crds': additional properties 'upgrade' not allowed
aggregatedRoles=all|at '/aggregatedRoles': got string, want boolean
replicas=-1|at '/replicas': minimum
replicas=many|at '/replicas': got string, want integer
replica=3|additional properties 'replica' not allowed
image.tag=a b|at '/image/tag'
image.digest=sha256:short|at '/image/digest'
image.pullPolicy=Sometimes|at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'
logLevel=loud|at '/logLevel': value must be one of 'debug', 'info', 'warn', 'error'
logFormat=xml|at '/logFormat': value must be one of 'text', 'json'
reconcileThreads=0|at '/reconcileThreads': minimum
reconcileThreads=257|at '/reconcileThreads': maximum
controllers={mystery}|at '/controllers/0': value must be one of 'elastic', 'gang'
namespaces={Team_A}|at '/namespaces/0'
schedulerLeaseNamespaces={}|at '/schedulerLeaseNamespaces/0'
podDisruptionBudget.maxUnavailable=half|at '/podDisruptionBudget/maxUnavailable'
profiler.alnairAnnotations=yes|at '/profiler/alnairAnnotations': got string, want boolean
profiler.alnairAnnotations=true|profiler.alnairAnnotations needs profiler.prometheus
controllers={elastic},profiler.prometheus=http://p:9090,profiler.alnairAnnotations=true|profiler.alnairAnnotations needs profiler in controllers
profiler.ownerKinds={rayclusters}|at '/profiler/ownerKinds/0': got string, want object
profiler.ownerKinds[0].resource=rayclusters|at '/profiler/ownerKinds/0': missing property 'apiGroup'
profiler.ownerKinds[0].apiGroup=ray.io,profiler.ownerKinds[0].resource=RayCluster|at '/profiler/ownerKinds/0/resource'
profiler.ownerKinds[0].apiGroup=,profiler.ownerKinds[0].resource=secrets|at '/profiler/ownerKinds/0/resource'
profiler.ownerKinds[0].apiGroup=,profiler.ownerKinds[0].resource=nodes|at '/profiler/ownerKinds/0/resource'
profiler.ownerKinds[0].apiGroup=rbac.authorization.k8s.io,profiler.ownerKinds[0].resource=clusterroles|at '/profiler/ownerKinds/0'
extender.enabled=yes|at '/extender/enabled'
extender.enabled=true|extender.enabled needs extender.certSecret
extender.enabled=true,extender.certSecret=tls,namespaces={team-a}|extender.enabled needs all namespaces
extender.clients={a,}|at '/extender/clients/1'
extender.gpuWeights.A100=heavy|at '/extender/gpuWeights/A100'
metrics.secure=yes|at '/metrics/secure'
metrics.certSecret=tls|metrics.certSecret needs metrics.enabled and metrics.secure
metrics.enabled=false,metrics.serviceMonitor.enabled=true|metrics.serviceMonitor.enabled needs metrics.enabled
admissionPolicy.enabled=yes|at '/admissionPolicy/enabled': got string, want boolean
admissionPolicy=true|at '/admissionPolicy': got boolean, want object
admissionPolicy.exempt=x|at '/admissionPolicy': additional properties 'exempt' not allowed
dashboards.enabled=yes|at '/dashboards/enabled': got string, want boolean
dashboards.namespace=Team_A|at '/dashboards/namespace'
dashboards.labels=x|at '/dashboards/labels'
dashboards.folder=x|at '/dashboards': additional properties 'folder' not allowed
metrics.enabled=false,dashboards.enabled=true|dashboards.enabled needs metrics.enabled
nodeAgent.enabled=yes|at '/nodeAgent/enabled': got string, want boolean
nodeAgent.alnairAnnotations=yes|at '/nodeAgent/alnairAnnotations': got string, want boolean
nodeAgent.sharing=true|at '/nodeAgent/sharing': got boolean, want object
nodeAgent.sharing.reserveMiB=-1|at '/nodeAgent/sharing/reserveMiB'
nodeAgent.sharing.kubeletFolder=kubelet|at '/nodeAgent/sharing/kubeletFolder'
nodeAgent.sharing.mps=true|at '/nodeAgent/sharing/mps': got boolean, want object
nodeAgent.sharing.mps.control=mps|at '/nodeAgent/sharing/mps/control'
nodeAgent.sharing.cooperative=true|at '/nodeAgent/sharing/cooperative': got boolean, want object
nodeAgent.sharing.cooperative.folder=cuda|at '/nodeAgent/sharing/cooperative/folder'
nodeAgent.sharing.cooperative.contextMiB=-1|at '/nodeAgent/sharing/cooperative/contextMiB'
nodeAgent.sharing.mode=milli|at '/nodeAgent/sharing': additional properties 'mode' not allowed
nodeAgent.driver=535|at '/nodeAgent': additional properties 'driver' not allowed
nodeAgent.runtimeClassName=NVIDIA|at '/nodeAgent/runtimeClassName'
networkPolicy.enabled=on|at '/networkPolicy/enabled': got string, want boolean
networkPolicy.apiServerPorts={}|at '/networkPolicy/apiServerPorts/0'
networkPolicy.apiServerPorts[0]=65536|at '/networkPolicy/apiServerPorts/0': maximum
networkPolicy.metricsFrom[0].namespace=monitoring|at '/networkPolicy/metricsFrom/0': additional properties 'namespace' not allowed
networkPolicy.metricsFrom[0].podSelector=prometheus|at '/networkPolicy/metricsFrom/0/podSelector'
networkPolicy.egress[0].from=x|at '/networkPolicy/egress/0': additional properties 'from' not allowed
networkPolicy.ingress=x|at '/networkPolicy': additional properties 'ingress' not allowed
metrics.enabled=false,metrics.prometheusRule.enabled=true|metrics.prometheusRule.enabled needs metrics.enabled
metrics.prometheusRule.enabled=true,resources.limits.memory=64x|resources.limits.memory: "64x" is no number
metrics.prometheusRule.selector=grus|at '/metrics/prometheusRule/selector'
metrics.prometheusRule.interval=1m|at '/metrics/prometheusRule': additional properties 'interval' not allowed
metrics.prometheusRule.labels=x|at '/metrics/prometheusRule/labels'
EOF

# --- what it holds
kinds=profiler.ownerKinds[0].apiGroup=ray.io,profiler.ownerKinds[0].resource=rayclusters
kinds+=,profiler.ownerKinds[1].apiGroup=,profiler.ownerKinds[1].resource=replicationcontrollers
check "kinds of owners, also of the core group" prints '^ *- --owner-kinds=rayclusters.ray.io,replicationcontrollers$' render --set "$kinds"
check "none when none is listed" fails prints 'owner-kinds' render
crds() { render --set crds.keep=false --show-only templates/crds.yaml 2>/dev/null | grep -v -e '^---$' -e '^$' -e '^# Source: '; }
check "its CRDs are those that crdgen wrote" equals "$(cat crds/generated/*.yaml | grep -v -e '^---$' -e '^$')" crds
check "its version is the manager's" prints "^appVersion: $("$manager" --version | cut -d' ' -f2)\$" "$helm" show chart "$chart"
check "it can be packed" "$helm" package "$chart" --destination "$GRUS_STATE"
packed() { "$helm" template grus "$GRUS_STATE"/grus-*.tgz --namespace grus-system "$@"; }
more=(--set 'metrics.prometheusRule.enabled=true,dashboards.enabled=true,crds.olderPodGroups=true')
check "with all that the folder holds" equals "$(render "${more[@]}" 2>/dev/null)" packed "${more[@]}"
keeps() { render "$@" 2>/dev/null | grep -c 'helm.sh/resource-policy: keep' || true; }
check "it keeps its CRDs" equals "$(grep -l '^kind: CustomResourceDefinition' crds/generated/*.yaml | wc -l)" keeps
check "unless told not to" equals 0 keeps --set crds.keep=false
check "no CRDs when not asked for" fails prints '^kind: CustomResourceDefinition' render --set crds.install=false
check "the older PodGroups when asked for" prints '^  name: podgroups.scheduling.sigs.k8s.io' render --set crds.olderPodGroups=true
check "nor that of PodGroups" fails prints '^  name: podgroups' render --set crds.podGroups=false
rm -f -- "$GRUS_STATE"/grus-*.tgz
check "a ServiceMonitor when asked for" prints '^kind: ServiceMonitor' render --set metrics.serviceMonitor.enabled=true
check "with the reader's token, where metrics are secure" prints 'scheme: https' \
  render --set metrics.serviceMonitor.enabled=true,metrics.secure=true
check "no admission policy when not asked for" fails prints 'ValidatingAdmission' render
policies() { render "$@" 2>/dev/null | grep -E '^kind: ValidatingAdmissionPolicy' | sort | uniq -c | sed 's/^ *//' || true; }
check "two with their bindings when asked for" \
  equals $'2 kind: ValidatingAdmissionPolicy\n2 kind: ValidatingAdmissionPolicyBinding' policies --set admissionPolicy.enabled=true
check "not for a Kubernetes without them" refuses 'admissionPolicy.enabled needs Kubernetes 1.30 or newer; this is v1.29.9' \
  --set admissionPolicy.enabled=true --kube-version 1.29.9
check "for the account that the manager has" prints 'system:serviceaccount:grus-system:mine"' render \
  --set admissionPolicy.enabled=true,serviceAccount.create=false,serviceAccount.name=mine
check "for its namespaces, whatever their names" prints 'values: \["team-a","123"\]' render \
  --set admissionPolicy.enabled=true --set-json 'namespaces=["team-a", "123"]'
check "no agent on the nodes when not asked for" fails prints '^kind: DaemonSet' render
agent() { render --show-only templates/node-agent.yaml --set nodeAgent.enabled=true "$@" 2>/dev/null; }
check "one with a role of its own when asked for" equals \
  'ServiceAccount ClusterRole ClusterRoleBinding Role RoleBinding DaemonSet ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding' \
  eval "agent | sed -n 's/^kind: //p' | paste -sd' '"
check "where the API server has no such policies it gets no right to write" equals \
  'ServiceAccount ClusterRole ClusterRoleBinding DaemonSet' eval "agent --kube-version 1.29.9 | sed -n 's/^kind: //p' | paste -sd' '"
check "not even to read nodes" fails prints 'resources: \[nodes' agent --kube-version 1.29.9
check "annotations of the original by their switch" prints '^ *- --alnair-annotations$' agent --set nodeAgent.alnairAnnotations=true
check "and only by it" fails prints alnair agent
sharing() { agent --set nodeAgent.sharing.enabled=true "$@"; }
check "parts of GPUs by their switch" prints '^ *- --share-gpus$' sharing
check "and only by it" fails prints -e 'share|device-plugins|runAsUser: 0|verbs: .patch.' agent --kube-version 1.29.9
check "it is root then, as the kubelet's sockets are" prints '^ *runAsUser: 0$' sharing
check "with the kubelet's folder where it is" prints 'path: /data/kubelet/device-plugins,' sharing --set nodeAgent.sharing.kubeletFolder=/data/kubelet
check "and four policies, one of which is for all who write pods" equals '4 1' eval \
  "sharing | awk '/^kind: ValidatingAdmissionPolicy\$/ {policies++} /name: not-of-grus/ {all++} END {print policies, all}'"
check "none of it where the API server has no such policies" fails prints -e '--share-gpus|device-plugins|runAsUser: 0' \
  sharing --kube-version 1.29.9
cuda() { sharing --set nodeAgent.sharing.cooperative.folder=/data/cuda,nodeAgent.sharing.cooperative.sharesFolder=/run/cuda "$@"; }
for sign in '^ *- --cuda-folder=/data/cuda$' '^ *- --cuda-shares=/run/cuda$' 'name: cuda, mountPath: /data/cuda}' \
  'path: /data/cuda, type' 'name: cuda-shares, mountPath: /run/cuda}' 'path: /run/cuda, type'; do
  check "for cooperative limits: $sign" prints "$sign" cuda
done
check "none of it if no parts are given" fails eval 'agent | grep -e --cuda'
mps() { sharing --set nodeAgent.sharing.mps.enabled=true "$@"; }
check "MPS by its switch" prints '^ *- --mps-control=/usr/bin/nvidia-cuda-mps-control$' mps
for sign in '--mps-' 'OnDelete' 'SETUID' 'value: "compute,utility"' 'mps-shm'; do
  check "with it: $sign" prints "$sign" mps
  check "and else not" fails eval "sharing | grep -e '$sign'"
  check "nor if no parts are given" fails eval "agent --set nodeAgent.sharing.mps.enabled=true | grep -e '$sign'"
done
probes() { grep -c livenessProbe; }
check "no probe ends it, since its daemons would end, too" equals "1 0" eval 'echo $(sharing | probes) $(mps | probes)'
check "it drops all other capabilities" prints '^ *- ALL$' mps
check "it may tell pods of all namespaces only then" equals "2 1" eval \
  'echo $(mps | grep -c "resources: \[events\]") $(sharing | grep -c "resources: \[events\]")'
check "without a common /dev/shm where that is not wanted" fails eval \
  "mps --set nodeAgent.sharing.mps.sharedMemoryFolder= | grep -e /dev/shm"
check "a PodMonitor for it" prints '^kind: PodMonitor' agent --set nodeAgent.podMonitor.enabled=true
check "and a NetworkPolicy" prints '^kind: NetworkPolicy' agent --set networkPolicy.enabled=true
names() { agent "$@" | sed -n 's/^ *app.kubernetes.io\/name: //p' | sort | uniq -c | sed 's/^ *//'; }
check "no selector of the manager's finds it" equals '14 grus-node-agent' \
  names --set nodeAgent.podMonitor.enabled=true,networkPolicy.enabled=true
check "its network reaches what the values add" prints 'port: 5353' \
  agent --set networkPolicy.enabled=true --values "$chart/values-openshift.yaml"
long=$(printf 'a%.0s' {1..53})
check "its longest name is a legal label" equals 63 \
  eval "agent --set nameOverride=$long | sed -n 's/^ *app.kubernetes.io\/name: //p' | sort -u | tr -d '\n' | wc -c"
check "no Service without metrics" fails prints '^kind: Service$' render --set metrics.enabled=false

finish
