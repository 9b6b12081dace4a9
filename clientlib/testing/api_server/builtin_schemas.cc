// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/builtin_schemas.h"

#include <cassert>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kube::testing {
namespace {

using Fields = std::vector<std::pair<std::string, Json>>;

Json Struct(const Fields& fields) {
  Json properties = Json::MakeObject();
  for (const auto& [name, schema] : fields) properties[name] = schema;
  return Json::MakeObject(
      {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}, {"properties", std::move(properties)}});
}

Json Text() { return Json::MakeObject({{"type", "string"}}); }
Json Number() { return Json::MakeObject({{"type", "integer"}}); }
Json Protocol() { return Json::MakeObject({{"type", "string"}, {"default", "TCP"}}); }

Json ListOf(Json item, std::string_view type, const std::vector<std::string_view>& keys = {}) {
  Json schema = Json::MakeObject({{"type", "array"}, {"items", std::move(item)}, {"x-kubernetes-list-type", type}});
  for (const std::string_view key : keys) schema["x-kubernetes-list-map-keys"].Append(key);
  return schema;
}

// Items of `fields` with one key of text.
Json ByKey(std::string_view key, Fields fields = {}) {
  fields.insert(fields.begin(), {std::string(key), Text()});
  Json item = Struct(fields);
  item["required"].Append(key);
  return ListOf(std::move(item), "map", {key});
}

Json SetOfText() { return ListOf(Text(), "set"); }

Json AtomicMap() {
  return Json::MakeObject(
      {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}, {"x-kubernetes-map-type", "atomic"}});
}

// Known to the schema, so that its members are fields and not keys of a map.
Json Granular() { return Struct({}); }

Json StringMapSchema() { return Json::MakeObject({{"type", "object"}, {"additionalProperties", Text()}}); }

Json QuantityMap() {
  return Json::MakeObject(
      {{"type", "object"}, {"additionalProperties", Json::MakeObject({{"x-kubernetes-int-or-string", true}})}});
}

Json Container() {
  Json port = Struct({{"containerPort", Number()}, {"protocol", Protocol()}});
  port["required"].Append("containerPort");
  const Json resources = Struct({{"limits", QuantityMap()}, {"requests", QuantityMap()}, {"claims", ByKey("name")}});
  return ByKey("name", {{"env", ByKey("name")},
                        {"ports", ListOf(std::move(port), "map", {"containerPort", "protocol"})},
                        {"volumeMounts", ByKey("mountPath")},
                        {"volumeDevices", ByKey("devicePath")},
                        {"resources", resources}});
}

Json PodSpec() {
  Json spread = Struct({{"topologyKey", Text()}, {"whenUnsatisfiable", Text()}, {"labelSelector", AtomicMap()}});
  spread["required"] = Json::MakeArray({"topologyKey", "whenUnsatisfiable"});
  return Struct(
      {{"containers", Container()},
       {"initContainers", Container()},
       {"ephemeralContainers", Container()},
       {"volumes", ByKey("name")},
       {"imagePullSecrets", ByKey("name")},
       {"schedulingGates", ByKey("name")},
       {"resourceClaims", ByKey("name")},
       {"hostAliases", ByKey("ip")},
       {"nodeSelector", AtomicMap()},
       {"overhead", QuantityMap()},
       {"topologySpreadConstraints", ListOf(std::move(spread), "map", {"topologyKey", "whenUnsatisfiable"})}});
}

Json PodTemplate() { return Struct({{"metadata", MetadataSchema()}, {"spec", PodSpec()}}); }

Json Conditions() { return ByKey("type"); }

// A kind with metadata, spec and status.
Json Kind(const Fields& spec, Fields status = {{"conditions", Conditions()}}) {
  return Struct({{"metadata", MetadataSchema()}, {"spec", Struct(spec)}, {"status", Struct(status)}});
}

Json Workload() { return Kind({{"template", PodTemplate()}, {"selector", AtomicMap()}}); }

