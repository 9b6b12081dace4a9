// SPDX-License-Identifier: Apache-2.0
// The kinds that the object targets read, and what holds for an object of any kind.
#pragma once

#include <string>

#include "clientlib/model/apps_v1.h"
#include "clientlib/model/batch_v1.h"
#include "clientlib/model/coordination_v1.h"
#include "clientlib/model/core_v1.h"
#include "clientlib/model/events_v1.h"
#include "clientlib/model/pod.h"
#include "crds/types/elastic_horovod_job.h"
#include "crds/types/gpu_queue.h"
#include "crds/types/node_pool.h"
#include "crds/types/pod_group.h"
#include "crds/types/trial_job.h"
#include "crds/types/workload_profile.h"
#include "tests/fuzz/check.h"

namespace fuzz {

inline const kube::Kind* const kKinds[] = {
    &kube::KindOf<kube::Pod>(),
    &kube::KindOf<kube::Job>(),
    &kube::KindOf<kube::StatefulSet>(),
    &kube::KindOf<kube::Lease>(),
    &kube::KindOf<kube::Event>(),
    &kube::KindOf<kube::ConfigMap>(),
    &kube::KindOf<kube::Node>(),
    &kube::KindOf<api::ElasticHorovodJob>(),
    &kube::KindOf<api::TrialJob>(),
    &kube::KindOf<api::PodGroup>(),
    &kube::KindOf<api::GpuQueue>(),
    &kube::KindOf<api::NodePool>(),
    &kube::KindOf<api::WorkloadProfile>(),
};

// Written and read again, the object stays as it is. The first time a default may take the place of what is
// empty, and a time loses its fraction; from then on nothing changes.
inline void RequireRoundTrip(const kube::Kind& kind, const kube::Object& object) {
  const kube::Result<std::shared_ptr<kube::Object>> second = kube::DecodeObject(kind, kube::EncodeObject(kind, object));
  Require(second.ok(), "what was written can be read");
  const std::string text = kube::EncodeObject(kind, **second);
  const kube::Result<std::shared_ptr<kube::Object>> third = kube::DecodeObject(kind, text);
  Require(third.ok(), "what was written twice can be read");
  Require(kube::EncodeObject(kind, **third) == text, "an object is written the same each time");
}

}  // namespace fuzz
