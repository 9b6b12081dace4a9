#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# grus-manager --check, on a real control plane: it finds the chart's rights enough, names each right that is taken
# away, in turn, and each kind that is not installed; and a manager that lacks a right says so and goes on.
# shellcheck disable=SC2317 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

name=rights
# shellcheck source=tests/charts/cluster.sh
source tests/charts/cluster.sh
# shellcheck source=tests/charts/account.sh
source tests/charts/account.sh

start_cluster 8 grus-system team-a team-b
install=("$helm" upgrade --install grus "$chart" --namespace grus-system --timeout 60s --set replicas=0)
need "helm install" "${install[@]}"
account=$GRUS_STATE/account.kubeconfig
need "the chart's account" account_kubeconfig "$KUBECONFIG" grus-system "$account"
arguments() { "$helm" get manifest grus --namespace grus-system | sed -nE 's/^ {12}- (--.*)/\1/p'; }
ask() { # ask FLAG...: as the chart's account, with the arguments of its Deployment but those that are given here.
  local flags flag
  mapfile -t flags < <(arguments)
  for flag; do mapfile -t flags < <(printf '%s\n' "${flags[@]}" | grep -v -e "^${flag%%=*}="); done
  "$manager" --kubeconfig "$account" "${flags[@]}" --check "$@" 2>&1
}

# --- enough, and no more than enough
check "the account has what the chart's arguments need" within 30 prints 'nothing is missing' ask
needed() { # As tests/charts/rights prints them.
  ask --log-level=debug | sed -nE 's/^needed: ([a-z]+) ([a-z]+)\.([^ \/]+)(\/[a-z]+)?.*/\1 \3\/\2\4/p; t
    s/^needed: ([a-z]+) ([^ ]+).*/\1 core\/\2/p' | sort -u
}
check "what it asks about is what the chart grants" equals "$(tests/charts/rights)" needed
for values in 'controllers={elastic}' 'controllers={queues},extender.enabled=true,extender.certSecret=tls' 'controllers={profiler},profiler.prometheus=http://prometheus:9090' 'controllers={gang}' 'controllers={queues}' 'namespaces={team-a,team-b}' \
  'metrics.secure=true' 'profiler.prometheus=http://prometheus:9090' \
  'profiler.prometheus=http://prometheus:9090,profiler.ownerKinds[0].apiGroup=ray.io,profiler.ownerKinds[0].resource=rayclusters' \
  'controllers={elastic,profiler},profiler.prometheus=http://prometheus:9090,profiler.alnairAnnotations=true,profiler.ownerKinds[0].apiGroup=ray.io,profiler.ownerKinds[0].resource=rayclusters' \
  'controllers={profiler},profiler.prometheus=http://prometheus:9090,profiler.alnairAnnotations=true' \
  'controllers={gang,profiler},profiler.prometheus=http://prometheus:9090,profiler.alnairAnnotations=true'; do
  need "$values" "${install[@]}" --set "$values"
  check "likewise" within 30 prints 'nothing is missing' ask
  check "no more" equals "$(tests/charts/rights --set "$values")" needed
done
need "all pods" "${install[@]}" --set 'namespaces={team-a}' --set countAllPods=true
check "likewise" within 30 prints 'nothing is missing' ask
check "a namespace that it may not manage is named" prints '^missing: the right to create secrets in team-b ' \
  ask --namespaces=team-a,team-b
need "as it was" "${install[@]}"

