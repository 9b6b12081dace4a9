// SPDX-License-Identifier: Apache-2.0
// Which jobs are the same workload: those that train equally fast on equal GPUs, so that what one of them
// measured holds for all.
//
// What counts:
//   - the image of the workers, by its digest where that is known, else by its name;
//   - the training command, as the shell gets it;
//   - what a worker asks for and is limited to, by value, but for its GPUs;
//   - GPUs per worker;
//   - environment variables of the worker and of the launcher that have a value: NCCL_ALGO or
//     OMP_NUM_THREADS change the speed as a flag does;
//   - volumes, and where the worker and the launcher mount them: the training may lie there;
//   - what the annotations kModelAnnotation and kDatasetAnnotation say;
//   - the namespace, unless all namespaces trust each other: anyone can make a job that looks the same, and be as fast
//     as they like.
// What does not count: sizes, GPU types and batch sizes that trials set (a point's configuration says them),
// the image of the launcher, queues, priorities; variables with a valueFrom, and envFrom, which hold
// names and secrets; the order of fields, defaults that are written out, and "1000m" for "1".
//
// Trials of a TrialJob may be made of a pod template: all this, but for GPUs, is then that of the container that
// trains, and its command and args count word by word, since no shell joins them.
//
// A variable that differs in every run, such as a run's ID, makes each run a workload of its own: give it by valueFrom,
// or name a profile in spec.profile.
//
// Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "crds/types/elastic_horovod_job.h"
#include "crds/types/workload_profile.h"

namespace grus {

inline constexpr char kModelAnnotation[] = "ai.centauruscloud.io/model";
inline constexpr char kDatasetAnnotation[] = "ai.centauruscloud.io/dataset";
inline constexpr char kGpuProductLabel[] = "nvidia.com/gpu.product";

// Whose measurements a workload uses and adds to: those of its namespace, or of all.
enum class ProfileTrust { kNamespace, kCluster };

struct WorkloadIdentity {
  std::string fingerprint;  // 32 hexadecimal digits of a SHA-256: a legal object name.
  // What the fingerprint is made of, for people; without the environment, which may be private.
  api::ProfiledWorkload workload;
};

// `metadata`: of the object that has the spec; its annotations and its namespace count. `image_digest`: "sha256:...",
// or a pod's imageID that ends so; anything else is ignored. Callers that save and callers that look up must agree on
// it.
WorkloadIdentity IdentityOf(const api::ElasticHorovodJobSpec& spec, const kube::ObjectMeta& metadata,
                            ProfileTrust trust, std::string_view image_digest = {});

// Of a workload that is a pod. An annotation of the template comes before one of `metadata`.
WorkloadIdentity IdentityOfPod(const kube::Json& pod_template, const kube::ObjectMeta& metadata, ProfileTrust trust);

// Of a pod that others made from a template that is not known, as the API server has it: its containers with image,
// command, arguments and resources but parts of GPUs, and its annotations. So a pod with a part of a GPU is the same
// workload as one with a whole GPU, by which it is known what that does alone.
WorkloadIdentity IdentityOfRunningPod(const kube::Json& pod, const kube::ObjectMeta& metadata, ProfileTrust trust);

// True if spec.profile is the name of one: neither Auto nor Off.
bool NamesItsProfile(const api::ElasticHorovodJob& job);

// The name of the WorkloadProfile that `job` uses by spec.profile: its fingerprint for Auto, none for Off,
// else the name that is given.
std::optional<std::string> ProfileNameOf(const api::ElasticHorovodJob& job, ProfileTrust trust);

// Whether jobs of that namespace may use it: it is theirs, or everybody's, as those that an administrator writes.
bool IsFor(const api::WorkloadProfile& profile, std::string_view ns);
// Whether what `job` measures belongs there: it is its own workload, whatever profile it names.
bool IsOf(const api::WorkloadProfile& profile, const api::ElasticHorovodJob& job, ProfileTrust trust);

// The GPU type that its workers ask for; empty: any.
std::string GpuTypeOf(const api::ElasticHorovodJob& job);
// What the status of `job` says of its profile. The knee is that of the GPU type which the worker's node
// selector names by the label kGpuProductLabel, else of the only GPU type that was measured.
api::JobProfile JobProfileOf(const api::WorkloadProfile& profile, const api::ElasticHorovodJob& job);

}  // namespace grus
