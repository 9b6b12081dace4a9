// SPDX-License-Identifier: Apache-2.0
// To which job a pod with GPUs belongs, and how many it has.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>

#include "clientlib/client/client.h"
#include "clientlib/model/pod.h"
#include "controllers/telemetry/run_book.h"

namespace grus {

// That its containers ask for, of any vendor.
std::int32_t GpusOf(const kube::Pod& pod);

// Its controller; without one, the PodGroup that it names, whose UID is then not known; else the pod itself.
JobRef OwnerRefOf(const kube::Pod& pod);

// A pod that runs or has ended; nullopt: neither, or it has no GPUs. `now`: when it began, if it does not say so.
std::optional<GpuPod> GpuPodOf(const kube::Pod& pod, kube::Time now);

// The job above `owner`: the Deployment of a ReplicaSet, the JobSet of a Job, not a CronJob. Reads the API server; what
// may not be read or is gone has nothing above it.
kube::Result<JobRef> RootOf(kube::Client& client, JobRef owner, std::stop_token stop);

}  // namespace grus
