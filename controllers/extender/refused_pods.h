// SPDX-License-Identifier: Apache-2.0
// Pods that found no node with a free GPU, and are to be tried again once there is one.
//
// A scheduler tries them whenever a pod ends, often before grus has heard of that end, and then not for minutes. So the
// annotation kRoomSeenAnnotation is written to a pod when it would fit: a change of the pod makes the scheduler try it.
// Only the replica that leads writes. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/cache/informer.h"
#include "clientlib/client/client.h"
#include "clientlib/runtime/controller.h"
#include "controllers/cluster/pod_placer.h"

namespace grus {

// When room was seen for the pod: a time, so that each is a change.
inline constexpr char kRoomSeenAnnotation[] = "sharing.ai.centauruscloud.io/room-seen";

class RefusedPods final : public kube::Reconciler {
 public:
  // All must outlive it. Registers with the account: before the informers start.
  RefusedPods(kube::Client& client, const kube::Informer& pods, ClusterAccount& account, const kube::Clock& clock);

  // Looks at them again when room has been freed. Call once, before the informers start.
  void FeedQueue(kube::WorkQueue& queue);
  std::uint64_t freed() const { return freed_; }  // How often room was freed.
  // No node had a GPU for it. `judged`: there is room, but what is there now speaks against it; it is told when room is
  // freed again after that many times.
  void Note(const std::shared_ptr<const kube::Pod>& pod, std::optional<std::uint64_t> judged = std::nullopt);
  void Forget(const kube::ObjectKey& pod);  // It was bound.

  // One look at some of them.
  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override;

 private:
  struct Refused {
    std::shared_ptr<const kube::Pod> pod = {};
    std::uint64_t order = 0;                        // The smallest is looked at next.
    std::uint64_t looked_at = 0;                    // freed_, when it was looked at.
    bool has_room = false;                          // That alone does not help it.
    int tries = 0;                                  // How often it was told of room that it did not find.
    kube::TimePoint next = kube::TimePoint::min();  // Not before.
  };
  std::vector<std::shared_ptr<const kube::Pod>> TakeSome(kube::TimePoint now);
  void NoteTold(const kube::Pod& pod, kube::TimePoint now);
  std::optional<kube::Duration> UntilNextLook(kube::TimePoint now);  // nullopt: once room is freed.

  kube::Client& client_;
  const kube::Informer& pods_;
  PodPlacer placer_;
  const kube::Clock& clock_;
  ClusterAccount& account_;
  kube::WorkQueue* queue_ = nullptr;
  std::atomic<std::size_t> count_{0};    // Of refused_.
  std::atomic<std::uint64_t> freed_{1};  // How often room was freed.
  std::mutex mutex_;                     // Guards what follows. The account is not asked with it.
  std::map<kube::ObjectKey, Refused> refused_;
  std::uint64_t orders_ = 0;
};

}  // namespace grus
