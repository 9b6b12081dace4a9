// SPDX-License-Identifier: Apache-2.0
// The core group, as much of it as a job operator reads. Never send one of these back whole.
// Pods are in pod.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/model/condition.h"
#include "clientlib/model/json.h"
#include "clientlib/model/kind.h"
#include "clientlib/model/pod.h"

namespace kube {

struct Taint {
  CompactString key, value = {}, effect = {};
  std::optional<Time> time_added = {};
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const Taint&, const Taint&) = default;
};

struct NodeSpec {
  bool unschedulable = false;
  CompactString provider_id;
  std::vector<Taint> taints;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const NodeSpec&, const NodeSpec&) = default;
};

struct NodeStatus {
  ResourceList capacity, allocatable;
  std::vector<CoreCondition> conditions;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const NodeStatus&, const NodeStatus&) = default;
};

struct Node : Object {
  NodeSpec spec;
  NodeStatus status;
  static const Kind& ResourceKind();
};

struct ServiceSpec {
  CompactString type, cluster_ip;  // "None": headless.
  StringMap selector;
  bool publish_not_ready_addresses = false;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ServiceSpec&, const ServiceSpec&) = default;
};

struct Service : Object {
  ServiceSpec spec;
  Json spec_json;  // All of spec as the server has it, for IsCovered(); read, never written.
  static const Kind& ResourceKind();
};

struct ConfigMap : Object {
  std::map<std::string, std::string> data;
  Json data_json() const;  // For IsCovered().
  static const Kind& ResourceKind();
};

// networking.k8s.io; its spec is written as Json.
struct NetworkPolicy : Object {
  static const Kind& ResourceKind();
};

struct Secret : Object {
  CompactString type;
  bool immutable = false;
  std::map<std::string, std::string> data;  // Base64, as in the API.
  static const Kind& ResourceKind();
};

struct NamespaceStatus {
  CompactString phase;  // "Active" or "Terminating".
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const NamespaceStatus&, const NamespaceStatus&) = default;
};

struct Namespace : Object {
  NamespaceStatus status;
  static const Kind& ResourceKind();
};

// Names another object: what an event is about.
struct ObjectReference {
  CompactString api_version, kind, ns, name, uid, resource_version, field_path;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ObjectReference&, const ObjectReference&) = default;
};

}  // namespace kube
