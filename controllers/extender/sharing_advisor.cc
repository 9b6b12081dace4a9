// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/sharing_advisor.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <utility>

#include "clientlib/client/resource_path.h"
#include "controllers/cluster/owners.h"
#include "controllers/extender/profiled_job.h"
#include "controllers/frame/planned_event.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Json;
using kube::Result;

constexpr kube::Duration kSeenByThen = std::chrono::minutes(1);  // The cache knows what was bound before.
constexpr std::size_t kMostWorkloads = 20'000;

SharingDemand DemandFor(const std::string& gpu_type, double least_speed) {
  return {.gpu_type = gpu_type,
          .least_speed = least_speed > 0 ? least_speed : kLeastSharedSpeed,
          .waits = least_speed > 0 ? WhenToWait::kIfTooSlow : WhenToWait::kNever};
}

std::string TooSlow(double least_speed) {
  return "a GPU on which each pod keeps " + std::to_string(std::lround(least_speed * 100)) +
         " % of its speed (leastSpeedPercent of its NodePool)";
}

}  // namespace

// Nodes whose GPUs are of one type and in pools with the same least speed.
struct SharingAdvisor::Group {
  std::string gpu_type = {};
  double least_speed = 0;
  SharedJob job = {};  // The pod in question.
  std::vector<CandidateGpu> candidates = {};
  std::vector<std::size_t> node_of_each = {};  // Its place in the call.
  std::vector<std::size_t> nodes = {};         // Also those without a candidate.
};

// What is looked up for one call, each thing once.
class SharingAdvisor::Look {
 public:
  Look(SharingAdvisor& advisor, std::string uid)
      : sources_(advisor.sources_),
        residents_(advisor.residents_),
        recents_(advisor.Recents()),
        named_(advisor.Named()),
        uid_(std::move(uid)) {}

  std::string TypeOf(std::string_view node) const {
    const auto known = sources_.nodes.Get<kube::Node>({"", std::string(node)});
    return known ? std::string(known->metadata.Label(kGpuProductLabel)) : std::string();
  }
  const SharedJob& JobFor(const std::string& workload, std::string_view ns, const std::string& gpu_type) {
    key_.clear();
    if (!workload.empty()) key_.append(workload).append("\n").append(ns).append("\n").append(gpu_type);
    const auto [job, is_new] = jobs_.try_emplace(key_);
    if (!is_new || workload.empty()) return job->second;
    // Of a name that nothing is known of each were another question for the model, with the same answer.
    if (named_->contains(workload)) job->second = {.fingerprint = workload, .family = workload};
    const auto profile =
        sources_.profiles != nullptr ? sources_.profiles->Get<api::WorkloadProfile>({"", workload}) : nullptr;
    if (profile) job->second = IsFor(*profile, ns) ? SharedJobOf(*profile, gpu_type) : SharedJob();
    return job->second;
  }
  // `foreign`: which of them are of another namespace than this; may be null.
  std::vector<SharedJob> ResidentsOf(std::string_view node, std::string_view gpu, const std::string& gpu_type,
                                     std::string_view ns = {}, std::vector<bool>* foreign = nullptr) {
    std::vector<SharedJob> jobs;
    std::set<std::string_view> seen = {uid_};
    const auto add = [&](const kube::Pod& pod, const std::string& workload) {
      if (jobs.size() >= kMostResidents || !seen.insert(pod.metadata.uid).second) return;
      jobs.push_back(JobFor(workload, pod.metadata.ns, gpu_type));
      if (foreign != nullptr) foreign->push_back(pod.metadata.ns != ns);
    };
    const auto pods = residents_.On(node, gpu);
    for (const auto& pod : pods) add(*pod, WorkloadOf(*pod, sources_.jobs));
    for (const Recent& one : recents_) {
      if (one.node == node && one.gpu == gpu) add(*one.pod, one.workload);
    }
    return jobs;
  }

 private:
  const SharingSources& sources_;
  const GpuResidents& residents_;
  const std::vector<Recent> recents_;
  const std::shared_ptr<const Names> named_;
  const std::string uid_;                            // Of the pod in question: it is no resident.
  std::string key_;                                  // Made for the last look-up.
  std::unordered_map<std::string, SharedJob> jobs_;  // Of nothing: one of which nothing is known.
};

