// SPDX-License-Identifier: Apache-2.0
// What a TrialJob measures: a job, whose trials are ElasticHorovodJobs, or a pod template, whose trials are pods. Holds
// what a trial is created from, and what the plan needs to know of either. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "clientlib/base/result.h"
#include "crds/types/trial_job.h"

namespace grus {

struct Workload {
  std::variant<api::ElasticHorovodJobSpec, kube::Json> made_from;  // The spec of a job, or a pod template.
  int gpus_per_worker = 1;                                         // The GPUs of a trial are a multiple of it.
  std::optional<int> most_workers;                                 // Where the space names no sizes.
  bool is_on_one_node = false;                                     // All GPUs of a trial are.
  std::map<std::string, std::string> node_selector;                // Of the pods with GPUs, from their template.
  std::string_view trial_kind = "ElasticHorovodJob";
};

Workload JobWorkload(api::ElasticHorovodJobSpec spec);

// Errors: kInvalidArgument, with a message for users: no trial can be created from it.
kube::Result<Workload> PodWorkload(kube::Json pod_template, const api::TrialSpace& space);

}  // namespace grus
