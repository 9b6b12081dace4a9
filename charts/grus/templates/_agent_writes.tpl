{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- /*
What grus-node-agent writes: labels and annotations of its own node, and events about it. (dict "root" $ "name" NAME
"clusterName" NAME), the names of its account and of its ClusterRole.
*/ -}}
{{- define "grus.agentWrites" -}}
{{- $policy := printf "%s.%s" .root.Release.Namespace .name }}
---
# Events about nodes are in "default"; patched when they repeat.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .clusterName }}
  namespace: default
  labels:
    {{- include "grus.agentLabels" .root | nindent 4 }}
rules:
  - apiGroups: [events.k8s.io]
    resources: [events]
    verbs: [create, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .clusterName }}
  namespace: default
  labels:
    {{- include "grus.agentLabels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .clusterName }}
subjects:
  - kind: ServiceAccount
    name: {{ .name }}
    namespace: {{ .root.Release.Namespace }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $policy }}
  labels:
    {{- include "grus.agentLabels" .root | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [""]
        apiVersions: [v1]
        resources: [nodes, nodes/*]
        operations: [CREATE, UPDATE, DELETE]
  matchConditions:
    - name: the-agent
      expression: request.userInfo.username == "system:serviceaccount:{{ .root.Release.Namespace }}:{{ .name }}"
  variables:
    - name: node
      expression: request.userInfo.?extra[?"authentication.kubernetes.io/node-name"].orValue([])
    - name: labels
      expression: object.metadata.?labels.orValue({})
    - name: labelsBefore
      expression: oldObject.metadata.?labels.orValue({})
    - name: annotations
      expression: object.metadata.?annotations.orValue({})
    - name: annotationsBefore
      expression: oldObject.metadata.?annotations.orValue({})
    - name: itsLabels
      expression: >-
        ["nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.memory", "nvidia.com/cuda.driver-version.full"]
    - name: itsAnnotations
      expression: '"^(ai\\.centauruscloud\\.io/gpu-labels|sharing\\.ai\\.centauruscloud\\.io/inventory|ai\\.centaurus\\.io/(gpu-(static|[0-9]+)|physical-gpu-(count|uuids)|vitual-gpu-count))$"'
  validations:
    - expression: request.operation == "UPDATE" && request.?subResource.orValue("") == "" && variables.node == [request.name]
      reason: Forbidden
      messageExpression: >-
        "grus-node-agent may change only the node that its token names, and of that neither the status nor anything else
        below it: the token names " + (variables.node.size() == 1 ? variables.node[0] : "none")
    - expression: >-
        variables.labels.all(key, key in variables.itsLabels ||
        (key in variables.labelsBefore && variables.labelsBefore[key] == variables.labels[key]))
        && variables.labelsBefore.all(key, key in variables.itsLabels || key in variables.labels)
      reason: Forbidden
      message: grus-node-agent may change only its own labels of the node
    - expression: >-
        variables.annotations.all(key, key.matches(variables.itsAnnotations) ||
        (key in variables.annotationsBefore && variables.annotationsBefore[key] == variables.annotations[key]))
        && variables.annotationsBefore.all(key, key.matches(variables.itsAnnotations) || key in variables.annotations)
      reason: Forbidden
      message: grus-node-agent may change only its own annotations of the node
    - expression: >-
        object.spec == oldObject.spec && object.status == oldObject.status
        && object.metadata.?finalizers == oldObject.metadata.?finalizers
        && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences
      reason: Forbidden
      message: grus-node-agent may change nothing but labels and annotations of the node
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $policy }}
  labels:
    {{- include "grus.agentLabels" .root | nindent 4 }}
spec:
  policyName: {{ $policy }}
  validationActions: [Deny]
{{- end }}
