// SPDX-License-Identifier: Apache-2.0
// The kind of docs/new-controller.md, described once: its parser, its writer and its CRD come from the tables.
#pragma once

#include <vector>

#include "clientlib/model/condition.h"
#include "clientlib/model/kind.h"

namespace example {

struct QuorumSpec {
  std::int32_t minimum = 1;
  static std::span<const kube::FieldInfo> Fields() {
    static constexpr kube::FieldInfo kFields[] = {
        kube::Field<&QuorumSpec::minimum>("minimum", {.doc = "So many pods must run.", .minimum = 1}),
    };
    return kFields;
  }
};

struct QuorumStatus {
  std::int32_t running = 0;
  std::int64_t observed_generation = 0;
  std::vector<kube::Condition> conditions;
  static std::span<const kube::FieldInfo> Fields() {
    using T = QuorumStatus;
    static constexpr kube::FieldInfo kFields[] = {
        kube::Field<&T::running>("running", {.doc = "Pods that run."}),
        kube::Field<&T::observed_generation>("observedGeneration", {.doc = "The generation this status is about."}),
        kube::Field<&T::conditions>("conditions", {.doc = "kstatus.", .list_type = "map", .list_map_key = "type"}),
    };
    return kFields;
  }
  friend bool operator==(const QuorumStatus&, const QuorumStatus&) = default;
};

struct Quorum : kube::Object {
  QuorumSpec spec;
  QuorumStatus status;
  static const kube::Kind& ResourceKind() {
    static constexpr kube::FieldInfo kFields[] = {
        kube::Field<&Quorum::spec>("spec", {.doc = "What the user wants."}),
        kube::Field<&Quorum::status>("status", {.doc = "What was observed."}),
    };
    static const kube::Kind kKind = kube::MakeKind<Quorum>(
        {.group = "example.com", .version = "v1", .kind = "Quorum", .plural = "quorums", .fields = kFields});
    return kKind;
  }
};

}  // namespace example
