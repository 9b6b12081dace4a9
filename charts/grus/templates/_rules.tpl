{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /*
What the controllers of .Values.controllers do, and no more; tests/charts/rights compares it with what grus asks
for. Of namespaced objects: in all namespaces, or in each of .Values.namespaces.
*/ -}}
{{- define "grus.jobRules" -}}
{{- $elastic := has "elastic" .Values.controllers }}
{{- $gang := has "gang" .Values.controllers }}
{{- $trial := has "trial" .Values.controllers }}
# All pods are watched, to count the GPUs that they hold; volumes and devices restrict where they can run.
- apiGroups: [""]
  resources: [pods, persistentvolumeclaims]
  verbs: [list, watch]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims, resourceclaimtemplates]
  verbs: [list, watch]
# Events; patched when they repeat.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- if .Values.extender.enabled }}
# Pods with parts of GPUs are bound by the extender, with their GPU.
- apiGroups: [""]
  resources: [pods/binding]
  verbs: [create]
# One that was refused is annotated when there is room, so that its scheduler tries it again. "get": what it runs, and
# whether a binding without an answer was done.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, patch]
{{- end }}
{{- if or $elastic $gang }}
# Scheduling gates are lifted, and the launcher gets the host list (patch). Pods of lost nodes and members of a gang that
# did not come together are deleted. "get": before a log is read, and before a pod of that name is taken back.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, patch, delete]
# A pod of a lost node is marked as disrupted, so that it does not count as a failed try of the launcher; a member of a
# gang is nominated for its node before its gate is lifted.
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
{{- end }}
{{- if $elastic }}
# Jobs are watched, and deleted after their time to live. Their spec belongs to the user. "get": before grus creates a
# missing child again, it reads the job once more.
- apiGroups: [ai.centauruscloud.io]
  resources: [elastichorovodjobs]
  verbs: [get, list, watch, delete]
- apiGroups: [ai.centauruscloud.io]
  resources: [elastichorovodjobs/status]
  verbs: [patch]
# Children name the job as owner with blockOwnerDeletion, which OwnerReferencesPermissionEnforcement allows only with
# this.
- apiGroups: [ai.centauruscloud.io]
  resources: [elastichorovodjobs/finalizers]
  verbs: [update]
# Workers are pods of grus' own.
- apiGroups: [""]
  resources: [pods]
  verbs: [create]
# The headless Service of the workers and the host list: watched, created, repaired, deleted at the end. "get": an
# existing one may have lost the label by which it is watched.
- apiGroups: [""]
  resources: [services, configmaps]
  verbs: [get, list, watch, create, patch, delete]
# The launcher: likewise, and restarted when the job demands it.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch, delete]
# A job's ssh keys and scripts. They are made and never read; the garbage collector takes them with the job.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
{{- if .Values.jobs.sshNetworkPolicies }}
# Who reaches the ssh servers of a job's workers; likewise.
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [create]
{{- end }}
# Quotas limit how many pods of a job are planned.
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list, watch]
# Only events say why pods are refused or cannot start.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [list]
# A running job's speed, and why a training ended.
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
{{- end }}
{{- if and (has "profiler" .Values.controllers) .Values.profiler.prometheus }}
# What pods use is recorded for the Deployment above a ReplicaSet, what is above a Job, and a PodGroup without controllers.
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [get]
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [get]
{{- $annotates := .Values.profiler.alnairAnnotations }}
{{- if not $elastic }}
- apiGroups: [ai.centauruscloud.io]
  resources: [elastichorovodjobs]
  verbs: [get, list, watch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get{{ if $annotates }}, patch{{ end }}]
{{- if and $annotates (not $gang) }}
- apiGroups: [""]
  resources: [pods]
  verbs: [patch]
{{- end }}
{{- end }}
{{- range .Values.profiler.ownerKinds }}
# Kinds of others: what controls them is the job{{ if $annotates }}, and they get Alnair's annotations (patch){{ end }}.
- apiGroups: [{{ .apiGroup | quote }}]
  resources: [{{ .resource | quote }}]
  verbs: [get{{ if $annotates }}, patch{{ end }}]
{{- end }}
{{- if $annotates }}
# Alnair's annotations; on pods and Jobs, too, which are patched anyway.
- apiGroups: [ai.centauruscloud.io]
  resources: [elastichorovodjobs]
  verbs: [patch]
{{- end }}
{{- end }}
{{- if $gang }}
# Gangs are watched; their spec belongs to the user.
- apiGroups: [scheduling.x-k8s.io, scheduling.sigs.k8s.io]
  resources: [podgroups]
  verbs: [list, watch]
