// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_objects.h"

#include "clientlib/model/core_v1.h"
#include "clientlib/runtime/ownership.h"
#include "controllers/cluster/owners.h"
#include "controllers/trial/trial_peers.h"
#include "crds/types/pod_group.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using api::TrialJob;
using kube::Json;
using kube::KindOf;
using kube::ObjectKey;

bool HasNode(const kube::Informer& nodes, const kube::Pod& pod) {
  const std::string node = pod.spec.node_name.str();
  return node.empty() || nodes.store().Get({"", node}) != nullptr;
}

class JobTrials final : public TrialObjects {
 public:
  explicit JobTrials(const TrialCaches& caches)
      : TrialObjects(caches.jobs), caches_(caches), pods_by_job_(caches.pods.AddIndex(JobKeysOf)) {}

  void Read(const TrialJob& owner, const std::string& trial, const Pods* live, TrialRun& run) const override {
    const ObjectKey key{owner.metadata.ns, trial};
    if (const auto job = caches_.jobs.Get<ElasticHorovodJob>(key)) run.child = ReadTrialChild(*job, owner);
    if (run.child && !run.child->is_ours) return;
    for (const auto& pod : live != nullptr ? *live : caches_.pods.ByIndex<kube::Pod>(pods_by_job_, key.ToString())) {
      ReadTrialPod(*pod, PartInJob(*pod), HasNode(caches_.nodes, *pod), run.pods);
    }
  }
  std::string PodSelector(const TrialJob&, const std::string& trial) const override {
    return std::string(kJobNameLabel) + "=" + trial;
  }
  Json Make(const TrialJob& job, const Workload& workload, const TrialStart& trial) const override {
    return MakeJobTrial(job, std::get<api::ElasticHorovodJobSpec>(workload.made_from), trial);
  }
  std::vector<TrialPart> MakeRest(const TrialJob&, const Workload&, const TrialStart&,
                                  const std::string&) const override {
    return {};
  }
  std::optional<Json> MakeGroup(const ObjectKey&) const override { return std::nullopt; }  // The job's own.
  Json Suspension() const override {
    Json patch = Json::MakeObject();
    patch["spec"]["runPolicy"]["suspend"] = true;
    return patch;
  }

 private:
  const TrialCaches caches_;
  const kube::Store::IndexId pods_by_job_;
};

class PodTrials final : public TrialObjects {
 public:
  explicit PodTrials(const TrialCaches& caches)
      : TrialObjects(caches.pods),
        caches_(caches),
        peers_by_trial_(caches.pods.AddIndex([](const kube::Object& pod) -> std::vector<std::string> {
          const auto peer = ReadPeerOf(pod.metadata);
          return peer ? std::vector{peer->trial.ToString()} : std::vector<std::string>();
        })) {}

  void Read(const TrialJob& owner, const std::string& trial, const Pods* live, TrialRun& run) const override;
  std::string PodSelector(const TrialJob& owner, const std::string&) const override {
    return std::string(kTrialJobLabel) + "=" + owner.metadata.name;
  }
  Json Make(const TrialJob& job, const Workload& workload, const TrialStart& trial) const override {
    return MakePodTrial(job, std::get<Json>(workload.made_from), trial, caches_.groups != nullptr);
  }
  std::vector<TrialPart> MakeRest(const TrialJob& job, const Workload& workload, const TrialStart& trial,
                                  const std::string& uid) const override {
    std::vector<TrialPart> rest;
    if (trial.pods <= 1) return rest;
    rest.push_back({KindOf<kube::Service>(), MakeTrialService(job, trial, uid)});
    const bool is_gang = caches_.groups != nullptr;
    for (Json& peer : MakeTrialPeers(job, std::get<Json>(workload.made_from), trial, is_gang, uid)) {
      rest.push_back({KindOf<kube::Pod>(), std::move(peer)});
    }
    return rest;
  }
  std::optional<Json> MakeGroup(const ObjectKey& trial) const override {
    const auto pod = caches_.pods.Get<kube::Pod>(trial);
    return pod ? std::optional(MakeTrialGroup(*pod)) : std::nullopt;
  }
  Json Suspension() const override {
    // The kubelet ends a pod that has run for longer, and its log stays readable. A deadline may be shortened.
    Json patch = Json::MakeObject();
    patch["metadata"]["annotations"][kSuspendedAnnotation] = "true";
    patch["spec"]["activeDeadlineSeconds"] = 1;
    return patch;
  }

