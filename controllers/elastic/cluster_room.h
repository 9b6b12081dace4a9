// SPDX-License-Identifier: Apache-2.0
// The cluster ledger, kept true by the node and pod caches.
//
// Thread-safe: one lock around the ledger, so that two reconcile threads do not count on the same free GPU.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "clientlib/cache/informer.h"
#include "clientlib/model/core_v1.h"
#include "controllers/policy/cluster_ledger.h"

namespace grus {

// What a pod holds on its node.
Resources RequestOf(const kube::Pod& pod);
NodeState StateOf(const kube::Node& node);

class ClusterRoom {
 public:
  // Registers handlers; both informers must outlive this, and this them being run. `on_freed` is called, without the
  // lock, whenever there may be more room than before.
  ClusterRoom(kube::Informer& nodes, kube::Informer& pods, std::function<void()> on_freed);

  bool HasNode(const std::string& name) const;
  // `owner` is a job's key as text. See ClusterLedger.
  void Claim(const std::string& owner, const PodShape& shape, int count);
  Room RoomFor(const std::string& owner, const PodShape& shape, int at_most) const;
  // Claims what there is room for, at most `wanted` more pods, in one step. Returns the room before.
  Room ClaimRoom(const std::string& owner, const PodShape& shape, int wanted);

 private:
  void OnNode(const kube::Change& change);
  void OnPod(const kube::Change& change);

  const std::function<void()> on_freed_;
  mutable std::mutex mutex_;  // Guards ledger_.
  ClusterLedger ledger_;
};

}  // namespace grus