SharingAdvisor::SharingAdvisor(kube::Client& client, SharingSources sources, ClusterAccount& account,
                               kube::EventRecorder& events, const kube::Clock& clock, const kube::Log& log)
    : client_(client),
      sources_(sources),
      residents_(sources.pods),
      placer_(account),
      events_(events),
      clock_(clock),
      log_(log),
      speeds_(std::make_shared<const InterferenceModel>()) {}

void SharingAdvisor::SetModel(PairSpeedCache::Model model) {
  auto named = std::make_shared<Names>();
  for (const CoRunSample& sample : model->samples())
    named->insert({sample.job.fingerprint, sample.partner.fingerprint});
  speeds_.SetModel(std::move(model));
  const std::lock_guard lock(mutex_);
  named_ = std::move(named);
}

std::shared_ptr<const SharingAdvisor::Names> SharingAdvisor::Named() {
  const std::lock_guard lock(mutex_);
  return named_;
}

// Of those that the cache does not know to be bound.
std::vector<SharingAdvisor::Recent> SharingAdvisor::Recents() {
  const kube::TimePoint now = clock_.Now();
  const std::lock_guard lock(mutex_);
  std::erase_if(recents_, [&](const auto& one) { return now - one.second.bound > kSeenByThen; });
  std::vector<Recent> recents;
  for (const auto& [uid, one] : recents_) {
    const auto known = sources_.pods.Get<kube::Pod>(one.pod->metadata.Key());
    if (known && known->metadata.uid == uid && known->spec.node_name.empty()) recents.push_back(one);
  }
  return recents;
}

// Of a pod that is to be bound; then it is asked for again and again.
std::string SharingAdvisor::WorkloadFor(const kube::Pod& pod, std::string_view sent) {
  const std::string uid(pod.metadata.uid);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = workloads_.find(uid); known != workloads_.end()) return known->second;
  }
  if (JobOf(pod.metadata) && sources_.jobs != nullptr) return WorkloadOf(pod, sources_.jobs);
  const Result<std::string> text = sent.empty()
                                       ? client_.GetRaw(kube::ObjectPath(kube::KindOf<kube::Pod>(), pod.metadata.Key()))
                                       : Result<std::string>(std::string(sent));
  const Result<Json> whole = text ? kube::ParseJson(*text) : Result<Json>(text.error());
  if (!whole) return {};
  std::string workload = IdentityOfRunningPod(*whole, pod.metadata, sources_.trust).fingerprint;
  if (uid.empty()) return workload;
  const std::lock_guard lock(mutex_);
  if (workloads_.size() >= kMostWorkloads) workloads_.clear();
  workloads_[uid] = workload;
  return workload;
}

std::vector<SharingAdvisor::Group> SharingAdvisor::GroupsOf(const NodesCall& call, bool only_with_least_speed) {
  std::vector<Group> groups;
  const std::vector<RoomToShare> rooms = placer_.RoomsToShare(*call.pod, call.nodes, only_with_least_speed);
  if (std::ranges::none_of(rooms, &RoomToShare::is_meant)) return groups;
  Look look(*this, std::string(call.pod->metadata.uid));
  const std::string workload = WorkloadFor(*call.pod, call.pod_text);
  std::map<std::pair<std::string, double>, std::size_t> group_of;
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    if (!rooms[i].is_meant) continue;
    const std::string type = look.TypeOf(call.nodes[i]);
    const auto [at, is_new] = group_of.try_emplace({type, rooms[i].least_speed}, groups.size());
    if (is_new) {
      groups.push_back({.gpu_type = type,
                        .least_speed = rooms[i].least_speed,
                        .job = look.JobFor(workload, call.pod->metadata.ns, type)});
    }
    Group& group = groups[at->second];
    group.nodes.push_back(i);
    for (const std::string& gpu : rooms[i].gpus) {
      group.candidates.push_back({gpu, look.ResidentsOf(call.nodes[i], gpu, type)});
      group.node_of_each.push_back(i);
    }
  }
  return groups;
}

void SharingAdvisor::Rank(const NodesCall& call, std::vector<NodeRank>& ranks) {
  for (const Group& group : GroupsOf(call, false)) {
    const std::vector<double> suits =
        SuitabilityOf(group.job, group.candidates, DemandFor(group.gpu_type, group.least_speed), speeds_);
    // A node that has what the pod needs for it stays the best. Those that are too slow have the least score, if there
    // are others: far below these, they would make them all alike.
    const auto goes_by_speeds = [&](std::size_t node) { return std::isfinite(ranks[node].rank); };
    const bool are_all_slow = std::ranges::all_of(suits, IsTooSlow);
    for (const std::size_t node : group.nodes) {
      if (goes_by_speeds(node)) ranks[node].is_known = false;
    }
    for (std::size_t i = 0; i < suits.size(); ++i) {
      NodeRank& rank = ranks[group.node_of_each[i]];
      if (!goes_by_speeds(group.node_of_each[i]) || (IsTooSlow(suits[i]) && !are_all_slow)) continue;
      rank.rank = rank.is_known ? std::max(rank.rank, suits[i]) : suits[i];
      rank.is_known = true;
    }
  }
}

