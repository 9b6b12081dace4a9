// SPDX-License-Identifier: Apache-2.0
// The apps group, as much of it as a job operator reads. Never send one of these back whole. Values.
#pragma once

#include <cstdint>

#include "clientlib/model/json.h"
#include "clientlib/model/kind.h"

namespace kube {

struct StatefulSetSpec {
  std::int32_t replicas = 1;
  CompactString service_name, pod_management_policy;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const StatefulSetSpec&, const StatefulSetSpec&) = default;
};

struct StatefulSetStatus {
  std::int64_t observed_generation = 0;
  std::int32_t replicas = 0, ready_replicas = 0, available_replicas = 0, current_replicas = 0, updated_replicas = 0;
  CompactString current_revision, update_revision;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const StatefulSetStatus&, const StatefulSetStatus&) = default;
};

struct StatefulSet : Object {
  StatefulSetSpec spec;
  Json spec_json;  // All of spec as the server has it, for IsCovered(); read, never written.
  StatefulSetStatus status;

  // spec.template; null if the object was not read from a server.
  const Json* pod_template() const { return spec_json.Find("template"); }
  static const Kind& ResourceKind();
};

}  // namespace kube
