// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/job_class.h"

#include <algorithm>

namespace grus {

JobClass JobClassOf(api::WorkloadClass workload_class) {
  switch (workload_class) {
    case api::WorkloadClass::kInteractive: return JobClass::kInteractive;
    case api::WorkloadClass::kInference: return JobClass::kInference;
    case api::WorkloadClass::kUnattended: return JobClass::kUnattended;
  }
  return JobClass::kUnattended;
}

std::optional<JobClass> JobClassOf(std::string_view label) {
  if (label.empty()) return JobClass::kUnattended;
  const auto names = EnumNames(api::WorkloadClass());
  const auto found = std::ranges::find(names, label);
  if (found == names.end()) return std::nullopt;
  return JobClassOf(static_cast<api::WorkloadClass>(found - names.begin()));
}

}  // namespace grus
