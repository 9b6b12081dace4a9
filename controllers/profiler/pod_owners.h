// SPDX-License-Identifier: Apache-2.0
// To which job a pod with GPUs belongs, and how many it has.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>

#include "clientlib/client/client.h"
#include "clientlib/model/core_v1.h"
#include "clientlib/model/pod.h"
#include "controllers/telemetry/run_book.h"

namespace grus {

// That its containers ask for, of any vendor; at most what its node has, since anyone may ask for more in a pod that
// names its node itself. `node`: null if it is not known.
std::int32_t GpusOf(const kube::Pod& pod, const kube::Node* node);

// Its controller; without one, the PodGroup that it names, whose UID is then not known; else the pod itself.
JobRef OwnerRefOf(const kube::Pod& pod);

// A pod that runs or has ended; nullopt: neither, or it has no GPUs. `now`: when it began, if it does not say so.
std::optional<GpuPod> GpuPodOf(const kube::Pod& pod, const kube::Node* node, kube::Time now);

// The job above `owner`: the Deployment of a ReplicaSet, the JobSet of a Job, not a CronJob. Reads the API server; what
// may not be read or is gone has nothing above it.
kube::Result<JobRef> RootOf(kube::Client& client, JobRef owner, std::stop_token stop);

}  // namespace grus
