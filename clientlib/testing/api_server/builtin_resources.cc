// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/lower_case.h"
#include "clientlib/testing/api_server/builtin_schemas.h"
#include "clientlib/testing/api_server/kind_rules.h"
#include "clientlib/testing/api_server/resource_info.h"

namespace kube::testing {
namespace {

using Infos = std::vector<std::shared_ptr<const ResourceInfo>>;

std::vector<ResourceInfo> Core() {
  return {
      {.version = "v1",
       .kind = "Namespace",
       .plural = "namespaces",
       .short_names = {"ns"},
       .is_namespaced = false,
       .has_status = true,
       .selectable_fields = {"status.phase"},
       .rules = &kNamespaceRules},
      {.version = "v1",
       .kind = "Node",
       .plural = "nodes",
       .short_names = {"no"},
       .is_namespaced = false,
       .has_status = true,
       .selectable_fields = {"spec.unschedulable"}},
      {.version = "v1",
       .kind = "Pod",
       .plural = "pods",
       .short_names = {"po"},
       .categories = {"all"},
       .has_status = true,
       .has_generation = true,
       .is_returned_when_deleted = true,
       .selectable_fields = {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
                             "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName"},
       .rules = &kPodRules},
      {.version = "v1",
       .kind = "Service",
       .plural = "services",
       .short_names = {"svc"},
       .categories = {"all"},
       .has_status = true,
       .is_returned_when_deleted = true,
       .selectable_fields = {"spec.clusterIP", "spec.type"},
       .rules = &kServiceRules},
      {.version = "v1", .kind = "ConfigMap", .plural = "configmaps", .short_names = {"cm"}, .rules = &kConfigMapRules},
      {.version = "v1", .kind = "Secret", .plural = "secrets", .selectable_fields = {"type"}, .rules = &kSecretRules},
      {.version = "v1",
       .kind = "ServiceAccount",
       .plural = "serviceaccounts",
       .short_names = {"sa"},
       .is_returned_when_deleted = true},
      {.version = "v1",
       .kind = "PersistentVolumeClaim",
       .plural = "persistentvolumeclaims",
       .short_names = {"pvc"},
       .has_status = true,
       .is_returned_when_deleted = true,
       .rules = &kClaimRules},
      {.version = "v1",
       .kind = "ResourceQuota",
       .plural = "resourcequotas",
       .short_names = {"quota"},
       .has_status = true,
       .is_returned_when_deleted = true},
      {.version = "v1",
       .kind = "LimitRange",
       .plural = "limitranges",
       .short_names = {"limits"},
       .is_create_allowed_on_update = true,
       .rules = &kLimitRangeRules},
      {.version = "v1",
       .kind = "PersistentVolume",
       .plural = "persistentvolumes",
       .short_names = {"pv"},
       .is_namespaced = false,
       .has_status = true,
       .is_returned_when_deleted = true},
      {.version = "v1",
       .kind = "Event",
       .plural = "events",
       .short_names = {"ev"},
       .is_create_allowed_on_update = true,
       .selectable_fields = {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
                             "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
                             "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"}}};
}

std::vector<ResourceInfo> Groups() {
  const std::string apps = "apps", v1 = "v1";
  return {
      {.group = apps,
       .version = v1,
       .kind = "StatefulSet",
       .plural = "statefulsets",
       .short_names = {"sts"},
       .categories = {"all"},
       .has_status = true,
       .has_scale = true,
       .has_generation = true,
       .rules = &kStatefulSetRules},
      {.group = apps,
       .version = v1,
       .kind = "Deployment",
       .plural = "deployments",
       .short_names = {"deploy"},
       .categories = {"all"},
       .has_status = true,
       .has_scale = true,
       .has_generation = true,
       .rules = &kDeploymentRules},
      {.group = apps,
       .version = v1,
       .kind = "ReplicaSet",
       .plural = "replicasets",
       .short_names = {"rs"},
       .categories = {"all"},
       .has_status = true,
       .has_scale = true,
       .has_generation = true,
       .selectable_fields = {"status.replicas"},
       .rules = &kReplicaSetRules},
      {.group = apps, .version = v1, .kind = "ControllerRevision", .plural = "controllerrevisions"},
      {.group = "batch",
       .version = v1,
       .kind = "Job",
       .plural = "jobs",
       .categories = {"all"},
       .has_status = true,
       .has_generation = true,
       .is_orphaning_by_default = true,
       .selectable_fields = {"status.successful"},
       .rules = &kJobRules},
      {.group = "coordination.k8s.io",
       .version = v1,
       .kind = "Lease",
       .plural = "leases",
       .is_create_allowed_on_update = true,
       .is_unconditional_update_allowed = false,
       .rules = &kLeaseRules},
      {.group = "events.k8s.io",
       .version = v1,
       .kind = "Event",
       .plural = "events",
       .short_names = {"ev"},
       .is_create_allowed_on_update = true,
       .selectable_fields = {"regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
                             "regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath", "reason",
                             "reportingController", "type"}},
      {.group = "apiextensions.k8s.io",
       .version = v1,
       .kind = "CustomResourceDefinition",
       .plural = "customresourcedefinitions",
       .short_names = {"crd", "crds"},
       .categories = {"api-extensions"},
       .is_namespaced = false,
       .has_status = true,
       .has_generation = true,
       .is_unconditional_update_allowed = false,
       .rules = &kDefinitionRules},
      {.group = "scheduling.k8s.io",
       .version = v1,
       .kind = "PriorityClass",
       .plural = "priorityclasses",
       .short_names = {"pc"},
       .is_namespaced = false,
       .has_generation = true,
       .rules = &kPriorityClassRules},
      {.group = "node.k8s.io",
       .version = v1,
       .kind = "RuntimeClass",
       .plural = "runtimeclasses",
       .is_namespaced = false,
       .is_unconditional_update_allowed = false},
      {.group = "storage.k8s.io",
       .version = v1,
       .kind = "StorageClass",
       .plural = "storageclasses",
       .short_names = {"sc"},
       .is_namespaced = false},
      {.group = "resource.k8s.io",
       .version = v1,
       .kind = "DeviceClass",
       .plural = "deviceclasses",
       .is_namespaced = false,
       .has_generation = true},
      {.group = "resource.k8s.io",
       .version = v1,
       .kind = "ResourceClaim",
       .plural = "resourceclaims",
       .has_status = true},
      {.group = "resource.k8s.io", .version = v1, .kind = "ResourceClaimTemplate", .plural = "resourceclaimtemplates"},
      {.group = "resource.k8s.io",
       .version = v1,
       .kind = "ResourceSlice",
       .plural = "resourceslices",
       .is_namespaced = false,
       .has_generation = true,
       .selectable_fields = {"spec.driver", "spec.nodeName"}},
      {.group = "policy",
       .version = v1,
       .kind = "PodDisruptionBudget",
       .plural = "poddisruptionbudgets",
       .short_names = {"pdb"},
       .has_status = true,
       .has_generation = true,
       .rules = &kBudgetRules}};
}

void Append(Infos& infos, std::vector<ResourceInfo> more) {
  for (ResourceInfo& info : more) {
    info.singular = LowerCase(info.kind);
    info.schema = BuiltinSchema(info.kind);
    if (info.has_scale) {
      info.replicas_path = {"spec", "replicas"};
      info.status_replicas_path = {"status", "replicas"};
    }
    infos.push_back(std::make_shared<const ResourceInfo>(std::move(info)));
  }
}

}  // namespace

const std::vector<std::shared_ptr<const ResourceInfo>>& BuiltinResources() {
  static const Infos infos = [] {
    Infos made;
    Append(made, Core());
    Append(made, Groups());
    return made;
  }();
  return infos;
}

}  // namespace kube::testing
