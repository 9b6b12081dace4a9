// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/batch_v1.h"

namespace kube {

std::span<const FieldInfo> JobSpec::Fields() {
  using T = JobSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::parallelism>("parallelism"),
      Field<&T::completions>("completions"),
      Field<&T::backoff_limit>("backoffLimit"),
      Field<&T::suspend>("suspend", {.omit_zero = true}),
  };
  return kFields;
}

std::span<const FieldInfo> JobStatus::Fields() {
  using T = JobStatus;
  static constexpr FieldInfo kFields[] = {
      Field<&T::conditions>("conditions"),
      Field<&T::start_time>("startTime"),
      Field<&T::completion_time>("completionTime"),
      Field<&T::active>("active", {.omit_zero = true}),
      Field<&T::succeeded>("succeeded", {.omit_zero = true}),
      Field<&T::failed>("failed", {.omit_zero = true}),
      Field<&T::ready>("ready", {.omit_zero = true}),
  };
  return kFields;
}

const Kind& Job::ResourceKind() {
  static constexpr FieldInfo kFields[] = {
      Field<&Job::spec>("spec"),
      Field<&Job::spec_json>("spec", {.read_only = true}),
      Field<&Job::status>("status"),
  };
  static const Kind kKind =
      MakeKind<Job>({.group = "batch", .version = "v1", .kind = "Job", .plural = "jobs", .fields = kFields});
  return kKind;
}

}  // namespace kube
