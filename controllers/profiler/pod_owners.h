// SPDX-License-Identifier: Apache-2.0
// To which job a pod with GPUs belongs, and how many it has.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "clientlib/client/client.h"
#include "clientlib/model/core_v1.h"
#include "clientlib/model/pod.h"
#include "controllers/telemetry/run_book.h"

namespace grus {

// A kind of others, as an administrator lists it: "kubeflow.org", "pytorchjobs". The core group is "".
struct OwnerKind {
  std::string group = {}, resource = {};
  std::string kind = {};  // "Job"; empty: not known, any whose plural is the resource.
  friend bool operator==(const OwnerKind&, const OwnerKind&) = default;
};

// Of a pod, or of what controls it.
struct PodOwner {
  JobRef ref = {};
  std::string group = {}, version = {};  // "kubeflow.org", "v1"; no version: the kind is no other's.
};

// Of `owner` in `kinds`; null: it is none of them. The plural of a kind is as Kubernetes forms it.
const OwnerKind* KindIn(std::span<const OwnerKind> kinds, const PodOwner& owner);

// That its containers ask for, of any vendor; at most what its node has, since anyone may ask for more in a pod that
// names its node itself. `node`: null if it is not known.
std::int32_t GpusOf(const kube::Pod& pod, const kube::Node* node);

// Its controller; without one, the PodGroup that it names, whose UID is then not known; else the pod itself, also if
// the words of its controller are such as no object has: these may stand in paths.
PodOwner PodOwnerOf(const kube::Pod& pod);

// A pod that runs or has ended; nullopt: neither, or it has no GPUs. `now`: when it began, if it does not say so.
std::optional<GpuPod> GpuPodOf(const kube::Pod& pod, const kube::Node* node, kube::Time now);

// The job above `owner`: the Deployment of a ReplicaSet, the JobSet of a Job, not a CronJob; of `kinds` too, their
// controllers. Reads the API server; what may not or cannot be read, or is gone, has nothing above it.
kube::Result<JobRef> RootOf(kube::Client& client, PodOwner owner, std::span<const OwnerKind> kinds,
                            std::stop_token stop);

}  // namespace grus
