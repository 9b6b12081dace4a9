// SPDX-License-Identifier: Apache-2.0
// Updates the status of a WorkloadProfile from its points when nobody else does: after `kubectl apply` of a backup, or
// an edit by hand. A saver of measurements also writes the status: the keeper gives it kSaverWait to begin, then waits
// until it is done.
//
// Thread-safe.
#pragma once

#include "clientlib/cache/informer.h"
#include "clientlib/runtime/controller.h"
#include "controllers/profile/profile_store.h"

namespace grus {

inline constexpr kube::Duration kSaverWait = std::chrono::seconds(1);

class ProfileKeeper final : public kube::Reconciler {
 public:
  ProfileKeeper(const kube::Informer& profiles, ProfileStore& store) : profiles_(profiles), store_(store) {}

  // Puts the keys of profiles whose status is outdated on `queue`. Call once, before the informer starts.
  static void FeedQueue(kube::Informer& profiles, kube::WorkQueue& queue);

  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override;

 private:
  const kube::Informer& profiles_;
  ProfileStore& store_;
};

}  // namespace grus
