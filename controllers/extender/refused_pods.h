// SPDX-License-Identifier: Apache-2.0
// Pods that found no node with a free GPU, and are to be tried again once there is one.
//
// A scheduler tries them whenever a pod ends, often before grus has heard of that end, and then not for minutes. So the
// annotation kRoomSeenAnnotation is written to a pod when it would fit: a change of the pod makes the scheduler try it.
// Only the replica that leads writes. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
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
  void Note(const std::shared_ptr<const kube::Pod>& pod);  // It was refused where its GPUs are counted.
  void Forget(const kube::ObjectKey& pod);                 // It was bound.

  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override;

 private:
  struct Refused {
    std::shared_ptr<const kube::Pod> pod = {};
    std::uint64_t order = 0;                        // Who waits longest comes first.
    kube::Duration wait = {};                       // Between two tries: each is longer.
    kube::TimePoint next = kube::TimePoint::min();  // Not before.
  };
  std::vector<std::shared_ptr<const kube::Pod>> TakeNext(kube::TimePoint now);

  kube::Client& client_;
  const kube::Informer& pods_;
  PodPlacer placer_;
  const kube::Clock& clock_;
  ClusterAccount& account_;
  std::mutex mutex_;
  std::map<kube::ObjectKey, Refused> refused_;
  std::uint64_t orders_ = 0;
};

}  // namespace grus
