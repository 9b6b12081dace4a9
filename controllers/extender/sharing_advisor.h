// SPDX-License-Identifier: Apache-2.0
// Pods with a part of one GPU in NodePools whose placement is Interference: each gets the GPU on which the least is
// lost, by how fast it and the pods that are there are predicted to be beside each other.
//
// What a pod runs is known by its fingerprint, as WorkloadProfiles have it; what that does alone, and beside others, by
// these. A pod of which nothing is known counts as the usual one, with a wide interval. Where no pod may be slower than
// the pool says, a node is refused that has no such GPU. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/base/log.h"
#include "clientlib/cache/informer.h"
#include "clientlib/client/client.h"
#include "clientlib/model/json.h"
#include "clientlib/runtime/event_recorder.h"
#include "controllers/cluster/gpu_residents.h"
#include "controllers/cluster/pod_placer.h"
#include "controllers/extender/scheduler_call.h"
#include "controllers/interference/gpu_choice.h"
#include "controllers/policy/workload_fingerprint.h"

namespace grus {

// On a pod that got its GPU so: that GPU, the predicted speeds, and what came next. For people.
inline constexpr char kGpuChoiceAnnotation[] = "sharing.ai.centauruscloud.io/gpu-choice";

struct SharingSources {
  kube::Informer& pods;
  const kube::Informer& nodes;
  const kube::Informer* profiles = nullptr;  // WorkloadProfiles; null: nobody measures.
  const kube::Informer* jobs = nullptr;      // ElasticHorovodJobs; null: their pods are those of others.
  ProfileTrust trust = ProfileTrust::kNamespace;
};

struct GivenGpus {
  std::string gpus = {};                              // As PodPlacer::Take() has it.
  kube::Json annotations = kube::Json::MakeObject();  // For the pod.
  std::string explanation = {};                       // Empty: it did not go by predictions.
};

// Shared GPUs with more pods are judged by so many of them: each pair is asked about.
inline constexpr std::size_t kMostResidents = 8;

class SharingAdvisor {
 public:
  // All must outlive it. Adds an index to the pods: REQUIRES: that informer is not started yet.
  SharingAdvisor(kube::Client& client, SharingSources sources, ClusterAccount& account, kube::EventRecorder& events,
                 const kube::Clock& clock, const kube::Log& log);

  // The model that predicts from now on.
  void SetModel(PairSpeedCache::Model model);

  // Says of nodes that are not refused yet why not, where somebody would be slower than the pool allows.
  void Refuse(const NodesCall& call, std::vector<std::string>& why_not);
  // Ranks nodes whose placement is kInterference by the best GPU that they have; others stay as they are.
  void Rank(const NodesCall& call, std::vector<NodeRank>& ranks);

  // Chooses and takes. May ask the API server what the pod runs. Errors: as PodPlacer::Take(); kConflict: somebody
  // would be too slow on each GPU.
  kube::Result<GivenGpus> Take(const kube::Pod& pod, const std::string& node);
  void NoteBound(const kube::Pod& pod, const GivenGpus& given);  // Tells the pod's user.
  void GiveBack(const kube::Pod& pod);                           // It was not bound after all.

 private:
  // Bound by this process, and perhaps not seen bound yet.
  struct Recent {
    std::shared_ptr<const kube::Pod> pod = {};
    std::string node = {}, gpu = {}, workload = {};
    kube::TimePoint bound{};
  };
  struct Group;
  class Look;
  using Names = std::unordered_set<std::string>;

  // `sent`: the whole pod, in JSON; empty: the API server is asked for it.
  std::string WorkloadFor(const kube::Pod& pod, std::string_view sent);
  std::vector<Group> GroupsOf(const NodesCall& call, bool only_with_least_speed);
  std::vector<Recent> Recents();
  std::shared_ptr<const Names> Named();

  kube::Client& client_;
  const SharingSources sources_;
  const GpuResidents residents_;
  PodPlacer placer_;
  kube::EventRecorder& events_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  PairSpeedCache speeds_;
  std::mutex taking_;  // One choice at a time, so that each knows those before it. Taken before mutex_.
  std::mutex mutex_;   // Guards what follows.
  std::map<std::string, std::string> workloads_;                          // By UID of pods that are to be bound.
  std::map<std::string, Recent> recents_;                                 // By UID.
  std::shared_ptr<const Names> named_ = std::make_shared<const Names>();  // Jobs that the model has seen.
};

}  // namespace grus
