{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* What the manager does with jobs and their children; in all namespaces, or in each of .Values.namespaces. */ -}}
{{- define "grus.jobRules" -}}
# Jobs are watched, and deleted after their time to live. Their spec belongs to the user. "get": before grus creates a
# missing child again, it reads the job once more. Trials are jobs of grus' own: created, stopped (patch) and deleted. A
# TrialJob with apply: Apply sets the size of the job that it measured (patch).
- apiGroups: [ai.centauruscloud.io]
  resources: [elastichorovodjobs]
  verbs: [get, list, watch, create, patch, delete]
# TrialJobs: their spec belongs to the user.
- apiGroups: [ai.centauruscloud.io]
  resources: [trialjobs]
  verbs: [get, list, watch]
# Phase, conditions and counts; trials and their results.
- apiGroups: [ai.centauruscloud.io]
  resources: [elastichorovodjobs/status, trialjobs/status]
  verbs: [patch]
# Children name the job as owner with blockOwnerDeletion, which OwnerReferencesPermissionEnforcement allows only with
# this.
- apiGroups: [ai.centauruscloud.io]
  resources: [elastichorovodjobs/finalizers, trialjobs/finalizers]
  verbs: [update]
# The headless Service of the workers and the host list: watched, created, repaired, deleted at the end. "get": an
# existing one may have lost the label by which it is watched.
- apiGroups: [""]
  resources: [services, configmaps]
  verbs: [get, list, watch, create, patch, delete]
# Only workers that an older grus runs in a StatefulSet: it is deleted, and its pods become those of the job.
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, delete]
# The launcher: the same, and restarted when the job demands it.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch, delete]
# Gangs: watched; their spec belongs to the user. The PodGroup of a job's workers is created, kept up to date and
# deleted.
- apiGroups: [scheduling.x-k8s.io, scheduling.sigs.k8s.io]
  resources: [podgroups]
  verbs: [list, watch]
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [get, create, patch, delete]
- apiGroups: [scheduling.x-k8s.io, scheduling.sigs.k8s.io]
  resources: [podgroups/status]
  verbs: [patch]
# All pods are watched, to count the GPUs that they hold. Workers, and trials of a podTemplate, are pods of grus' own:
# created, given their labels back or stopped (patch), and deleted. "patch" also: scheduling gates are lifted, and the
# launcher gets the host list. "delete" also: pods of lost nodes, leftovers of a deleted launcher, and members of a gang
# that did not come together. "get": before each stream of a pod's log, and before a worker of that name is taken back.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
# The speed of a trial or a running job is read from the log of its launcher, or of its pod.
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
# A pod of a lost node is marked as disrupted, so that it does not count as a failed try of the launcher; a member of a
# gang is nominated for its node before its gate is lifted.
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
# Volumes restrict where a gang can run.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [list, watch]
# Devices that pods claim count as their requests.
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims, resourceclaimtemplates]
  verbs: [list, watch]
# Quotas limit how many pods of a job are planned.
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list, watch]
# A job's ssh key and scripts: created once, read by name, deleted at the end. Never listed or watched: the Secrets of
# others are not ours to read.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, delete]
# Events about jobs; patched when they repeat. "list": only events say why pods are refused or cannot start.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, list, patch]
{{- end }}

{{- /* What lives outside of namespaces. */ -}}
{{- define "grus.nodeRules" -}}
# The GPUs of the cluster. "get": before grus deletes a pod by force, it reads the node once more.
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
# The volumes behind the claims, and their classes: a claim that waits for its pod does not restrict the node yet.
- apiGroups: [""]
  resources: [persistentvolumes]
  verbs: [list, watch]
- apiGroups: [storage.k8s.io]
  resources: [storageclasses]
  verbs: [list, watch]
# The devices of nodes, and their classes.
- apiGroups: [resource.k8s.io]
  resources: [deviceclasses, resourceslices]
  verbs: [list, watch]
# What was measured of a workload, for all namespaces.
- apiGroups: [ai.centauruscloud.io]
  resources: [workloadprofiles]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [ai.centauruscloud.io]
  resources: [workloadprofiles/status]
  verbs: [patch]
# Queues and pools: their spec belongs to the user. Their status says who holds what.
- apiGroups: [ai.centauruscloud.io]
  resources: [gpuqueues, nodepools]
  verbs: [get, list, watch]
- apiGroups: [ai.centauruscloud.io]
  resources: [gpuqueues/status, nodepools/status]
  verbs: [patch]
# Queues select namespaces by their labels.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
# The priority of a job whose pods do not exist yet.
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [list, watch]
# Whether another scheduler leads, and whether the controllers of scheduler-plugins do: these leases and no others.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [kube-scheduler, sched-plugins-controllers]
  verbs: [list, watch]
{{- end }}
