// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/extender.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "clientlib/base/wait.h"
#include "controllers/extender/gpushare_contract.h"
#include "controllers/extender/node_scores.h"
#include "controllers/extender/scheduler_call.h"
#include "controllers/extender/sharing_advisor.h"
#include "controllers/extender/utilization_watch.h"
#include "controllers/policy/cluster_objects.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/gpushare_gpus.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Json;
using kube::Result;

// Dense around what is promised: 1 ms for 500 names, 5 ms for 5,000, 30 ms for 500 whole nodes.
const std::vector<double>& Bounds() {
  static const std::vector<double> kBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                              0.03,   0.1,     0.25,   1,     2.5,    5,     10};
  return kBounds;
}

// Others were ended for a nominated pod, and the scheduler hears of it first: refused, the pod would end yet others.
constexpr kube::Duration kPodPatience = std::chrono::seconds(1);
constexpr kube::Duration kNominatedPatience = std::chrono::milliseconds(300), kLookAgain = std::chrono::milliseconds(5);

// There are nodes, and none has room.
bool IsRefused(const std::vector<std::string>& why_not) {
  return !why_not.empty() && std::ranges::none_of(why_not, &std::string::empty);
}

// The API server may have done it all the same.
bool IsUnclear(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kTimeout:
    case ErrorCode::kUnavailable:
    case ErrorCode::kInternal:
    case ErrorCode::kDecode: return true;
    default: return false;
  }
}

// `advisor`: null, there is none.
Result<GivenGpus> Take(SharingAdvisor* advisor, PodPlacer& placer, const kube::Pod& pod, const std::string& node) {
  if (advisor != nullptr) return advisor->Take(pod, node);
  Result<std::string> gpus = placer.Take(pod, node);
  if (!gpus) return std::move(gpus).error();
  return GivenGpus{.gpus = *std::move(gpus)};
}

}  // namespace

Extender::Extender(kube::Client& client, const kube::Informer& pods, const kube::Informer& nodes,
                   ClusterAccount& account, const kube::Clock& clock, const kube::Log& log, kube::Registry& metrics)
    : client_(client),
      pods_(pods),
      nodes_(nodes),
      placer_(account),
      refused_(client, pods, account, clock),
      awaited_(clock),
      clock_(clock),
      log_(log),
      metrics_(metrics) {}

Result<std::string> Extender::Measure(const char* verb, const std::function<Result<std::string>()>& answer) {
  const kube::TimePoint began = clock_.Now();
  Result<std::string> given = answer();
  metrics_
      .GetHistogram("grus_extender_duration_seconds",
                    "How long calls of a scheduler took, by verb; result is bad for those that made no sense.",
                    Bounds(), {"verb", "result"}, {verb, given ? "ok" : "bad"})
      .Observe(std::chrono::duration<double>(clock_.Now() - began).count());
  if (!given) log_.Warn("a scheduler's call makes no sense", {{"verb", verb}, {"error", given.error().message()}});
  return given;
}

Result<std::string> Extender::Filter(std::string_view body) {
  return Measure("filter", [&]() -> Result<std::string> {
    const Result<NodesCall> call = ReadNodesCall(body);
    if (!call) return call.error();
    const std::uint64_t freed = refused_.freed();
    std::vector<std::string> why_not = placer_.WhyNot(*call->pod, call->nodes);
    if (!call->pod->status.nominated_node_name.empty()) AwaitRoom(*call, why_not);
    const bool lacks_room = IsRefused(why_not);
    if (advisor_ != nullptr) advisor_->Refuse(*call, why_not);
    if (lacks_room) refused_.Note(call->pod);
    else if (IsRefused(why_not)) refused_.Note(call->pod, freed);
    return FilterAnswer(*call, why_not);
  });
}

void Extender::AwaitRoom(const NodesCall& call, std::vector<std::string>& why_not) {
  const kube::TimePoint until = clock_.Now() + kNominatedPatience;
  while (IsRefused(why_not) && clock_.Now() < until) {
    if (!kube::WaitFor(clock_, kLookAgain, {})) return;
    why_not = placer_.WhyNot(*call.pod, call.nodes);
  }
}

Result<std::string> Extender::Prioritize(std::string_view body) {
  return Measure("prioritize", [&]() -> Result<std::string> {
    const Result<NodesCall> call = ReadNodesCall(body);
    if (!call) return call.error();
    std::vector<NodeRank> ranks = placer_.Rank(*call->pod, call->nodes);
    if (utilization_ != nullptr) utilization_->Rank(call->nodes, ranks);
    if (advisor_ != nullptr) advisor_->Rank(*call, ranks);
    return PrioritizeAnswer(*call, ScoresOf(ranks));
  });
}

