// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/refused_pods.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace grus {
namespace {

using kube::Json;

// Of those that fit, so many are tried at a time: one GPU that is free is no news for a thousand pods.
constexpr std::size_t kAtATime = 8;
constexpr kube::Duration kPause = std::chrono::milliseconds(500);  // From one look to the next.
constexpr kube::Duration kFirstWait = std::chrono::seconds(1), kLongestWait = std::chrono::minutes(1);
const kube::ObjectKey kAll{"", "refused-pods"};  // One key: who comes next depends on all.

}  // namespace

RefusedPods::RefusedPods(kube::Client& client, const kube::Informer& pods, ClusterAccount& account,
                         const kube::Clock& clock)
    : client_(client), pods_(pods), placer_(account), clock_(clock), account_(account) {}

void RefusedPods::FeedQueue(kube::WorkQueue& queue) {
  account_.OnFreed([this, &queue] {
    {
      const std::lock_guard lock(mutex_);
      if (refused_.empty()) return;
    }
    queue.AddAfter(kAll, kPause);
  });
}

void RefusedPods::Note(const std::shared_ptr<const kube::Pod>& pod) {
  const std::lock_guard lock(mutex_);
  Refused& refused = refused_[pod->metadata.Key()];
  const bool is_new = !refused.pod || refused.pod->metadata.uid != pod->metadata.uid;
  if (is_new) refused = {.pod = pod, .order = ++orders_};
  else refused.pod = pod;
}

void RefusedPods::Forget(const kube::ObjectKey& pod) {
  const std::lock_guard lock(mutex_);
  refused_.erase(pod);
}

std::vector<std::shared_ptr<const kube::Pod>> RefusedPods::TakeNext(kube::TimePoint now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(refused_, [&](const auto& one) {
    const auto pod = pods_.Get<kube::Pod>(one.first);
    return !pod || pod->metadata.uid != one.second.pod->metadata.uid || !pod->spec.node_name.empty() ||
           pod->metadata.is_being_deleted();
  });
  std::vector<Refused*> due;
  for (auto& [key, one] : refused_) {
    if (one.next <= now) due.push_back(&one);
  }
  std::ranges::sort(due, {}, &Refused::order);
  std::vector<std::shared_ptr<const kube::Pod>> next;
  for (Refused* const one : due) {
    if (next.size() >= kAtATime) break;
    if (!placer_.HasRoom(*one->pod)) continue;
    one->wait = std::clamp(2 * one->wait, kFirstWait, kLongestWait);
    one->next = now + one->wait;
    next.push_back(one->pod);
  }
  return next;
}

kube::Result<kube::Action> RefusedPods::Reconcile(const kube::ObjectKey&, std::stop_token stop) {
  const std::string now = kube::ToText(kube::Time{clock_.WallNow()});
  for (const auto& pod : TakeNext(clock_.Now())) {
    const Json metadata =
        Json::MakeObject({{"uid", pod->metadata.uid}, {"annotations", Json::MakeObject({{kRoomSeenAnnotation, now}})}});
    const auto patched = client_.Patch(kube::KindOf<kube::Pod>(), pod->metadata.Key(), kube::PatchType::kMerge,
                                       Json::MakeObject({{"metadata", metadata}}), {.metadata_only = true}, stop);
    const bool is_gone = !patched && (patched.error().code() == kube::ErrorCode::kNotFound ||
                                      patched.error().code() == kube::ErrorCode::kConflict);
    if (!patched && !is_gone) return patched.error();
  }
  const std::lock_guard lock(mutex_);
  return refused_.empty() ? kube::Action::AwaitChange() : kube::Action::After(kFirstWait);
}

}  // namespace grus