Json PodSchema() {
  Json pod =
      Kind({}, {{"conditions", Conditions()}, {"podIPs", ByKey("ip")}, {"hostIPs", ListOf(Granular(), "atomic")}});
  pod["properties"]["spec"] = PodSpec();
  return pod;
}

Json ServiceSchema() {
  Json port = Struct({{"port", Number()}, {"protocol", Protocol()}});
  port["required"].Append("port");
  return Kind({{"ports", ListOf(std::move(port), "map", {"port", "protocol"})},
               {"selector", AtomicMap()},
               {"clusterIPs", ListOf(Text(), "atomic")}});
}

Json SchemaOf(std::string_view kind) {
  if (kind == "Pod") return PodSchema();
  if (kind == "StatefulSet" || kind == "Deployment" || kind == "ReplicaSet" || kind == "Job") return Workload();
  if (kind == "Service") return ServiceSchema();
  if (kind == "Node") {
    return Kind({{"podCIDRs", SetOfText()}, {"taints", ListOf(Granular(), "atomic")}},
                {{"conditions", Conditions()},
                 {"addresses", ByKey("type")},
                 {"capacity", QuantityMap()},
                 {"allocatable", QuantityMap()}});
  }
  if (kind == "Namespace" || kind == "PersistentVolumeClaim") return Kind({});
  if (kind == "ResourceQuota") {
    return Kind({{"hard", QuantityMap()}, {"scopeSelector", AtomicMap()}, {"scopes", ListOf(Text(), "atomic")}},
                {{"hard", QuantityMap()}, {"used", QuantityMap()}});
  }
  if (kind == "LimitRange") {
    Fields amounts = {{"type", Text()}};
    for (const char* const field : {"max", "min", "default", "defaultRequest", "maxLimitRequestRatio"}) {
      amounts.emplace_back(field, QuantityMap());
    }
    return Kind({{"limits", ListOf(Struct(amounts), "atomic")}}, {});
  }
  if (kind == "RuntimeClass") {
    const Json scheduling = Struct({{"nodeSelector", AtomicMap()}, {"tolerations", ListOf(Granular(), "atomic")}});
    return Struct({{"metadata", MetadataSchema()},
                   {"overhead", Struct({{"podFixed", QuantityMap()}})},
                   {"scheduling", scheduling}});
  }
  if (kind == "PodDisruptionBudget") return Kind({{"selector", AtomicMap()}});
  if (kind == "CustomResourceDefinition") {
    return Kind({}, {{"conditions", Conditions()}, {"storedVersions", ListOf(Text(), "atomic")}});
  }
  if (kind == "ServiceAccount") {
    return Struct({{"metadata", MetadataSchema()},
                   {"secrets", ByKey("name")},
                   {"imagePullSecrets", ListOf(Granular(), "atomic")}});
  }
  if (kind == "Lease") return Struct({{"metadata", MetadataSchema()}, {"spec", Granular()}});
  if (kind == "ConfigMap" || kind == "Secret") {
    return Struct({{"metadata", MetadataSchema()}, {"data", StringMapSchema()}, {"binaryData", StringMapSchema()}});
  }
  return Struct({{"metadata", MetadataSchema()}});
}

}  // namespace

Json MetadataSchema() {
  Json owner = Struct({{"uid", Text()}, {"apiVersion", Text()}, {"kind", Text()}, {"name", Text()}});
  owner["required"].Append("uid");
  owner["x-kubernetes-map-type"] = "atomic";
  return Struct({{"name", Text()},
                 {"generateName", Text()},
                 {"namespace", Text()},
                 {"labels", StringMapSchema()},
                 {"annotations", StringMapSchema()},
                 {"finalizers", SetOfText()},
                 {"ownerReferences", ListOf(std::move(owner), "map", {"uid"})}});
}

std::shared_ptr<const StructuralSchema> BuiltinSchema(std::string_view kind) {
  Result<std::shared_ptr<const StructuralSchema>> schema = StructuralSchema::Parse(SchemaOf(kind));
  assert(schema && "the schemas of this file are structural");
  return schema ? *std::move(schema) : nullptr;
}

}  // namespace kube::testing
