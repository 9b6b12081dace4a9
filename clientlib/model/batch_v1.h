// SPDX-License-Identifier: Apache-2.0
// The batch group, as much of it as a job operator reads. Never send one of these back whole. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "clientlib/model/condition.h"
#include "clientlib/model/json.h"
#include "clientlib/model/kind.h"

namespace kube {

struct JobSpec {
  std::optional<std::int32_t> parallelism, completions, backoff_limit;
  bool suspend = false;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

struct JobStatus {
  std::int32_t active = 0, ready = 0, succeeded = 0, failed = 0;
  std::optional<Time> start_time, completion_time;
  std::vector<CoreCondition> conditions;

  // Complete, SuccessCriteriaMet and Failed are final, once true.
  bool is_complete() const { return IsConditionTrue(conditions, "Complete"); }
  bool is_failed() const { return IsConditionTrue(conditions, "Failed"); }
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const JobStatus&, const JobStatus&) = default;
};

struct Job : Object {
  JobSpec spec;
  Json spec_json;  // All of spec as the server has it, for IsCovered(); read, never written.
  JobStatus status;
  static const Kind& ResourceKind();
};

}  // namespace kube