Result<std::string> Extender::Preempt(std::string_view body) {
  return Measure("preempt", [&]() -> Result<std::string> {
    Result<PreemptCall> call = ReadPreemptCall(body);
    if (!call) return std::move(call).error();
    const kube::Pod& pod = *call->pod;
    const auto is_enough = [&](const std::string& node, const std::vector<std::string>& uids) {
      return placer_.WhyNotWithout(pod, node, uids).empty();
    };
    // Only of parts does grus know what the scheduler does not.
    const bool has_parts = AsksForGpuParts(RequestOf(pod));
    if (has_parts && awaited_.AreEnough(pod, is_enough)) return PreemptAnswer({});
    std::erase_if(call->victims, [&](const auto& one) { return !is_enough(one.first, one.second.uids); });
    if (has_parts) awaited_.Note(pod, call->victims);
    return PreemptAnswer(call->victims);
  });
}

Result<std::string> Extender::Bind(std::string_view body) {
  return Measure("bind", [&]() -> Result<std::string> {
    const Result<BindCall> call = ReadBindCall(body);
    if (!call) return call.error();
    const kube::Status bound = BindPod(*call);
    if (!bound) {
      log_.Info("a pod is not bound", {{"pod", call->pod.ToString()}, {"error", bound.error().message()}});
    }
    return ErrorAnswer(bound ? std::string_view() : std::string_view(bound.error().message()));
  });
}

// A pod that is being bound, so that a scheduler which asks again does not get it bound elsewhere.
class Extender::Binding {
 public:
  Binding(Extender& extender, std::string uid) : extender_(extender), uid_(std::move(uid)) {
    const std::lock_guard lock(extender_.mutex_);
    is_first_ = extender_.being_bound_.insert(uid_).second;
  }
  ~Binding() {
    const std::lock_guard lock(extender_.mutex_);
    if (is_first_) extender_.being_bound_.erase(uid_);
  }
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;
  explicit operator bool() const { return is_first_; }

 private:
  Extender& extender_;
  const std::string uid_;
  bool is_first_ = false;
};

// The scheduler may hear of a pod first; refused, it would be tried again only after a second and more.
std::shared_ptr<const kube::Pod> Extender::PodOf(const BindCall& call) {
  const kube::TimePoint until = clock_.Now() + kPodPatience;
  for (;;) {
    auto pod = pods_.Get<kube::Pod>(call.pod);
    if (pod && (call.uid.empty() || pod->metadata.uid == call.uid)) return pod;
    if (clock_.Now() >= until || !kube::WaitFor(clock_, kLookAgain, {})) return nullptr;
  }
}

kube::Status Extender::BindPod(const BindCall& call) {
  const auto pod = PodOf(call);
  if (!pod) return Error(ErrorCode::kNotFound, "grus-manager does not know this pod");
  const std::string uid(pod->metadata.uid);
  const auto told = [&](const std::string& node) -> kube::Status {
    if (node == call.node) return {};  // Its answer was lost.
    return Error(ErrorCode::kConflict, "it is already assigned to node " + node);
  };
  if (!pod->spec.node_name.empty()) return told(pod->spec.node_name.str());
  // It has gone since the filter, or is so new that nobody could say which GPU the pod gets there.
  if (!nodes_.Get<kube::Node>({"", call.node})) {
    return Error(ErrorCode::kNotFound, "grus-manager does not know node " + call.node + " (yet)");
  }
  const Binding binding(*this, uid);
  if (!binding) return Error(ErrorCode::kConflict, "it is being bound by an earlier call");
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(not_before_, [now = clock_.Now()](const auto& one) { return one.second <= now; });
    if (not_before_.contains(call.pod)) return Error(ErrorCode::kUnavailable, "the API server has asked to wait");
  }
  // An earlier call has bound it, or may have: another place now, and its room would be free for others.
  if (placer_.IsTaken(*pod)) {
    const Whereabouts now = LookUp(*pod);
    if (!now.is_known) return Error(ErrorCode::kUnavailable, "it is not known whether an earlier call has bound it");
    if (!now.node.empty()) return told(now.node);
  }
  return TakeAndBind(*pod, call);
}

