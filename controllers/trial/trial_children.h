// SPDX-License-Identifier: Apache-2.0
// The objects of a trial, made from the workload: an ElasticHorovodJob of fixed size; or a Pod on each node, with a
// PodGroup that makes them a gang, so that they wait in the same queue as all others.
//
// Of several pods the first is the trial: it has its name, its log is read, and it owns the others, its peers, and a
// headless Service by which they find it. They get the variables of torchrun, as MASTER_ADDR and PET_NNODES.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "clientlib/model/json.h"
#include "clientlib/model/pod.h"
#include "controllers/trial/trial_view.h"

namespace grus {

// Backstop: the reconciler enforces the slice. Far longer than an image pull or a clock that is set forward.
inline constexpr std::int64_t kStartAllowanceSeconds = 4 * 3600;
// Short, because a trial has nothing to save, and its GPUs count until its pods are gone.
inline constexpr std::int64_t kTrialGraceSeconds = 2;

struct TrialStart {
  std::string name;
  api::TrialConfig config;
  std::int64_t slice_seconds = 0;
  std::int64_t spent_before = 0;  // GPU seconds of earlier tries of the same trial.
  int pods = 0;                   // Of a trial that is pods; 0: one, which trains for itself.
};

// REQUIRES: config.gpus is a multiple of the workload's gpusPerWorker.
kube::Json MakeJobTrial(const api::TrialJob& job, const api::ElasticHorovodJobSpec& workload, const TrialStart& trial);

// REQUIRES: PodWorkload() accepts the template. `is_gang`: it is created with the gang's gate.
kube::Json MakePodTrial(const api::TrialJob& job, const kube::Json& pod_template, const TrialStart& trial,
                        bool is_gang);
// The pods 1, 2, ... of a trial of several. `first_uid`: of its first pod, which owns them.
std::vector<kube::Json> MakeTrialPeers(const api::TrialJob& job, const kube::Json& pod_template,
                                       const TrialStart& trial, bool is_gang, const std::string& first_uid);
kube::Json MakeTrialService(const api::TrialJob& job, const TrialStart& trial, const std::string& first_uid);
// `pod`: the first, which owns it.
kube::Json MakeTrialGroup(const kube::Pod& pod);

}  // namespace grus