void SharingAdvisor::Refuse(const NodesCall& call, std::vector<std::string>& why_not) {
  for (const Group& group : GroupsOf(call, true)) {
    const std::vector<double> suits =
        SuitabilityOf(group.job, group.candidates, DemandFor(group.gpu_type, group.least_speed), speeds_);
    std::set<std::size_t> are_good;
    for (std::size_t i = 0; i < suits.size(); ++i) {
      if (!IsTooSlow(suits[i])) are_good.insert(group.node_of_each[i]);
    }
    // Of a node without a candidate the GPUs are not known.
    for (const std::size_t node : group.node_of_each) {
      if (why_not[node].empty() && !are_good.contains(node)) why_not[node] = TooSlow(group.least_speed);
    }
  }
}

Result<GivenGpus> SharingAdvisor::Take(const kube::Pod& pod, const std::string& node) {
  GivenGpus given;
  const std::string_view name = node;
  if (!placer_.RoomsToShare(pod, {&name, 1}).front().is_meant) {
    Result<std::string> gpus = placer_.Take(pod, node);
    if (!gpus) return std::move(gpus).error();
    given.gpus = *std::move(gpus);
    // Whoever wrote it, it was not the extender.
    if (!pod.metadata.Annotation(kWorkloadAnnotation).empty()) given.annotations[kWorkloadAnnotation] = "";
    return given;
  }
  const std::string workload = WorkloadFor(pod, {}), uid(pod.metadata.uid);
  const std::lock_guard taking(taking_);
  const RoomToShare room = placer_.RoomsToShare(pod, {&name, 1}).front();
  Look look(*this, uid);
  const std::string type = look.TypeOf(node);
  std::vector<CandidateGpu> candidates, shown;
  for (const std::string& gpu : room.gpus) {
    std::vector<bool> foreign;
    candidates.push_back({gpu, look.ResidentsOf(node, gpu, type, pod.metadata.ns, &foreign)});
    shown.push_back(candidates.back());
    for (std::size_t i = 0; i < foreign.size(); ++i) {
      if (foreign[i]) shown.back().residents[i].fingerprint = "of another namespace";
    }
  }
  const SharedJob job = look.JobFor(workload, pod.metadata.ns, type);
  const GpuChoice choice = ChooseGpu(job, candidates, DemandFor(type, room.least_speed), speeds_);
  if (!choice.chosen && !candidates.empty()) {
    return Error(ErrorCode::kConflict, "node " + node + " has no room for " + TooSlow(room.least_speed));
  }
  Result<std::string> gpus = placer_.Take(pod, node, choice.chosen ? candidates[choice.chosen->candidate].name : "");
  if (!gpus) return std::move(gpus).error();
  if (!choice.chosen && !gpus->empty()) {
    placer_.GiveBack(pod, node);
    return Error(ErrorCode::kConflict, "node " + node + " has room only since a moment ago");
  }
  given.gpus = *std::move(gpus);
  given.annotations[kWorkloadAnnotation] = workload;
  given.explanation = Explain(choice, shown);
  given.annotations[kGpuChoiceAnnotation] = given.explanation;
  const std::lock_guard lock(mutex_);
  recents_[uid] = {std::make_shared<const kube::Pod>(pod), node, given.gpus, workload, clock_.Now()};
  return given;
}

void SharingAdvisor::NoteBound(const kube::Pod& pod, const GivenGpus& given) {
  {
    const std::lock_guard lock(mutex_);
    workloads_.erase(std::string(pod.metadata.uid));
  }
  if (given.explanation.empty()) return;
  Tell({{kube::EventType::kNormal, "GpuChosen", "ChooseGpu", given.explanation}}, events_, log_,
       kube::KindOf<kube::Pod>(), pod.metadata, "pod");
}

void SharingAdvisor::GiveBack(const kube::Pod& pod) {
  const std::lock_guard lock(mutex_);
  recents_.erase(std::string(pod.metadata.uid));
}

}  // namespace grus
