// SPDX-License-Identifier: Apache-2.0
// What the account answers a scheduler that asks pod by pod, through an extender: which nodes have a GPU with room for
// the parts that a pod asks for, which of them suit it better, and where it goes. Thread-safe.
//
// A node that the account does not know, and a pod that asks for no parts, is no concern of it: the scheduler's own
// filters have looked at whatever Kubernetes counts.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"
#include "controllers/cluster/cluster_account.h"

namespace grus {

// How well a node suits a pod, among those that have the same placement: greater is better.
struct NodeRank {
  PoolPlacement placement = PoolPlacement::kBinPack;
  double rank = 0;
  bool is_known = false;  // False: nothing is known of it, or it has no room.
};

// Where the placement of a node is kInterference: the GPUs there with room for a pod that asks for a part of one.
struct RoomToShare {
  bool is_meant = false;  // False: another placement, or the pod asks for no such part, or its place is known already.
  std::vector<std::string> gpus = {};
  double least_speed = 0;  // That each pod is to keep, as a share of its speed alone; 0: none.
};

// What the account knows of some nodes and pods, all at one moment.
struct HoldingsLook {
  std::vector<Resources> offered, taken;  // Of each node; a place that is kept counts as taken. Unknown: nothing.
  std::vector<Resources> held;            // By each pod, bound or being bound, as by OnGpu().
  std::vector<std::string> held_on;       // By each pod: on which of these nodes; empty: on another, or nothing.
};

class PodPlacer {
 public:
  explicit PodPlacer(ClusterAccount& account) : account_(account) {}

  // Of each node, in their order: why the pod cannot run there; empty: it can, as far as GPUs are concerned. Parts that
  // are kept for others count as taken; those for the pod itself, or for its gang, do not.
  std::vector<std::string> WhyNot(const kube::Pod& pod, std::span<const std::string_view> nodes) const;
  // As above, of one node, if these pods (UIDs) were gone.
  std::string WhyNotWithout(const kube::Pod& pod, std::string_view node, std::span<const std::string> gone) const;
  // Whether any node of the cluster has room, whatever is asked of it but for that.
  bool HasRoom(const kube::Pod& pod) const;
  std::vector<NodeRank> Rank(const kube::Pod& pod, std::span<const std::string_view> nodes) const;

  // `only_with_least_speed`: others are not meant.
  std::vector<RoomToShare> RoomsToShare(const kube::Pod& pod, std::span<const std::string_view> nodes,
                                        bool only_with_least_speed = false) const;

  // The GPUs that the pod gets on the node, as for OnGpu(); empty: it asks for no parts, or nothing is known of the
  // node's GPUs. A pod counts as bound there from now on; where its gang or job has places, their places are kept until
  // they are seen bound. `chosen`: that GPU, or none; empty: what is planned for the pod, or by the placement of
  // the node. Error (kConflict): no GPU there has the room (any more).
  kube::Result<std::string> Take(const kube::Pod& pod, const std::string& node, std::string_view chosen = {});
  void GiveBack(const kube::Pod& pod, const std::string& node);  // It was not bound there after all.
  // Whether it counts as bound since Take(), while its cache does not show it bound.
  bool IsTaken(const kube::Pod& pod) const;
  // As the API server has it, bound, which its cache may not show yet. It counts there from now on, with the GPUs that
  // it was given.
  void NoteBound(const kube::Pod& live);

  HoldingsLook LookAt(std::span<const std::shared_ptr<const kube::Node>> nodes,
                      std::span<const std::shared_ptr<const kube::Pod>> pods) const;

 private:
  class Question;
  ClusterAccount& account_;
};

}  // namespace grus
