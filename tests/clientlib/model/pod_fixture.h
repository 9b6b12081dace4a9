// SPDX-License-Identifier: Apache-2.0
// A worker pod as the API server of a real cluster shows it.
#pragma once

#include <string>
#include <string_view>

namespace kube {

// `@` stands for the pod's number, so that no two pods have the same name, uid, address and version.
inline constexpr std::string_view kPodText = R"({"kind":"Pod","apiVersion":"v1","metadata":{
"name":"bert-large-workers-@","generateName":"bert-large-workers-","namespace":"team-nlp",
"uid":"5d3bb1f0-66a7-4a0b-9c1f-0000000@","resourceVersion":"48@","generation":1,
"creationTimestamp":"2026-03-04T05:06:07Z",
"labels":{"app.kubernetes.io/component":"worker","app.kubernetes.io/managed-by":"grus",
"app.kubernetes.io/part-of":"bert-large","apps.kubernetes.io/pod-index":"@",
"controller-revision-hash":"bert-large-workers-6c9d8f7b5d","grus.io/job":"bert-large",
"statefulset.kubernetes.io/pod-name":"bert-large-workers-@"},
"annotations":{"grus.io/template-hash":"9f86d081884c7d65",
"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"annotations\":{},\"name\":\"bert\"},\"spec\":{\"containers\":[{\"image\":\"registry.example.com/ml/horovod:0.28.1\",\"name\":\"worker\"}]}}"},
"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"bert-large-workers",
"uid":"b0a8c1de-6a51-4b6e-8df5-3ab0c1d2e3f4","controller":true,"blockOwnerDeletion":true}],
"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1",
"time":"2026-03-04T05:06:07Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:generateName":{},"f:labels":{".":{},
"f:app.kubernetes.io/component":{},"f:controller-revision-hash":{},"f:statefulset.kubernetes.io/pod-name":{}},
"f:ownerReferences":{".":{},"k:{\"uid\":\"b0a8c1de-6a51-4b6e-8df5-3ab0c1d2e3f4\"}":{}}},
"f:spec":{"f:containers":{"k:{\"name\":\"worker\"}":{".":{},"f:command":{},"f:env":{".":{},
"k:{\"name\":\"NCCL_DEBUG\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},
"f:resources":{".":{},"f:limits":{".":{},"f:nvidia.com/gpu":{}},"f:requests":{}},"f:terminationMessagePath":{},
"f:terminationMessagePolicy":{},"f:volumeMounts":{}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:hostname":{},
"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:subdomain":{},
"f:terminationGracePeriodSeconds":{},"f:tolerations":{},"f:volumes":{}}}},
{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-03-04T05:06:20Z","fieldsType":"FieldsV1",
"fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},
"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Initialized\"}":{".":{},"f:status":{},"f:type":{}},
"k:{\"type\":\"Ready\"}":{".":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},
"f:podIP":{},"f:podIPs":{},"f:startTime":{}}},"subresource":"status"}]},
"spec":{"volumes":[{"name":"ssh","secret":{"secretName":"bert-large-ssh","defaultMode":256}},
{"name":"dshm","emptyDir":{"medium":"Memory","sizeLimit":"16Gi"}},
{"name":"kube-api-access-x7k2p","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},
{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}}],"defaultMode":420}}],
"containers":[{"name":"worker","image":"registry.example.com/ml/horovod:0.28.1",
"command":["/usr/sbin/sshd","-De"],"env":[{"name":"NCCL_DEBUG","value":"WARN"},
{"name":"POD_IP","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"status.podIP"}}}],
"resources":{"limits":{"cpu":"8","memory":"64Gi","nvidia.com/gpu":"1"},
"requests":{"cpu":"8","memory":"64Gi","nvidia.com/gpu":"1"}},
"volumeMounts":[{"name":"ssh","mountPath":"/etc/ssh-keys"},{"name":"dshm","mountPath":"/dev/shm"},
{"name":"kube-api-access-x7k2p","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],
"readinessProbe":{"tcpSocket":{"port":2222},"timeoutSeconds":1,"periodSeconds":5,"successThreshold":1,
"failureThreshold":3},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",
"imagePullPolicy":"IfNotPresent"}],
"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",
"nodeSelector":{"grus.io/pool":"a100"},"serviceAccountName":"default","serviceAccount":"default",
"nodeName":"gpu-node-0007.example.internal","securityContext":{},"hostname":"bert-large-workers-@",
"subdomain":"bert-large-workers","schedulerName":"default-scheduler",
"tolerations":[{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"},
{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},
{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],
"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},
"status":{"phase":"Running","conditions":[
{"type":"PodReadyToStartContainers","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-04T05:06:12Z"},
{"type":"Initialized","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-04T05:06:08Z"},
{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-04T05:06:20Z"},
{"type":"ContainersReady","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-04T05:06:20Z"},
{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-04T05:06:08Z"}],
"hostIP":"192.168.100.17","hostIPs":[{"ip":"192.168.100.17"}],"podIP":"10.@","podIPs":[{"ip":"10.@"}],
"startTime":"2026-03-04T05:06:08Z","containerStatuses":[{"name":"worker",
"state":{"running":{"startedAt":"2026-03-04T05:06:11Z"}},"lastState":{},"ready":true,"restartCount":0,
"image":"registry.example.com/ml/horovod:0.28.1",
"imageID":"registry.example.com/ml/horovod@sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0",
"containerID":"containerd://7b1c2d3e4f5061728394a5b6c7d8e9f07b1c2d3e4f5061728394a5b6c7d8e9f0","started":true}],
"qosClass":"Guaranteed"}})";

inline std::string PodText(int number) {
  const std::string digits = std::to_string(10000 + number);
  std::string text;
  for (const char c : kPodText) {
    if (c == '@') {
      text += digits;
    } else if (c != '\n') {
      text += c;
    }
  }
  return text;
}

}  // namespace kube