# --- each right in turn: the chart's roles give way to one that lacks it
need "a role of its own" kube create clusterrole all-but-one --verb=get --resource=pods
need "bound" kube create clusterrolebinding all-but-one --clusterrole=all-but-one --serviceaccount=grus-system:grus
kube delete clusterrolebinding grus-system:grus >/dev/null
kube -n grus-system delete rolebinding grus-lease >/dev/null
all_but() { # all_but [RIGHT]
  {
    printf '%s\n' 'apiVersion: rbac.authorization.k8s.io/v1' 'kind: ClusterRole' 'metadata: {name: all-but-one}' 'rules:'
    tests/charts/rights | grep -vxF -e "${1:-nothing}" |
      sed -E 's/^([a-z]+) core\//\1 \//; s/^([a-z]+) ([^/]*)\/(.*)/  - {apiGroups: ["\2"], resources: ["\3"], verbs: ["\1"]}/'
  } | kube apply -f - >/dev/null
}
names_alone() { # names_alone RIGHT: it fails, and says that this right is missing, and no other.
  local text said
  text=$(sed -E 's/ core\// /; t; s/ ([^\/]+)\/([^\/]+)/ \2.\1/' <<<"$1")
  said=$(ask) && { echo "it found nothing missing"; return 1; }
  missing() { grep '^missing: ' <<<"$said"; }
  missing | grep -F "missing: the right to $text " >/dev/null && ! missing | grep -vF "missing: the right to $text "
}
need "they are many" test "$(tests/charts/rights | wc -l)" -ge 90
need "with all of them" all_but
check "nothing is missing" within 30 prints 'nothing is missing' ask
while IFS= read -r right; do
  need "a role without: $right" all_but "$right"
  check "it says so" within 20 names_alone "$right"
done < <(tests/charts/rights)

# --- a manager without some
says() { grep -q "$1" "$log"; }
need "a role without secrets" all_but 'create core/secrets'
KUBECONFIG=$account start_manager --health-address=127.0.0.1:0
check "the log says so" within 30 says '"right":"create secrets","needed_for":"ssh keys of jobs"'
ready() { curl -sf "http://127.0.0.1:$(port health)/readyz" >/dev/null; }
check "and the manager works" within 30 ready

# --- an expired certificate
certs=$(dirname -- "$KUBECONFIG")/certs
expired=$GRUS_STATE/expired.kubeconfig
make_expired() {
  openssl req -newkey rsa:2048 -nodes -keyout "$GRUS_STATE/key.pem" -subj /CN=admin/O=system:masters -out "$GRUS_STATE/csr.pem" &&
    openssl x509 -req -in "$GRUS_STATE/csr.pem" -CA "$certs/ca.crt" -CAkey "$certs/ca.key" -days -1 -out "$GRUS_STATE/cert.pem" &&
    cp -- "$KUBECONFIG" "$expired" && kube --kubeconfig "$expired" config set-credentials expired \
      --client-certificate="$GRUS_STATE/cert.pem" --client-key="$GRUS_STATE/key.pem" &&
    kube --kubeconfig "$expired" config set-context --current --user expired
}
need "a certificate that has expired" make_expired
without_ports=(--metrics-address=0 --health-address=0)
check "the manager says which and since when, and ends" prints 'expired.kubeconfig.*the client certificate expired at 20.*: renew it' \
  timeout 20 "$manager" --kubeconfig "$expired" "${without_ports[@]}"
check "the check too" prints 'the client certificate expired at 20' "$manager" --kubeconfig "$expired" --check
kube --kubeconfig "$expired" config unset users.expired >/dev/null
need "a token of nobody" kube --kubeconfig "$expired" config set-credentials expired --token=nobody
check "a token that is refused" prints 'does not accept these credentials' \
  timeout 20 "$manager" --kubeconfig "$expired" "${without_ports[@]}"

# --- no kinds, no server
need "no TrialJobs" kube delete crd trialjobs.ai.centauruscloud.io
need "with all rights" all_but
check "a kind that is not installed is named" within 30 prints '^missing: .*trialjobs.ai.centauruscloud.io is not installed' ask
check "which is a failure" fails ask
nobody() { "$manager" --kubeconfig "$account" --check 2>&1; }
need "a server that is not there" kube --kubeconfig "$account" config set-cluster \
  "$(kube --kubeconfig "$account" config view -o 'jsonpath={.clusters[0].name}')" --server=https://127.0.0.1:1
check "is said to be so" prints 'connect to server\|onnection refused' nobody
check "which is a failure too" fails nobody

finish
