// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/profile_keeper.h"

namespace grus {
namespace {

bool IsBehind(const api::WorkloadProfile& profile) {
  return profile.status.observed_generation != profile.metadata.generation && !profile.metadata.is_being_deleted();
}

}  // namespace

void ProfileKeeper::FeedQueue(kube::Informer& profiles, kube::WorkQueue& queue) {
  profiles.AddHandler([&queue](const kube::Change& change, bool) {
    if (!change.after || !IsBehind(static_cast<const api::WorkloadProfile&>(*change.after))) return;
    queue.AddAfter(change.after->metadata.Key(), kSaverWait);
  });
}

kube::Result<kube::Action> ProfileKeeper::Reconcile(const kube::ObjectKey& key, std::stop_token stop) {
  const auto profile = profiles_.Get<api::WorkloadProfile>(key);
  if (!profile || !IsBehind(*profile)) return kube::Action::AwaitChange();
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

}  // namespace grus
