// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_objects.h"

#include <algorithm>

#include "controllers/cluster/owners.h"
#include "crds/types/pod_group.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using api::TrialJob;
using kube::Json;
using kube::KindOf;
using kube::ObjectKey;

bool IsOfTrialJob(const kube::ObjectMeta& metadata) {
  const kube::OwnerReference* owner = metadata.Controller();
  return owner != nullptr && owner->kind == KindOf<TrialJob>().kind;
}

kube::Store::IndexId AddIndexByTrialJob(kube::Informer& informer) {
  return informer.AddIndex([](const kube::Object& object) -> std::vector<std::string> {
    if (!IsOfTrialJob(object.metadata)) return {};
    return {object.metadata.Controller()->uid.str()};
  });
}

template <typename T>
std::vector<std::string> NamesIn(const kube::Informer& informer, kube::Store::IndexId by_owner, const TrialJob& owner) {
  std::vector<std::string> names;
  for (const auto& object : informer.ByIndex<T>(by_owner, owner.metadata.uid)) names.push_back(object->metadata.name);
  return names;
}

bool HasNode(const kube::Informer& nodes, const kube::Pod& pod) {
  const std::string node = pod.spec.node_name.str();
  return node.empty() || nodes.store().Get({"", node}) != nullptr;
}

}  // namespace

JobTrials::JobTrials(kube::Informer& jobs, kube::Informer& pods, kube::Informer& nodes)
    : jobs_(jobs),
      pods_(pods),
      nodes_(nodes),
      by_owner_(AddIndexByTrialJob(jobs)),
      pods_by_job_(pods.AddIndex(JobKeysOf)) {}

const kube::Kind& JobTrials::kind() const { return KindOf<ElasticHorovodJob>(); }

std::vector<std::string> JobTrials::NamesOf(const TrialJob& owner) const {
  return NamesIn<ElasticHorovodJob>(jobs_, by_owner_, owner);
}

void JobTrials::Read(const TrialJob& owner, const std::string& trial, const Pods* live, TrialRun& run) const {
  const std::string& ns = owner.metadata.ns;
  if (const auto job = jobs_.Get<ElasticHorovodJob>({ns, trial})) run.child = ReadTrialChild(*job, owner);
  if (run.child && !run.child->is_ours) return;
  const ObjectKey key{ns, trial};
  for (const auto& pod : live != nullptr ? *live : pods_.ByIndex<kube::Pod>(pods_by_job_, key.ToString())) {
    ReadTrialPod(*pod, PartInJob(*pod), HasNode(nodes_, *pod), run.pods);
  }
}

std::string JobTrials::PodSelector(const TrialJob&, const std::string& trial) const {
  return std::string(kJobNameLabel) + "=" + trial;
}

bool JobTrials::IsTrial(const ObjectKey& key) const {
  const auto job = jobs_.Get<ElasticHorovodJob>(key);
  return job && IsOfTrialJob(job->metadata);
}

Json JobTrials::Make(const TrialJob& job, const Workload& workload, const TrialStart& trial) const {
  return MakeJobTrial(job, std::get<api::ElasticHorovodJobSpec>(workload.made_from), trial);
}

Json JobTrials::Suspension() const {
  Json patch = Json::MakeObject();
  patch["spec"]["runPolicy"]["suspend"] = true;
  return patch;
}

PodTrials::PodTrials(kube::Informer& pods, kube::Informer& nodes, kube::Informer* groups)
    : pods_(pods), nodes_(nodes), groups_(groups), by_owner_(AddIndexByTrialJob(pods)) {}

const kube::Kind& PodTrials::kind() const { return KindOf<kube::Pod>(); }

std::vector<std::string> PodTrials::NamesOf(const TrialJob& owner) const {
  return NamesIn<kube::Pod>(pods_, by_owner_, owner);
}

void PodTrials::Read(const TrialJob& owner, const std::string& trial, const Pods* live, TrialRun& run) const {
  const ObjectKey key{owner.metadata.ns, trial};
  auto pod = live == nullptr ? pods_.Get<kube::Pod>(key) : nullptr;
  if (live != nullptr) {
    const auto found =
        std::find_if(live->begin(), live->end(), [&](const auto& one) { return one->metadata.name == trial; });
    if (found != live->end()) pod = *found;
  }
  const auto group = groups_ != nullptr ? groups_->Get<api::PodGroup>(key) : nullptr;
  const kube::OwnerReference* group_owner = group ? group->metadata.Controller() : nullptr;
  const bool is_of_a_trial =
      group_owner != nullptr && group_owner->kind == KindOf<kube::Pod>().kind && group_owner->name == trial;
  if (group && !pod && !is_of_a_trial) {
    run.child.emplace();  // Otherwise the pod would join somebody else's gang.
    run.child->kind = KindOf<api::PodGroup>().kind;
    return;
  }
  if (!pod) {
    if (group) ++run.pods.all;  // The garbage collector still has to delete it.
    return;
  }
  const bool has_node = HasNode(nodes_, *pod);
  run.child = ReadPodChild(*pod, group.get(), owner, has_node);
  const bool is_its_group = is_of_a_trial && group_owner->uid == pod->metadata.uid;
  run.child->lacks_group = groups_ != nullptr && run.child->is_ours && !run.child->is_ending && !is_its_group;
  if (run.child->is_ours) ReadTrialPod(*pod, PartAsTrial(*pod), has_node, run.pods);
}

std::string PodTrials::PodSelector(const TrialJob& owner, const std::string&) const {
  return std::string(kTrialJobLabel) + "=" + owner.metadata.name;
}

bool PodTrials::IsTrial(const ObjectKey& key) const {
  const auto pod = pods_.Get<kube::Pod>(key);
  return pod && IsOfTrialJob(pod->metadata);
}

Json PodTrials::Make(const TrialJob& job, const Workload& workload, const TrialStart& trial) const {
  return MakePodTrial(job, std::get<Json>(workload.made_from), trial, groups_ != nullptr);
}

std::optional<Json> PodTrials::MakeGroup(const ObjectKey& trial) const {
  const auto pod = pods_.Get<kube::Pod>(trial);
  if (!pod) return std::nullopt;
  return MakeTrialGroup(*pod);
}

Json PodTrials::Suspension() const {
  // The kubelet ends a pod that has run for longer, and its log stays readable. A deadline may be shortened.
  Json patch = Json::MakeObject();
  patch["metadata"]["annotations"][kSuspendedAnnotation] = "true";
  patch["spec"]["activeDeadlineSeconds"] = 1;
  return patch;
}

}  // namespace grus
