// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/core_v1.h"

namespace kube {

std::span<const FieldInfo> Taint::Fields() {
  using T = Taint;
  static constexpr FieldInfo kFields[] = {
      Field<&T::key>("key", {.required = true}),
      Field<&T::value>("value"),
      Field<&T::effect>("effect", {.required = true}),
      Field<&T::time_added>("timeAdded"),
  };
  return kFields;
}

std::span<const FieldInfo> NodeSpec::Fields() {
  using T = NodeSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::provider_id>("providerID"),
      Field<&T::unschedulable>("unschedulable", {.omit_zero = true}),
      Field<&T::taints>("taints"),
  };
  return kFields;
}

std::span<const FieldInfo> NodeStatus::Fields() {
  using T = NodeStatus;
  static constexpr FieldInfo kFields[] = {
      Field<&T::capacity>("capacity"),
      Field<&T::allocatable>("allocatable"),
      Field<&T::conditions>("conditions"),
  };
  return kFields;
}

const Kind& Node::ResourceKind() {
  static constexpr FieldInfo kFields[] = {
      Field<&Node::spec>("spec"),
      Field<&Node::status>("status"),
  };
  static const Kind kKind =
      MakeKind<Node>({.version = "v1", .kind = "Node", .plural = "nodes", .is_namespaced = false, .fields = kFields});
  return kKind;
}

std::span<const FieldInfo> ServiceSpec::Fields() {
  using T = ServiceSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::selector>("selector"),
      Field<&T::cluster_ip>("clusterIP"),
      Field<&T::type>("type"),
      Field<&T::publish_not_ready_addresses>("publishNotReadyAddresses", {.omit_zero = true}),
  };
  return kFields;
}

const Kind& Service::ResourceKind() {
  static constexpr FieldInfo kFields[] = {
      Field<&Service::spec>("spec"),
      Field<&Service::spec_json>("spec", {.read_only = true}),
  };
  static const Kind kKind =
      MakeKind<Service>({.version = "v1", .kind = "Service", .plural = "services", .fields = kFields});
  return kKind;
}

Json ConfigMap::data_json() const {
  Json json = Json::MakeObject();
  for (const auto& [key, value] : data) json.AsObject()->emplace_back(key, value);
  return json;
}

const Kind& ConfigMap::ResourceKind() {
  static constexpr FieldInfo kFields[] = {Field<&ConfigMap::data>("data")};
  static const Kind kKind =
      MakeKind<ConfigMap>({.version = "v1", .kind = "ConfigMap", .plural = "configmaps", .fields = kFields});
  return kKind;
}

const Kind& NetworkPolicy::ResourceKind() {
  static const Kind kKind = MakeKind<NetworkPolicy>(
      {.group = "networking.k8s.io", .version = "v1", .kind = "NetworkPolicy", .plural = "networkpolicies"});
  return kKind;
}

const Kind& Secret::ResourceKind() {
  static constexpr FieldInfo kFields[] = {
      Field<&Secret::immutable>("immutable", {.omit_zero = true}),
      Field<&Secret::data>("data"),
      Field<&Secret::type>("type"),
  };
  static const Kind kKind =
      MakeKind<Secret>({.version = "v1", .kind = "Secret", .plural = "secrets", .fields = kFields});
  return kKind;
}

std::span<const FieldInfo> NamespaceStatus::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&NamespaceStatus::phase>("phase")};
  return kFields;
}

const Kind& Namespace::ResourceKind() {
  static constexpr FieldInfo kFields[] = {Field<&Namespace::status>("status")};
  static const Kind kKind = MakeKind<Namespace>(
      {.version = "v1", .kind = "Namespace", .plural = "namespaces", .is_namespaced = false, .fields = kFields});
  return kKind;
}

std::span<const FieldInfo> ObjectReference::Fields() {
  using T = ObjectReference;
  static constexpr FieldInfo kFields[] = {
      Field<&T::kind>("kind"),
      Field<&T::ns>("namespace"),
      Field<&T::name>("name"),
      Field<&T::uid>("uid"),
      Field<&T::api_version>("apiVersion"),
      Field<&T::resource_version>("resourceVersion"),
      Field<&T::field_path>("fieldPath"),
  };
  return kFields;
}

}  // namespace kube
