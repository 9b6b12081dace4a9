// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/refused_pods.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace grus {
namespace {

using kube::Json;

// A look is at so many, each of which may cost the account a look at all nodes; the next look goes on with the others.
constexpr std::size_t kAtATime = 4;
constexpr std::size_t kMost = 10'000;                              // More are tried when the scheduler likes.
constexpr int kMostTries = 8;                                      // What keeps a pod away that long is not its GPU.
constexpr kube::Duration kPause = std::chrono::milliseconds(500);  // From one look to the next.
constexpr kube::Duration kFirstWait = std::chrono::seconds(1);     // After it was told; doubled each time.
const kube::ObjectKey kAll{"", "refused-pods"};                    // One key: who comes next depends on all.

}  // namespace

RefusedPods::RefusedPods(kube::Client& client, const kube::Informer& pods, ClusterAccount& account,
                         const kube::Clock& clock)
    : client_(client), pods_(pods), placer_(account), clock_(clock), account_(account) {}

void RefusedPods::FeedQueue(kube::WorkQueue& queue) {
  queue_ = &queue;
  account_.OnFreed([this] {
    ++freed_;
    if (count_ > 0) queue_->AddAfter(kAll, kPause);
  });
}

void RefusedPods::Note(const std::shared_ptr<const kube::Pod>& pod, std::optional<std::uint64_t> judged) {
  {
    const std::lock_guard lock(mutex_);
    if (refused_.size() >= kMost && !refused_.contains(pod->metadata.Key())) return;
    Refused& refused = refused_[pod->metadata.Key()];
    const bool is_new = !refused.pod || refused.pod->metadata.uid != pod->metadata.uid;
    if (is_new) refused = {.pod = pod, .order = ++orders_};
    else refused.pod = pod;
    refused.has_room = judged.has_value();
    refused.looked_at = std::max(refused.looked_at, judged.value_or(0));
    count_ = refused_.size();
  }
  // What it lacked may have been freed before this was noted.
  if (queue_ != nullptr) queue_->AddAfter(kAll, kPause);
}

void RefusedPods::Forget(const kube::ObjectKey& pod) {
  const std::lock_guard lock(mutex_);
  refused_.erase(pod);
  count_ = refused_.size();
}

std::vector<std::shared_ptr<const kube::Pod>> RefusedPods::TakeSome(kube::TimePoint now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(refused_, [&](const auto& one) {
    const auto pod = pods_.Get<kube::Pod>(one.first);
    return !pod || pod->metadata.uid != one.second.pod->metadata.uid || !pod->spec.node_name.empty() ||
           pod->metadata.is_being_deleted() || one.second.tries >= kMostTries;
  });
  count_ = refused_.size();
  std::vector<Refused*> due;
  for (auto& [key, one] : refused_) {
    if (one.next <= now && one.looked_at < freed_) due.push_back(&one);
  }
  std::ranges::sort(due, {}, &Refused::order);
  std::vector<std::shared_ptr<const kube::Pod>> some;
  for (Refused* const one : due) {
    if (some.size() >= kAtATime) break;
    one->order = ++orders_;
    one->looked_at = freed_;
    some.push_back(one->pod);
  }
  return some;
}

void RefusedPods::NoteTold(const kube::Pod& pod, kube::TimePoint now) {
  const std::lock_guard lock(mutex_);
  const auto found = refused_.find(pod.metadata.Key());
  if (found == refused_.end()) return;
  found->second.next = now + kFirstWait * (1 << found->second.tries);
  if (!found->second.has_room) found->second.looked_at = 0;
  ++found->second.tries;
}

std::optional<kube::Duration> RefusedPods::UntilNextLook(kube::TimePoint now) {
  const std::lock_guard lock(mutex_);
  std::optional<kube::Duration> least;
  for (const auto& [key, one] : refused_) {
    if (one.looked_at >= freed_) continue;
    const kube::Duration left = std::max(kPause, one.next - now);
    least = std::min(least.value_or(left), left);
  }
  return least;
}

kube::Result<kube::Action> RefusedPods::Reconcile(const kube::ObjectKey&, std::stop_token stop) {
  const kube::TimePoint now = clock_.Now();
  const std::string time = kube::ToText(kube::Time{clock_.WallNow()});
  for (const auto& pod : TakeSome(now)) {
    if (!placer_.HasRoom(*pod)) continue;
    const Json metadata = Json::MakeObject(
        {{"uid", pod->metadata.uid}, {"annotations", Json::MakeObject({{kRoomSeenAnnotation, time}})}});
    // One that cannot be written is tried again like one that is still refused.
    (void)client_.Patch(kube::KindOf<kube::Pod>(), pod->metadata.Key(), kube::PatchType::kMerge,
                        Json::MakeObject({{"metadata", metadata}}), {.metadata_only = true}, stop);
    NoteTold(*pod, now);
  }
  const std::optional<kube::Duration> wait = UntilNextLook(now);
  return wait ? kube::Action::After(*wait) : kube::Action::AwaitChange();
}

}  // namespace grus
