// SPDX-License-Identifier: Apache-2.0
// kubectl grus trial export: what was measured of a workload, as CSV or JSON, for other programs and for trial fit.
//
// A row for each measured configuration: gpu_type, num_nodes, num_replicas (GPUs), local_bsz (samples of a GPU and
// step; 1 if the batch size is not known), step_time (s), batch_size (as it was asked for; 0: the workload's own),
// throughput, low and high (its 90 % interval) and unit.
//
// Pure: objects in, text out.
#pragma once

#include <string>

#include "clientlib/base/result.h"
#include "crds/types/trial_job.h"
#include "crds/types/workload_profile.h"

namespace grus {

// What the trials have measured, as a profile has it; without speeds of which it is not known whose they are.
api::WorkloadProfileSpec MeasuredBy(const api::TrialJob& trial);

struct ExportOptions {
  bool is_json = false;       // An array of objects, with the names of the columns.
  std::string gpu_type = {};  // Empty: all of them.
};

// `name` is the object's, for errors. Error kNotFound: nothing of this type was measured.
kube::Result<std::string> ExportPoints(const api::WorkloadProfileSpec& measured, const std::string& name,
                                       const ExportOptions& options);

// The GPU type that `asked` means. Error kInvalidArgument: it was not measured, or is empty and there are several.
kube::Result<std::string> ChooseType(const api::WorkloadProfileSpec& measured, const std::string& name,
                                     const std::string& asked);

}  // namespace grus