 private:
  Pods PeersOf(const ObjectKey& trial, const Pods* live) const;

  const TrialCaches caches_;
  const kube::Store::IndexId peers_by_trial_;
};

TrialObjects::Pods PodTrials::PeersOf(const ObjectKey& trial, const Pods* live) const {
  if (live == nullptr) return caches_.pods.ByIndex<kube::Pod>(peers_by_trial_, trial.ToString());
  Pods peers;
  for (const auto& pod : *live) {
    const auto peer = ReadPeerOf(pod->metadata);
    if (peer && peer->trial == trial) peers.push_back(pod);
  }
  return peers;
}

void PodTrials::Read(const TrialJob& owner, const std::string& trial, const Pods* live, TrialRun& run) const {
  const ObjectKey key{owner.metadata.ns, trial};
  auto pod = live == nullptr ? caches_.pods.Get<kube::Pod>(key) : nullptr;
  for (const auto& one : live != nullptr ? *live : Pods()) {
    if (one->metadata.name == trial) pod = one;
  }
  const auto group = caches_.groups != nullptr ? caches_.groups->Get<api::PodGroup>(key) : nullptr;
  const kube::OwnerReference* group_owner = group ? group->metadata.Controller() : nullptr;
  const bool is_of_a_trial =
      group_owner != nullptr && group_owner->kind == KindOf<kube::Pod>().kind && group_owner->name == trial;
  if (group && !pod && !is_of_a_trial) {
    run.child.emplace();  // Otherwise the pod would join somebody else's gang.
    run.child->kind = KindOf<api::PodGroup>().kind;
    return;
  }
  if (pod) {
    const bool has_node = HasNode(caches_.nodes, *pod);
    run.child = ReadPodChild(*pod, group.get(), owner, has_node);
    if (!run.child->is_ours) return;
    ReadTrialPod(*pod, PartAsTrial(*pod), has_node, run.pods);
  } else if (group) {
    ++run.pods.all;  // The garbage collector still has to delete it.
  }
  for (const auto& peer : PeersOf(key, live)) {
    const bool has_node = HasNode(caches_.nodes, *peer);
    ReadTrialPod(*peer, {.has_gpus = true}, has_node, run.pods);
    if (pod && peer->metadata.Controller()->uid == pod->metadata.uid) ReadPeer(*peer, has_node, *run.child);
  }
  if (!pod) return;
  CheckPeers(*pod, *run.child);
  const bool is_its_group = is_of_a_trial && group_owner->uid == pod->metadata.uid;
  run.child->lacks_group =
      caches_.groups != nullptr && !run.child->is_ending && !run.child->lacks_peers && !is_its_group;
}

}  // namespace

std::optional<kube::ObjectKey> TrialJobOf(const kube::ObjectMeta& metadata) {
  return kube::ControllerKey(KindOf<TrialJob>(), metadata);
}

TrialObjects::TrialObjects(kube::Informer& children)
    : children_(children), by_owner_(children.AddIndex([](const kube::Object& object) -> std::vector<std::string> {
        const auto owner = TrialJobOf(object.metadata);
        return owner ? std::vector{owner->ToString()} : std::vector<std::string>();
      })) {}

std::vector<std::string> TrialObjects::NamesOf(const TrialJob& owner) const {
  std::vector<std::string> names;
  for (const auto& child : children_.store().ByIndex(by_owner_, owner.metadata.Key().ToString())) {
    if (child->metadata.Controller()->uid == owner.metadata.uid) names.push_back(child->metadata.name);
  }
  return names;
}

std::unique_ptr<const TrialObjects> MakeJobTrials(const TrialCaches& caches) {
  return std::make_unique<JobTrials>(caches);
}

std::unique_ptr<const TrialObjects> MakePodTrials(const TrialCaches& caches) {
  return std::make_unique<PodTrials>(caches);
}

}  // namespace grus
