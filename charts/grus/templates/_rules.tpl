{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* What the manager does with jobs and their children; in all namespaces, or in each of .Values.namespaces. */ -}}
{{- define "grus.jobRules" -}}
# The jobs are watched; those past their time to live are deleted. Their spec belongs to the user. "get": before a child
# that is gone is made again, its job is asked for once more. Trials are jobs of grus' own: made, stopped (patch) and
# removed; and a TrialJob with apply: Apply sets the size of the job that it measured (patch).
- apiGroups: [ai.centauruscloud.io]
  resources: [elastichorovodjobs]
  verbs: [get, list, watch, create, patch, delete]
# TrialJobs: their spec belongs to the user.
- apiGroups: [ai.centauruscloud.io]
  resources: [trialjobs]
  verbs: [get, list, watch]
# Phase, conditions and counts; trials and what they found.
- apiGroups: [ai.centauruscloud.io]
  resources: [elastichorovodjobs/status, trialjobs/status]
  verbs: [patch]
# Children name the job as owner with blockOwnerDeletion; servers with OwnerReferencesPermissionEnforcement ask for this.
- apiGroups: [ai.centauruscloud.io]
  resources: [elastichorovodjobs/finalizers, trialjobs/finalizers]
  verbs: [update]
# The headless Service of the workers and the host list: watched, made, restored, removed at the end. "get": one that
# exists already may have lost the label by which it is watched.
- apiGroups: [""]
  resources: [services, configmaps]
  verbs: [get, list, watch, create, patch, delete]
# The workers: the same, and resized.
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, list, watch, create, patch, delete]
# The launcher: the same, and started anew when the job says so.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch, delete]
# Gangs: watched; their spec belongs to the user. That of a job's workers is made, kept as the job wants it, and removed.
- apiGroups: [scheduling.x-k8s.io, scheduling.sigs.k8s.io]
  resources: [podgroups]
  verbs: [list, watch]
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [get, create, patch, delete]
- apiGroups: [scheduling.x-k8s.io, scheduling.sigs.k8s.io]
  resources: [podgroups/status]
  verbs: [patch]
# All pods hold GPUs and are counted. Scheduling gates are lifted and the launcher is told the host list (patch); workers
# that wait for a node while the job shrinks, pods of lost nodes, what a deleted launcher left, and members of a gang that
# did not come together are deleted. Trials of a podTemplate are pods of grus' own: made, stopped (patch) and removed.
# "get": whose log is followed is asked for before each stream.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
# How fast a trial or a running job trains is read from the log of its launcher, or of its pod.
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
# A pod of a lost node is marked as disrupted, so that it is no failed try of the launcher; a member of a gang is nominated
# for its node before its gate is lifted.
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
# Where the volumes of pods can be used says where a gang can run.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [list, watch]
# What pods claim of devices counts as what they ask for.
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims, resourceclaimtemplates]
  verbs: [list, watch]
# How many pods of a job the namespace's quotas admit, before room is planned for them.
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list, watch]
# A job's ssh key: made once, looked for by name, removed at the end. Never listed or watched: the Secrets of others are
# not ours to read.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, delete]
# What happened to a job; patched when it happens again. "list": why pods are refused, or cannot start, Kubernetes says in
# events alone.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, list, patch]
{{- end }}

{{- /* What lives outside of namespaces. */ -}}
{{- define "grus.nodeRules" -}}
# The GPUs that there are. "get": before a pod is deleted by force, its node is asked for once more.
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
# The volumes behind the claims, and their classes: a claim that waits for its pod binds to no place yet.
- apiGroups: [""]
  resources: [persistentvolumes]
  verbs: [list, watch]
- apiGroups: [storage.k8s.io]
  resources: [storageclasses]
  verbs: [list, watch]
# The devices that nodes have for claims, and which of them are of a class.
- apiGroups: [resource.k8s.io]
  resources: [deviceclasses, resourceslices]
  verbs: [list, watch]
# What was measured of a workload, for all namespaces.
- apiGroups: [ai.centauruscloud.io]
  resources: [workloadprofiles]
  verbs: [get, list, watch, create, patch]
- apiGroups: [ai.centauruscloud.io]
  resources: [workloadprofiles/status]
  verbs: [patch]
# How important a job is whose pods do not exist yet.
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [list, watch]
# Whether another scheduler leads, and whether the controllers of scheduler-plugins do: these leases and no others.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [kube-scheduler, sched-plugins-controllers]
  verbs: [list, watch]
{{- end }}
