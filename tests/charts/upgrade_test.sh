#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The life of a release, with a real helm and a real control plane: from a chart whose CRDs helm did not upgrade to this
# one, a new CRD, rollbacks, uninstalling and a new start. Jobs outlive all of it. Takes about a minute.
# shellcheck disable=SC2317 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

name=upgrade
# shellcheck source=tests/charts/cluster.sh
source tests/charts/cluster.sh
job=elastic-bert
crd=elastichorovodjobs.ai.centauruscloud.io

release() { "$helm" "$@" --namespace grus-system --timeout 60s; }
refuses() { # refuses PATTERN COMMAND...: it fails and says why.
  local pattern=$1 got
  shift
  if got=$("$@" 2>&1); then echo "it succeeded"; return 1; fi
  grep -q -e "$pattern" <<<"$got" || { echo "no '$pattern' in: $got"; return 1; }
}
of_crd() { kube get crd "$crd" -o "jsonpath=$1"; }
description() { of_crd '{.spec.versions[0].schema.openAPIV3Schema.description}'; }
the_job_is_there() { equals "$uid" kube -n team-a get ehj "$job" -o 'jsonpath={.metadata.uid}'; }

# The chart as it was: helm installed what is in crds/ and then left it alone. An older CRD, too.
before=$GRUS_STATE/before
cp -rL -- "$chart" "$before"
mv -- "$before/files/crds" "$before/crds"
rm -- "$before/templates/crds.yaml"
describe() { sed -i "s/^\( *description:\) .ElasticHorovodJob runs .*/\1 '$2'/" "$1/$crd.yaml"; }   # FOLDER TEXT
old_description="What it was."
describe "$before/crds" "$old_description"
# A later one. Braces are text to helm.
later=$GRUS_STATE/later
cp -rL -- "$chart" "$later"
new_description='It is {{ .Values.replicas }} and {{- fail "read as a template" }}.'
describe "$later/files/crds" "$new_description"

start_cluster 8 grus-system grus-two team-a

# --- from the chart before
need "the chart as it was is installed" release install grus "$before" --wait
check "its CRD is the older one" equals "$old_description" description
kube -n team-a create -f "examples/$job/job.yaml" >/dev/null
uid=$(kube -n team-a get ehj "$job" -o 'jsonpath={.metadata.uid}')
check "there is a job" test -n "$uid"
check "an upgrade does not take CRDs that are not the release's" refuses 'invalid ownership metadata' release upgrade grus "$chart"
check "unless it is told to" release upgrade grus "$chart" --take-ownership --wait
check "then the CRD is this one" prints "^ElasticHorovodJob runs " description
check "and the release's" equals grus of_crd '{.metadata.annotations.meta\.helm\.sh/release-name}'
check "and it is to be kept" equals keep of_crd '{.metadata.annotations.helm\.sh/resource-policy}'
check "the job is there" the_job_is_there

# --- a new CRD, and back
check "the next upgrade needs no flag" release upgrade grus "$later" --wait
check "and brings the next CRD, as it is written" equals "$new_description" description
check "a rollback" release rollback grus 2 --wait
check "brings the CRD back" prints "^ElasticHorovodJob runs " description
check "a rollback to the chart before" release rollback grus 1 --wait
check "keeps the CRD" equals keep of_crd '{.metadata.annotations.helm\.sh/resource-policy}'
check "and the job" the_job_is_there
check "upgraded again, with its values" release upgrade grus "$chart" --reset-then-reuse-values --wait
check "it fits into a Secret of 1 MiB, with much to spare" \
  prints '^[0-9]\{1,6\}$' kube -n grus-system get secret sh.helm.release.v1.grus.v6 -o 'go-template={{len .data.release}}'

# --- uninstalled and installed again
check "uninstalled" release uninstall grus --wait
check "the CRD stays" kube get crd "$crd"
check "and the job" the_job_is_there
check "installed again" release install grus "$chart" --wait
check "the job is there again" the_job_is_there
start_manager --leader-elect-namespace=grus-system
kube -n team-a patch ehj "$job" --type merge -p '{"spec": {"workersSpec": {"minReplicas": 2}}}' >/dev/null
check "and runs" kube -n team-a wait "ehj/$job" --for=jsonpath='{.status.phase}'=Running --timeout=60s
kill -TERM "$manager_pid"; wait "$manager_pid"; manager_pid=

# --- without CRDs; with those of others
check "a second release must leave the CRDs to the first" \
  refuses 'invalid ownership metadata' "$helm" install grus "$chart" --namespace grus-two
check "and can" "$helm" install grus "$chart" --namespace grus-two --set crds.install=false --wait --timeout 60s
"$helm" uninstall grus --namespace grus-two --wait >/dev/null
check "no longer asked for, they stay" release upgrade grus "$chart" --set crds.install=false
check "with their jobs" the_job_is_there
check "no longer kept, they go with the release" release upgrade grus "$chart" --set crds.keep=false
check "uninstalled for good" release uninstall grus --wait
check "the CRD goes, and the job" kube wait "crd/$crd" --for=delete --timeout=30s
kube create -f "$chart/files/crds/podgroups.scheduling.x-k8s.io.yaml" >/dev/null
check "where others installed that of PodGroups, helm says so" \
  refuses 'podgroups.scheduling.x-k8s.io.* invalid ownership metadata' release install grus "$chart"
check "and goes without" release install grus "$chart" --set crds.podGroups=false --wait
check "it is still theirs" equals "" \
  kube get crd podgroups.scheduling.x-k8s.io -o 'jsonpath={.metadata.annotations.meta\.helm\.sh/release-name}'

finish
