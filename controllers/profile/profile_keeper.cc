// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/profile_keeper.h"

#include <algorithm>

namespace grus {
namespace {

constexpr kube::Duration kLookEvery = std::chrono::hours(24);  // For profiles to delete.

bool IsBehind(const api::WorkloadProfile& profile) {
  return profile.status.observed_generation != profile.metadata.generation && !profile.metadata.is_being_deleted();
}

}  // namespace

void ProfileKeeper::FeedQueue(kube::WorkQueue& queue) {
  profiles_.AddHandler([&queue](const kube::Change& change, bool) {
    if (change.after) queue.AddAfter(change.after->metadata.Key(), kSaverWait);
  });
}

kube::Result<kube::Action> ProfileKeeper::Reconcile(const kube::ObjectKey& key, std::stop_token stop) {
  const auto profile = profiles_.Get<api::WorkloadProfile>(key);
  if (!profile || profile->metadata.is_being_deleted()) return kube::Action::AwaitChange();
  if (IsBehind(*profile)) {
    if (store_.IsBeingWritten(key.name)) return kube::Action::After(kSaverWait);
    const kube::Status brought = store_.Edit(
        key.name,
        [](const api::WorkloadProfile& live) {
          return ProfileEdit{{}, live.status.drift};
        },
        std::move(stop));
    if (!brought) return brought.error();
    return kube::Action::AwaitChange();
  }
  if (unused_ == unused_.zero() || !IsMadeByGrus(*profile)) return kube::Action::AwaitChange();
  const kube::Duration left = LastUsed(*profile).value + unused_ - clock_.WallNow();
  if (left > kube::Duration::zero()) return kube::Action::After(std::min(left, kLookEvery));
  const kube::Status deleted = store_.Delete(*profile, std::move(stop));
  if (!deleted) return deleted.error();
  return kube::Action::AwaitChange();
}

}  // namespace grus
