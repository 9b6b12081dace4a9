#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What people may do with grus' kinds, by Kubernetes' roles view, edit and admin, on a real control plane.
# shellcheck disable=SC2317 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

name=roles
# shellcheck source=tests/charts/cluster.sh
source tests/charts/cluster.sh

start_cluster 8 grus-system team-a team-b
need "helm install" "$helm" install grus "$chart" --namespace grus-system --set crds.olderPodGroups=true --timeout 60s
# In team-a: the viewer, the editor and the admin. For the whole cluster: the auditor (view), the operator (edit).
for who in viewer:view editor:edit admin:admin; do
  kube -n team-a create rolebinding "${who%:*}" --clusterrole="${who#*:}" --user="${who%:*}" >/dev/null
done
kube create clusterrolebinding auditor --clusterrole=view --user=auditor >/dev/null
kube create clusterrolebinding operator --clusterrole=edit --user=operator >/dev/null
kube create clusterrolebinding sharer --clusterrole=grus-system:grus:view-shared --user=sharer >/dev/null

can() { kube auth can-i "${@:2}" --as "$1" 2>/dev/null || true; }
may() { equals yes can "$@"; }
may_not() { equals no can "$@"; }
jobs='elastichorovodjobs trialjobs podgroups.scheduling.x-k8s.io podgroups.scheduling.sigs.k8s.io'
shared='gpuqueues nodepools workloadprofiles'

check "the roles are added up" within 30 may viewer get elastichorovodjobs -n team-a
check "all of them" within 30 may editor create elastichorovodjobs -n team-a
check "for admins too" within 30 may admin create elastichorovodjobs -n team-a
for kind in $jobs; do
  for verb in get list watch; do
    check "a viewer may $verb $kind" may viewer "$verb" "$kind" -n team-a
    check "but not elsewhere" may_not viewer "$verb" "$kind" -n team-b
  done
  for verb in create update patch delete deletecollection; do
    check "a viewer may not $verb $kind" may_not viewer "$verb" "$kind" -n team-a
    check "an auditor neither" may_not auditor "$verb" "$kind" -n team-a
    for who in editor admin; do
      check "an $who may $verb $kind" may "$who" "$verb" "$kind" -n team-a
      check "but not elsewhere" may_not "$who" "$verb" "$kind" -n team-b
    done
  done
  for who in viewer editor admin operator; do
    check "the status of $kind is not for the $who" may_not "$who" patch "$kind" --subresource=status -n team-a
  done
done
check "a viewer may see the scale" may viewer get elastichorovodjobs --subresource=scale -n team-a
check "but not change it" may_not viewer patch elastichorovodjobs --subresource=scale -n team-a
for verb in update patch; do
  check "an editor may $verb the scale" may editor "$verb" elastichorovodjobs --subresource=scale -n team-a
done
for kind in $shared; do
  for who in auditor operator sharer; do
    check "a cluster-wide $who may list $kind" may "$who" list "$kind"
    for verb in create update patch delete deletecollection; do
      check "but not $verb them" may_not "$who" "$verb" "$kind"
    done
  done
  check "a viewer of one namespace may not list $kind" may_not viewer list "$kind"
  check "an admin of one neither" may_not admin patch "$kind"
done
check "who sees what is shared does not see the jobs" may_not sharer list elastichorovodjobs -A

# Once for real, not only by review.
as_editor() { kube --as editor -n team-a "$@"; }
check "an editor creates a job" as_editor create -f examples/elastic-bert/job.yaml
check "scales it" as_editor scale ehj elastic-bert --replicas=17
check "edits it" as_editor patch ehj elastic-bert --type merge -p '{"spec": {"workersSpec": {"maxReplicas": 20}}}'
check "and deletes it" as_editor delete ehj elastic-bert

check "without the switch" "$helm" upgrade grus "$chart" --namespace grus-system --set aggregatedRoles=false
check "nobody may" within 30 may_not viewer get elastichorovodjobs -n team-a
check "nor write" within 30 may_not editor create trialjobs -n team-a

finish
