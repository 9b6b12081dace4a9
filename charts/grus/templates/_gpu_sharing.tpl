{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* Whether the agent gives parts of GPUs to pods: "true" or nothing. */ -}}
{{- define "grus.sharesGpus" -}}
{{- if and .Values.nodeAgent.enabled .Values.nodeAgent.sharing.enabled (semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version) -}}
true
{{- end -}}
{{- end }}

{{- /* Whether pods that name one of Alnair's schedulers get the cluster's own: "true" or nothing. */ -}}
{{- define "grus.standsInForAlnairSchedulers" -}}
{{- if and (include "grus.sharesGpus" .) .Values.nodeAgent.sharing.alnairSchedulers (semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version) -}}
true
{{- end -}}
{{- end }}

{{- /* Whether also to claims, where the node's label says so: "true" or nothing. Older API servers lack the API. */ -}}
{{- define "grus.sharesByClaims" -}}
{{- if and (include "grus.sharesGpus" .) .Values.nodeAgent.sharing.claims (semverCompare ">=1.34.0-0" .Capabilities.KubeVersion.Version) -}}
true
{{- end -}}
{{- end }}

{{- /* Whether also MPS may hold containers to their parts, where the node's label says so: "true" or nothing. */ -}}
{{- define "grus.sharesByMps" -}}
{{- if and (include "grus.sharesGpus" .) .Values.nodeAgent.sharing.mps.enabled -}}
true
{{- end -}}
{{- end }}

{{- /* Which GPUs an agent may offer to claims: those of its own node. Of the root and of the agent's name. */ -}}
{{- define "grus.slicePolicy" -}}
{{- $agent := printf "system:serviceaccount:%s:%s" .root.Release.Namespace .name }}
{{- $slices := printf "%s.%s-slices" .root.Release.Namespace .name }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $slices }}
  labels:
    {{- include "grus.agentLabels" .root | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [resource.k8s.io]
        apiVersions: [v1]
        resources: [resourceslices]
        operations: [CREATE, UPDATE, DELETE]
  matchConditions:
    - name: the-agent
      expression: request.userInfo.username == "{{ $agent }}"
  variables:
    - name: node
      expression: request.userInfo.?extra[?"authentication.kubernetes.io/node-name"].orValue([])
  validations:
    - expression: >-
        (object == null || (variables.node == [object.spec.?nodeName.orValue("")]
        && variables.node == [object.spec.pool.name] && object.spec.driver == "gpu.ai.centauruscloud.io"))
        && (oldObject == null || (variables.node == [oldObject.spec.?nodeName.orValue("")]
        && oldObject.spec.driver == "gpu.ai.centauruscloud.io"))
      reason: Forbidden
      messageExpression: >-
        "grus-node-agent may write only ResourceSlices of driver gpu.ai.centauruscloud.io, of the node that its token names
        and of its pool: the token names " + (variables.node.size() == 1 ? variables.node[0] : "none")
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $slices }}
  labels:
    {{- include "grus.agentLabels" .root | nindent 4 }}
spec:
  policyName: {{ $slices }}
  validationActions: [Deny]
{{- end }}

