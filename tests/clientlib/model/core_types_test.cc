// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "clientlib/model/apps_v1.h"
#include "clientlib/model/batch_v1.h"
#include "clientlib/model/coordination_v1.h"
#include "clientlib/model/core_v1.h"
#include "clientlib/model/events_v1.h"
#include "clientlib/model/resource_claims.h"
#include "clientlib/model/resource_quota.h"
#include "clientlib/model/scheduling_v1.h"

namespace kube {
namespace {

struct RoundTrip {
  const char* rule;
  const Kind& (*kind)();
  const char* text;  // Only fields that the C++ type holds.
};

const RoundTrip kRoundTrips[] = {
    {"Pod", &Pod::ResourceKind, R"({"apiVersion":"v1","kind":"Pod",
      "metadata":{"name":"bert-workers-3","namespace":"team-a","uid":"u","resourceVersion":"12","generation":2,
        "creationTimestamp":"2026-01-02T03:04:05Z","deletionTimestamp":"2026-01-02T03:05:05Z",
        "labels":{"app":"bert","role":"worker"},"annotations":{"note":"x"},"finalizers":["grus.io/clean"],
        "ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"bert-workers","uid":"o",
                            "controller":true,"blockOwnerDeletion":true}]},
      "spec":{"nodeName":"node-1","nodeSelector":{"pool":"a100"},"hostname":"bert-workers-3","subdomain":"bert",
        "schedulerName":"default-scheduler","priorityClassName":"high","priority":1000,
        "overhead":{"cpu":"250m"},"terminationGracePeriodSeconds":30,"activeDeadlineSeconds":600,
        "tolerations":[{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"},
                       {"key":"node.kubernetes.io/not-ready","operator":"Equal","value":"v",
                        "effect":"NoExecute","tolerationSeconds":300}],
        "schedulingGates":[{"name":"grus.io/gang"}],
        "resourceClaims":[{"name":"gpu","resourceClaimTemplateName":"one"},{"name":"x","resourceClaimName":"mine"}],
        "volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"data-3"}},{"name":"scratch","ephemeral":{}}],
        "initContainers":[{"name":"init","image":"busybox","restartPolicy":"Always"}],
        "containers":[{"name":"worker","image":"horovod:1",
                       "resources":{"limits":{"nvidia.com/gpu":"1"},"requests":{"cpu":"3500m","memory":"16Gi"}}}]},
      "status":{"phase":"Running","reason":"r","message":"m","podIP":"10.0.0.7","hostIP":"10.1.0.1",
        "resourceClaimStatuses":[{"name":"gpu","resourceClaimName":"bert-workers-3-gpu"}],
        "nominatedNodeName":"node-2","startTime":"2026-01-02T03:04:06Z",
        "conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady","message":"c",
                       "lastTransitionTime":"2026-01-02T03:04:07Z"}],
        "initContainerStatuses":[{"name":"init","ready":true,"restartCount":0,"state":{"running":{}}}],
        "containerStatuses":[{"name":"worker","ready":false,"restartCount":2,
          "state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off"}},
          "lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","message":"x",
                                     "finishedAt":"2026-01-02T03:04:08Z"}}}]}})"},
    {"Node", &Node::ResourceKind, R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"node-1"},
      "spec":{"providerID":"aws:///1","unschedulable":true,
        "taints":[{"key":"k","value":"v","effect":"NoExecute","timeAdded":"2026-01-02T03:04:05Z"}]},
      "status":{"capacity":{"cpu":"64","nvidia.com/gpu":"8"},"allocatable":{"cpu":"63900m"},
        "conditions":[{"type":"Ready","status":"True"}]}})"},
    {"Service", &Service::ResourceKind, R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"bert"},
      "spec":{"clusterIP":"None","type":"ClusterIP","selector":{"app":"bert"},"publishNotReadyAddresses":true}})"},
    {"ConfigMap", &ConfigMap::ResourceKind,
     R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bert"},
      "data":{"discover_hosts.sh":"#!/bin/sh\necho a:1\n","empty":""}})"},
    {"Secret", &Secret::ResourceKind, R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"key"},
      "immutable":true,"type":"Opaque","data":{"id":"YQ=="}})"},
    {"Namespace", &Namespace::ResourceKind,
     R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team-a"},
      "status":{"phase":"Active"}})"},
    {"PersistentVolumeClaim", &PersistentVolumeClaim::ResourceKind,
     R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"team-a"},
      "spec":{"volumeName":"pv-1","storageClassName":"fast"},"status":{"phase":"Bound"}})"},
    {"PersistentVolume", &PersistentVolume::ResourceKind,
     R"({"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"pv-1"},
      "spec":{"claimRef":{"namespace":"team-a","name":"data"},
        "nodeAffinity":{"required":{"nodeSelectorTerms":[
          {"matchExpressions":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["a"]}]}]}}}})"},
    {"StorageClass", &StorageClass::ResourceKind,
     R"({"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"fast"},
      "volumeBindingMode":"WaitForFirstConsumer"})"},
    {"DeviceClass", &DeviceClass::ResourceKind,
     R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"gpu.nvidia.com"},
      "spec":{"selectors":[{"cel":{"expression":"device.driver == 'gpu.nvidia.com'"}}],"extendedResourceName":"nvidia.com/gpu"}})"},
    {"ResourceClaim", &ResourceClaim::ResourceKind,
     R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"gpus","namespace":"team-a"},
      "spec":{"devices":{"requests":[
        {"name":"gpu","exactly":{"deviceClassName":"gpu.nvidia.com","allocationMode":"ExactCount","count":2,
          "adminAccess":true,"selectors":[{"cel":{"expression":"true"}}],"tolerations":[{}],"capacity":{}}},
        {"name":"any","firstAvailable":[{"name":"large","deviceClassName":"gpu.nvidia.com"}]}]}},
      "status":{"allocation":{"devices":{"results":[{"request":"any/large","shareID":"s","adminAccess":true}]}},
        "reservedFor":[{"uid":"u"}]}})"},
    {"ResourceClaimTemplate", &ResourceClaimTemplate::ResourceKind,
     R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{"name":"gpu"},
      "spec":{"spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu.nvidia.com"}}]}}}})"},
    {"ResourceSlice", &ResourceSlice::ResourceKind,
     R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"node-1-gpus"},
      "spec":{"driver":"gpu.nvidia.com","nodeName":"node-1",
        "pool":{"name":"node-1","generation":3,"resourceSliceCount":1},
        "devices":[{"name":"gpu-0","attributes":{"type":{"string":"gpu"},"index":{"int":0},"ecc":{"bool":false}},
          "taints":[{"effect":"NoSchedule"}],"consumesCounters":[{}],"allowMultipleAllocations":true}]}})"},
    {"ResourceQuota", &ResourceQuota::ResourceKind,
     R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"team","namespace":"team-a"},
      "spec":{"hard":{"pods":"4","requests.nvidia.com/gpu":"8"},"scopes":["NotTerminating"],
        "scopeSelector":{"matchExpressions":[
          {"scopeName":"PriorityClass","operator":"In","values":["high"]}]}},
      "status":{"hard":{"pods":"4"},"used":{"pods":"2"}}})"},
    {"PriorityClass", &PriorityClass::ResourceKind,
     R"({"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"high"},
      "value":1000,"globalDefault":true})"},
    {"StatefulSet", &StatefulSet::ResourceKind, R"({"apiVersion":"apps/v1","kind":"StatefulSet",
      "metadata":{"name":"bert-workers","namespace":"team-a"},
      "spec":{"replicas":8,"serviceName":"bert","podManagementPolicy":"Parallel"},
      "status":{"observedGeneration":3,"replicas":8,"readyReplicas":7,"currentReplicas":6,"updatedReplicas":5,
        "currentRevision":"r1","updateRevision":"r2","availableReplicas":4}})"},
    {"Job", &Job::ResourceKind, R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"bert-launcher"},
      "spec":{"parallelism":1,"completions":1,"backoffLimit":0,"suspend":true},
      "status":{"conditions":[{"type":"Complete","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}],
        "startTime":"2026-01-02T03:04:05Z","completionTime":"2026-01-02T03:05:05Z","active":1,"succeeded":2,
        "failed":3,"ready":4}})"},
    {"Lease", &Lease::ResourceKind, R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease",
      "metadata":{"name":"grus","namespace":"grus-system"},
      "spec":{"holderIdentity":"host_1","leaseDurationSeconds":15,"acquireTime":"2026-01-02T03:04:05.678901Z",
        "renewTime":"2026-01-02T03:04:15.000000Z","leaseTransitions":1,"strategy":"s","preferredHolder":"p"}})"},
    {"Event", &Event::ResourceKind, R"({"apiVersion":"events.k8s.io/v1","kind":"Event",
      "metadata":{"name":"bert.1","namespace":"team-a"},"eventTime":"2026-01-02T03:04:05.678901Z",
      "series":{"count":3,"lastObservedTime":"2026-01-02T03:05:05.000000Z"},
      "reportingController":"grus.io/elastic","reportingInstance":"grus-0","action":"Resize","reason":"Resized",
      "regarding":{"kind":"ElasticHorovodJob","namespace":"team-a","name":"bert","uid":"u",
                   "apiVersion":"grus.io/v1alpha1","resourceVersion":"5","fieldPath":"spec"},
      "related":{"kind":"Pod","name":"p"},"note":"workers 8 to 5","type":"Normal"})"},
};

TEST(CoreTypes, EveryFieldSurvivesReadingAndWriting) {
  for (const RoundTrip& trip : kRoundTrips) {
    SCOPED_TRACE(trip.rule);
    const Result<Json> before = ParseJson(trip.text);
    ASSERT_TRUE(before) << before.error().message();
    const Result<std::shared_ptr<Object>> object = DecodeObject(trip.kind(), trip.text);
    ASSERT_TRUE(object) << object.error().message();
    const Result<Json> after = ParseJson(EncodeObject(trip.kind(), **object));
    ASSERT_TRUE(after) << after.error().message();
    EXPECT_TRUE(*before == *after) << "before " << ToText(*before) << "\nafter  " << ToText(*after);
  }
}

}  // namespace
}  // namespace kube