kube::Status Extender::TakeAndBind(const kube::Pod& pod, const BindCall& call) {
  Result<GivenGpus> given = Take(advisor_, placer_, pod, call.node);
  if (!given) return std::move(given).error();
  if (given->gpus.empty() && AsksForGpuParts(RequestOf(pod)) && HasInventory(call.node)) {
    placer_.GiveBack(pod, call.node);
    return Error(ErrorCode::kConflict, "no GPU of node " + call.node + " is well");
  }
  const auto note_bound = [&] {
    refused_.Forget(call.pod);
    awaited_.Forget(pod);
    if (advisor_ != nullptr) advisor_->NoteBound(pod, *given);
  };
  Json annotations = AnnotationsFor(pod, call.node, given->gpus);
  for (const auto& [name, text] : *given->annotations.AsObject()) annotations[name] = Json(text);
  const std::string uid(pod.metadata.uid);
  kube::Status bound = client_.Bind(call.pod, uid, call.node, annotations);
  if (bound) {
    note_bound();
    return bound;
  }
  if (const auto wait = bound.error().retry_after()) {
    const std::lock_guard lock(mutex_);
    not_before_[call.pod] = clock_.Now() + *wait;
  }
  // A conflict: perhaps somebody has bound it whom the cache is too late to show.
  if (IsUnclear(bound.error()) || bound.error().code() == ErrorCode::kConflict) {
    const Whereabouts now = LookUp(pod);
    if (!now.is_known) return bound;  // The room stays taken.
    if (now.node == call.node) {
      note_bound();
      return {};
    }
    if (!now.node.empty()) return Error(ErrorCode::kConflict, "it is already assigned to node " + now.node);
    bound = std::move(bound).error().with("it is not bound");
  }
  placer_.GiveBack(pod, call.node);
  if (advisor_ != nullptr) advisor_->GiveBack(pod);
  return bound;
}

// It says of its GPUs which they are. If none of them is well, it looks like a node that says nothing, until its
// kubelet offers nothing either.
bool Extender::HasInventory(const std::string& node) const {
  const auto known = nodes_.Get<kube::Node>({"", node});
  return known && !known->metadata.Annotation(api::kGpuInventoryAnnotation).empty();
}

Json Extender::AnnotationsFor(const kube::Pod& pod, const std::string& node, const std::string& gpus) const {
  Json annotations = Json::MakeObject();
  const std::int64_t gib = GpuMemOf(pod);
  if (gib > 0) ClearGpushareAnnotations(pod, annotations);
  if (gpus.empty()) return annotations;
  annotations[api::kPlannedGpuAnnotation] = gpus;
  // Whoever wrote it before the pod runs, it was not the agent; it would count instead.
  if (!pod.metadata.Annotation(api::kHeldGpusAnnotation).empty()) annotations[api::kHeldGpusAnnotation] = "";
  const auto known = gib > 0 ? nodes_.Get<kube::Node>({"", node}) : nullptr;
  if (known) AddGpushareAnnotations(*known, gpus, gib, clock_.WallNow(), annotations);
  return annotations;
}

Result<std::string> Extender::Inspect(std::string_view name) {
  return Measure("inspect", [&]() -> Result<std::string> {
    std::vector<std::shared_ptr<const kube::Node>> nodes;
    if (name.empty()) {
      nodes = nodes_.List<kube::Node>();
      std::erase_if(nodes, [](const auto& node) { return GpushareGpusOf(*node).empty(); });
      std::ranges::sort(nodes, {}, [](const auto& node) { return node->metadata.name; });
    } else if (auto node = nodes_.Get<kube::Node>({"", std::string(name)})) {
      nodes.push_back(std::move(node));
    } else {
      return InspectAnswer({}, "there is no node " + std::string(name));
    }
    std::vector<std::shared_ptr<const kube::Pod>> pods = pods_.List<kube::Pod>();
    std::erase_if(pods, [](const auto& pod) { return GpuMemOf(*pod) <= 0; });
    return InspectAnswer(Inspected(nodes, pods, placer_.LookAt(nodes, pods)));
  });
}

Extender::Whereabouts Extender::LookUp(const kube::Pod& pod) {
  const Result<std::shared_ptr<kube::Pod>> now = client_.Get<kube::Pod>(pod.metadata.Key());
  if (!now) return {.is_known = now.error().code() == ErrorCode::kNotFound};
  if ((*now)->metadata.uid != pod.metadata.uid || (*now)->spec.node_name.empty()) return {.is_known = true};
  placer_.NoteBound(**now);
  return {.is_known = true, .node = (*now)->spec.node_name.str()};
}

}  // namespace grus
