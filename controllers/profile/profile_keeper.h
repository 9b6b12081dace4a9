// SPDX-License-Identifier: Apache-2.0
// Updates the status of a WorkloadProfile from its points when nobody else does: after `kubectl apply` of a backup, or
// an edit by hand. A saver of measurements also writes the status: the keeper gives it kSaverWait to begin, then waits
// until it is done. Deletes a profile that grus made when nothing was measured for long.
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
  // `unused`: how long a profile is kept after its last measurement; zero: for ever.
  ProfileKeeper(kube::Informer& profiles, ProfileStore& store, const kube::Clock& clock, std::chrono::hours unused)
      : profiles_(profiles), store_(store), clock_(clock), unused_(unused) {}

  // Puts the keys of new and changed profiles on `queue`. Call once, before the informer starts.
  void FeedQueue(kube::WorkQueue& queue);

  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override;

 private:
  kube::Informer& profiles_;
  ProfileStore& store_;
  const kube::Clock& clock_;
  const std::chrono::hours unused_;
};

}  // namespace grus
