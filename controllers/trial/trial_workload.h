// SPDX-License-Identifier: Apache-2.0
// What a TrialJob measures: a job, whose trials are ElasticHorovodJobs, or a pod template, whose trials are pods, one
// on each node. Holds what a trial is created from, and what the plan needs to know of either. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "clientlib/base/result.h"
#include "controllers/policy/resources.h"
#include "crds/types/trial_job.h"

namespace grus {

struct Workload {
  std::variant<api::ElasticHorovodJobSpec, kube::Json> made_from;  // The spec of a job, or a pod template.
  int gpus_per_worker = 1;                                         // The GPUs of a trial are a multiple of it.
  Resources part = {};              // Of a GPU, that each worker or pod has, and that counts as one; empty: whole GPUs.
  std::optional<int> most_workers;  // Where the space names no sizes.
  bool is_pod = false;
  bool is_on_one_node = false;                       // A pod that trains for itself: all GPUs of a trial are there.
  std::map<std::string, std::string> node_selector;  // Of the pods with GPUs, from their template.

  std::string_view trial_kind() const { return is_pod ? "Pod" : "ElasticHorovodJob"; }
};

Workload JobWorkload(api::ElasticHorovodJobSpec spec);

// Its trials may be on several nodes if the space asks for that, or if its command runs torchrun and leaves the number
// of nodes open. Errors: kInvalidArgument, with a message for users: no trial can be created from it.
kube::Result<Workload> PodWorkload(kube::Json pod_template, const api::TrialSpace& space);

}  // namespace grus