- apiGroups: [scheduling.x-k8s.io, scheduling.sigs.k8s.io]
  resources: [podgroups/status]
  verbs: [patch]
{{- if $elastic }}
# The PodGroup of a job's workers is created, kept up to date and deleted.
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [get, create, patch, delete]
{{- end }}
{{- end }}
{{- if $trial }}
# TrialJobs: their spec belongs to the user. "get": before a trial is made again.
- apiGroups: [ai.centauruscloud.io]
  resources: [trialjobs]
  verbs: [get, list, watch]
- apiGroups: [ai.centauruscloud.io]
  resources: [trialjobs/status]
  verbs: [patch]
- apiGroups: [ai.centauruscloud.io]
  resources: [trialjobs/finalizers]
  verbs: [update]
# Trials are jobs of grus' own: created, and stopped (patch). A TrialJob with apply: Apply sets the size of the job that
# it measured (patch).
- apiGroups: [ai.centauruscloud.io]
  resources: [elastichorovodjobs]
  verbs: [create, patch]
{{- end }}
{{- end }}

{{- /* What lives outside of namespaces. */ -}}
{{- define "grus.nodeRules" -}}
{{- $elastic := has "elastic" .Values.controllers }}
# The GPUs of the cluster, the volumes behind the claims and their classes, and devices.
- apiGroups: [""]
  resources: [nodes, persistentvolumes]
  verbs: [list, watch]
- apiGroups: [storage.k8s.io]
  resources: [storageclasses]
  verbs: [list, watch]
- apiGroups: [resource.k8s.io]
  resources: [deviceclasses, resourceslices]
  verbs: [list, watch]
{{- if $elastic }}
# The priority of a job whose pods do not exist yet.
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [list, watch]
{{- end }}
{{- if or (has "trial" .Values.controllers) (and (has "profiler" .Values.controllers) .Values.profiler.prometheus) }}
# What was measured of a workload.
- apiGroups: [ai.centauruscloud.io]
  resources: [workloadprofiles]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [ai.centauruscloud.io]
  resources: [workloadprofiles/status]
  verbs: [patch]
{{- end }}
{{- if .Values.extender.enabled }}
# How fast pods are beside others.
- apiGroups: [ai.centauruscloud.io]
  resources: [workloadprofiles]
  verbs: [list, watch]
{{- end }}
{{- if has "queues" .Values.controllers }}
# Queues and pools: their spec belongs to the user. Their status says who holds what.
- apiGroups: [ai.centauruscloud.io]
  resources: [gpuqueues, nodepools]
  verbs: [list, watch]
- apiGroups: [ai.centauruscloud.io]
  resources: [gpuqueues/status, nodepools/status]
  verbs: [patch]
# Queues select namespaces by their labels.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
{{- end }}
{{- if has "gang" .Values.controllers }}
# Whether another scheduler leads, and whether the controllers of scheduler-plugins do: these leases and no others.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [kube-scheduler, sched-plugins-controllers]
  verbs: [list, watch]
{{- end }}
{{- if and .Values.namespaces .Values.countAllPods }}
# GPUs that pods of other namespaces hold.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
{{- end }}
{{- if and .Values.metrics.enabled .Values.metrics.secure }}
# Who sends a token to /metrics, and whether they may read it.
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
{{- end }}
