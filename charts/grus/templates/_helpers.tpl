{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* Names leave room for suffixes: an object's name may have 63 characters. */ -}}
{{- define "grus.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 53 | trimSuffix "-" }}
{{- end }}

{{- define "grus.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 53 | trimSuffix "-" }}
{{- else if contains (include "grus.name" .) .Release.Name }}
{{- .Release.Name | trunc 53 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "grus.name" .) | trunc 53 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* Cluster-wide names hold the namespace: a release of the same name may live in another one. */ -}}
{{- define "grus.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "grus.fullname" .) }}
{{- end }}

{{- /* Never changes in the life of a release: a Deployment's selector is immutable. */ -}}
{{- define "grus.selectorLabels" -}}
app.kubernetes.io/name: {{ include "grus.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Not app.kubernetes.io/managed-by=grus: by that one the manager knows the children of jobs. */ -}}
{{- define "grus.labels" -}}
{{ include "grus.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* Another name: the Deployment and the Service of the manager must not find the agents. */ -}}
{{- define "grus.agentSelectorLabels" -}}
app.kubernetes.io/name: {{ include "grus.name" . | trunc 52 | trimSuffix "-" }}-node-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "grus.agentLabels" -}}
{{ include "grus.agentSelectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "grus.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "grus.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "grus.subjects" -}}
subjects:
  - kind: ServiceAccount
    name: {{ include "grus.serviceAccountName" . }}
    namespace: {{ .Release.Namespace }}
{{- end }}

{{- define "grus.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}
{{- else }}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The manager's, a YAML list. */ -}}
{{- define "grus.arguments" -}}
# With one replica too: during an update there are two.
- --leader-elect
- --leader-elect-namespace={{ .Release.Namespace }}
- --leader-elect-name={{ include "grus.fullname" . }}
- --controllers={{ join "," (ternary (append .Values.controllers "extender") .Values.controllers .Values.extender.enabled) }}
{{- with .Values.namespaces }}
- --namespaces={{ join "," . }}
{{- if $.Values.countAllPods }}
- --count-all-pods
{{- end }}
{{- end }}
{{- with .Values.schedulerLeaseNamespaces }}
- --scheduler-lease-namespaces={{ join "," . }}
{{- end }}
{{- with .Values.profiler.prometheus }}
- --usage-prometheus={{ . }}
{{- end }}
{{- with .Values.profiler.selector }}
- {{ printf "--usage-selector=%s" . | quote }}
{{- end }}
{{- $kinds := list }}
{{- range .Values.profiler.ownerKinds }}
{{- $kinds = append $kinds (printf "%s.%s" .resource .apiGroup | trimSuffix ".") }}
{{- end }}
{{- with $kinds }}
- --owner-kinds={{ join "," . }}
{{- end }}
{{- if .Values.profiler.alnairAnnotations }}
{{- if not .Values.profiler.prometheus }}
{{- fail "profiler.alnairAnnotations needs profiler.prometheus" }}
{{- end }}
{{- if not (has "profiler" .Values.controllers) }}
{{- fail "profiler.alnairAnnotations needs profiler in controllers" }}
{{- end }}
- --alnair-annotations
{{- end }}
{{- if .Values.jobs.sshNetworkPolicies }}
- --ssh-network-policies
{{- end }}
- --reconcile-threads={{ .Values.reconcileThreads }}
- --metrics-address={{ if .Values.metrics.enabled }}:8080{{ else }}0{{ end }}
{{- if and .Values.metrics.enabled .Values.metrics.secure }}
- --metrics-secure
{{- with .Values.metrics.certSecret }}
- --metrics-cert-file=/etc/grus/metrics/tls.crt
- --metrics-key-file=/etc/grus/metrics/tls.key
{{- end }}
{{- else if .Values.metrics.certSecret }}
{{- fail "metrics.certSecret needs metrics.enabled and metrics.secure" }}
{{- end }}
{{- if .Values.extender.enabled }}
{{- if .Values.namespaces }}
{{- fail "extender.enabled needs all namespaces: leave namespaces empty" }}
{{- end }}
{{- if not .Values.extender.certSecret }}
{{- fail "extender.enabled needs extender.certSecret: a Secret with tls.crt, tls.key and ca.crt" }}
{{- end }}
- --extender-address=:8443
- --extender-cert-file=/etc/grus/extender/tls.crt
- --extender-key-file=/etc/grus/extender/tls.key
- --extender-client-ca-file=/etc/grus/extender/ca.crt
{{- with .Values.extender.clients }}
- {{ printf "--extender-clients=%s" (join "," .) | quote }}
{{- end }}
- --extender-service={{ include "grus.fullname" . }}-extender
- --extender-pod-address=$(POD_IP)
{{- $weights := list }}
{{- range $model, $weight := .Values.extender.gpuWeights }}
{{- $weights = append $weights (printf "%s=%v" $model $weight) }}
{{- end }}
{{- with $weights }}
- {{ printf "--gpu-weights=%s" (join "," .) | quote }}
{{- end }}
{{- if .Values.extender.interferenceModel }}
- --interference-model=/etc/grus/interference/model.json
{{- end }}
{{- end }}
- --health-address=:8081
- --log-level={{ .Values.logLevel }}
- --log-format={{ .Values.logFormat }}
{{- with .Values.extraArgs }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}
