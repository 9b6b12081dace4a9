#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# grus without helm: charts/kustomize is what the chart renders, and installs on a real control plane.
# shellcheck disable=SC2317 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

name=kustomize
# shellcheck source=tests/charts/cluster.sh
source tests/charts/cluster.sh
folder=charts/kustomize

check "it is what the chart renders" scripts/manifests --check
all_crds() { sed -n 's/^  - generated\///p' crds/kustomization.yaml; }
check "with each CRD" equals "$(cd crds/generated && ls -- *.yaml)" all_crds

start_cluster 8 team-a
quietly() { local output; output=$("$@" 2>&1) || { echo "$output"; return 1; }; ! grep -i warning <<<"$output"; }
check "applied by the server, without a warning" quietly kube apply --server-side -k "$folder"
check "and once more" quietly kube apply --server-side -k "$folder"
check "the replicas are there" kube -n grus-system wait deployment/grus --for='jsonpath={.status.readyReplicas}=2' --timeout=60s
check "the CRDs are established" kube wait --for=condition=Established --timeout=30s -f crds/generated
may() { equals yes kube auth can-i "$@" --as system:serviceaccount:grus-system:grus; }
check "the manager may do its work" may create pods -n team-a
check "and renew its lease" may patch leases/grus -n grus-system
start_manager --leader-elect --leader-elect-namespace=grus-system --leader-elect-name=grus --health-address=127.0.0.1:0
sed 's/minReplicas: .*/minReplicas: 2/' examples/elastic-bert/job.yaml | kube -n team-a create -f - >/dev/null
check "a job runs" kube -n team-a wait ehj/elastic-bert --for=jsonpath='{.status.phase}'=Running --timeout=60s

# As users do it: a kustomization of their own, with their registry.
mine=$GRUS_STATE/mine
mkdir -- "$mine"
printf '%s\n' "resources: [$(realpath --relative-to="$mine" "$folder")]" \
  'images: [{name: grus-manager, newName: registry.example/grus-manager, newTag: v1}]' >"$mine/kustomization.yaml"
check "with an image of one's own" prints 'image: registry.example/grus-manager:v1$' kube kustomize "$mine"

kube -n team-a delete ehj elastic-bert --wait >/dev/null
check "and removed again" quietly kube delete -k "$folder" --timeout=60s
check "the roles too" equals "" kube get clusterrole,clusterrolebinding -l app.kubernetes.io/name=grus -o name
check "and the CRDs" equals "" kube get --ignore-not-found -f crds/generated -o name

finish
