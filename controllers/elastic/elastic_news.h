// SPDX-License-Identifier: Apache-2.0
// Which changes are worth a pass over their job, and how soon. Pure.
//
// Pods and the statuses of children change far more often than anything that the plan reads; a pass for each of these
// changes is most of what a busy manager would do.
#pragma once

#include "clientlib/model/core_v1.h"
#include "controllers/frame/key_feed.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {

// For the job itself; `before` null: it is new. How far its training is, pushed or told, the plan does not read.
News NewsOfJob(const api::ElasticHorovodJob* before, const api::ElasticHorovodJob* after);

// For a pod of a job that is not hungry. One of the two may be null: the pod was created or deleted.
News NewsOfJobPod(const kube::Pod* before, const kube::Pod* after);

// For a child of `kind`: Service, ConfigMap, Job or PodGroup.
bool LooksSameToPlan(const kube::Kind& kind, const kube::Object& before, const kube::Object& after);

}  // namespace grus