{{- /* Who may write which pod has which GPU: the agent for the pods of its own node, and nothing else of them; the manager,
which plans; nobody else. Of the root and of the agent's name. */ -}}
{{- define "grus.sharingPolicies" -}}
{{- $agent := printf "system:serviceaccount:%s:%s" .root.Release.Namespace .name }}
{{- $manager := printf "system:serviceaccount:%s:%s" .root.Release.Namespace (include "grus.serviceAccountName" .root) }}
{{- $pods := printf "%s.%s-pods" .root.Release.Namespace .name }}
{{- $notes := printf "%s.%s-notes" .root.Release.Namespace .name }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $pods }}
  labels:
    {{- include "grus.agentLabels" .root | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [""]
        apiVersions: [v1]
        resources: [pods, pods/*]
        operations: [CREATE, UPDATE, DELETE, CONNECT]
  matchConditions:
    - name: the-agent
      expression: request.userInfo.username == "{{ $agent }}"
  variables:
    - name: node
      expression: request.userInfo.?extra[?"authentication.kubernetes.io/node-name"].orValue([])
    - name: annotations
      expression: object.metadata.?annotations.orValue({})
    - name: annotationsBefore
      expression: oldObject.metadata.?annotations.orValue({})
    - name: itsAnnotations
      expression: '"^(sharing\\.ai\\.centauruscloud\\.io/(gpus|enforcement)|ai\\.centaurus\\.io/alnair-(gpu-)?id|ALIYUN_COM_GPU_MEM_(IDX|POD|DEV|ASSIGNED))$"'
  validations:
    - expression: >-
        request.operation == "UPDATE" && request.?subResource.orValue("") == ""
        && variables.node == [oldObject.spec.?nodeName.orValue("")]
      reason: Forbidden
      messageExpression: >-
        "grus-node-agent may change only pods of the node that its token names, and nothing below them: the token names "
        + (variables.node.size() == 1 ? variables.node[0] : "none")
    - expression: >-
        variables.annotations.all(key, (key in variables.annotationsBefore &&
        variables.annotationsBefore[key] == variables.annotations[key]) || key.matches(variables.itsAnnotations))
        && variables.annotationsBefore.all(key, key in variables.annotations || key.matches(variables.itsAnnotations))
      reason: Forbidden
      message: grus-node-agent may change only its own annotations of the pod
    - expression: >-
        object.spec == oldObject.spec && object.status == oldObject.status
        && object.metadata.?labels == oldObject.metadata.?labels
        && object.metadata.?finalizers == oldObject.metadata.?finalizers
        && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences
      reason: Forbidden
      message: grus-node-agent may change nothing but annotations of the pod
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $pods }}
  labels:
    {{- include "grus.agentLabels" .root | nindent 4 }}
spec:
  policyName: {{ $pods }}
  validationActions: [Deny]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $notes }}
  labels:
    {{- include "grus.agentLabels" .root | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [""]
        apiVersions: [v1]
        resources: [pods]
        operations: [CREATE, UPDATE]
  matchConditions:
    - name: not-of-grus
      expression: '!(request.operation == "UPDATE" && request.userInfo.username in ["{{ $agent }}", "{{ $manager }}"])'
    - name: with-its-annotations
      expression: >-
        object.metadata.?annotations.orValue({}).exists(key, key.startsWith("sharing.ai.centauruscloud.io/")) ||
        (request.operation == "UPDATE" &&
        oldObject.metadata.?annotations.orValue({}).exists(key, key.startsWith("sharing.ai.centauruscloud.io/")))
  variables:
    - name: before
      expression: 'request.operation == "UPDATE" ? oldObject.metadata.?annotations.orValue({}) : {}'
    - name: after
      expression: object.metadata.?annotations.orValue({})
    # How a GPU is chosen, and how much memory is needed, are the user's own.
    - name: placement
      expression: '"sharing.ai.centauruscloud.io/placement"'
    - name: memory
      expression: '"sharing.ai.centauruscloud.io/memory-mib"'
    - name: paged
      expression: '"sharing.ai.centauruscloud.io/paged-mib"'
    - name: asksForPaged
      expression: 'request.operation == "CREATE" && variables.paged in variables.after'
    - name: withParts
      expression: >-
        (object.spec.containers +
        object.spec.?initContainers.orValue([]).filter(c, c.?restartPolicy.orValue("") == "Always"))
        .filter(c, c.?resources.?limits.orValue({}).exists(name, name in
        ["ai.centauruscloud.io/gpu-milli", "alnair/vgpu-memory", "aliyun.com/gpu-mem"]))
  validations:
    - expression: >-
        variables.after.all(key, !key.startsWith("sharing.ai.centauruscloud.io/") || key == variables.placement ||
        (key in [variables.memory, variables.paged] && request.operation == "CREATE") ||
        (key in variables.before && variables.before[key] == variables.after[key]))
        && variables.before.all(key, !key.startsWith("sharing.ai.centauruscloud.io/") || key == variables.placement ||
        key in variables.after)
      reason: Forbidden
      message: >-
        the annotations sharing.ai.centauruscloud.io/... say which GPU a pod has; only grus writes them. Leave them out of
        the pod or its template, but for placement, and memory-mib and paged-mib, which do not change once the pod is there
    - expression: >-
        !(variables.placement in variables.after) || variables.after[variables.placement] in ["pack", "spread"] ||
        (variables.placement in variables.before &&
        variables.before[variables.placement] == variables.after[variables.placement])
      messageExpression: >-
        "the annotation " + variables.placement + " is \"" + variables.after[variables.placement] +
        "\": expected pack or spread, or no such annotation"
    - expression: >-
        request.operation != "CREATE" || !(variables.memory in variables.after)
        || variables.after[variables.memory].matches("^[1-9][0-9]{0,7}$")
      reason: Invalid
      messageExpression: >-
        "annotation " + variables.memory + ": expected MiB of memory for each container that asks for
        ai.centauruscloud.io/gpu-milli, as a whole number from 1 on, such as \"8192\""
    - expression: >-
        !variables.asksForPaged || variables.after[variables.paged].matches("^[1-9][0-9]{0,7}$")
      reason: Invalid
      messageExpression: >-
        "annotation " + variables.paged + ": expected MiB of memory beside the part of a GPU of each container that has
        one, as a whole number from 1 on, such as \"8192\""
    - expression: >-
        !variables.asksForPaged || variables.withParts.size() > 0
      reason: Invalid
      messageExpression: >-
        "annotation " + variables.paged + ": no container has a limit of ai.centauruscloud.io/gpu-milli, alnair/vgpu-memory
        or aliyun.com/gpu-mem, beside whose part the memory would be; leave it out, also with claims"
    # What the driver moves to the node's memory may count there: without room, it could not be moved.
    - expression: >-
        !variables.asksForPaged || !variables.after[variables.paged].matches("^[1-9][0-9]{0,7}$")
        || variables.withParts.all(c, !("memory" in c.resources.limits)
        || !quantity(string(c.resources.limits["memory"])).isLessThan(quantity(variables.after[variables.paged] + "Mi")))
      reason: Invalid
      messageExpression: >-
        "annotation " + variables.paged + ": a container with a part of a GPU has a limit of memory below it, and what is
        paged counts there; raise resources.limits.memory to more than " + variables.after[variables.paged] + "Mi"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $notes }}
  labels:
    {{- include "grus.agentLabels" .root | nindent 4 }}
spec:
  policyName: {{ $notes }}
  validationActions: [Deny]
{{- end }}

{{- /* Pods that name one of Alnair's schedulers: what they wish for becomes an annotation, and the cluster's own scheduler
binds them. Of the root and of the agent's name. */ -}}
{{- define "grus.alnairSchedulers" -}}
{{- $schedulers := printf "%s.%s-schedulers" .root.Release.Namespace .name }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  name: {{ $schedulers }}
  labels:
    {{- include "grus.agentLabels" .root | nindent 4 }}
spec:
  failurePolicy: Fail
  reinvocationPolicy: IfNeeded
  matchConstraints:
    resourceRules:
      - apiGroups: [""]
        apiVersions: [v1]
        resources: [pods]
        operations: [CREATE]
  matchConditions:
    - name: one-of-alnairs
      expression: object.spec.?schedulerName.orValue("") in ["alnair-cost-saving", "alnair-high-performance"]
  variables:
    - name: annotations
      expression: object.metadata.?annotations.orValue({})
    - name: placement
      expression: 'object.spec.schedulerName == "alnair-cost-saving" ? "pack" : "spread"'
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration:
        # What the pod itself says wins.
        expression: >-
          Object{
            metadata: Object.metadata{
              annotations: {
                "sharing.ai.centauruscloud.io/placement":
                  variables.annotations[?"sharing.ai.centauruscloud.io/placement"].orValue(variables.placement)
              }
            },
            spec: Object.spec{schedulerName: "default-scheduler"}
          }
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata:
  name: {{ $schedulers }}
  labels:
    {{- include "grus.agentLabels" .root | nindent 4 }}
spec:
  policyName: {{ $schedulers }}
{{- end }}
