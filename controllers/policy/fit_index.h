// SPDX-License-Identifier: Apache-2.0
// The nodes by how many copies of one shape fit on each, updated one node at a time.
//
// It answers "do n copies fit" at once and gives the nodes in the order in which to fill them. It knows only what a
// node alone decides (resources, taints, selectors, node affinity), not the constraints of other pods. A change of one
// node costs some 100 ns. Pure data structure; the ledger that made it updates it.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/model/quantity.h"
#include "controllers/policy/node_match.h"

namespace grus {

using NodeId = std::uint32_t;   // Of a node in the ledger; small numbers, reused.
using OwnerId = std::uint32_t;  // Likewise, of an owner of pods and places. 0: without a name.

// Greater ranks come first. Tier 1: nodes that suit the shape; tier 0: nodes with accelerators that the shape has no
// use for. Within a tier by copies; among equals the fuller node is greater.
struct FitRank {
  std::int32_t tier = 0, copies = 0;
  std::int64_t fullness = 0;  // Minus the free devices.
  friend auto operator<=>(const FitRank&, const FitRank&) = default;
};

class FitIndex {
 public:
  // One resource that the shape asks for, summed over the nodes that it may use.
  struct Amount {
    std::string name;
    std::int64_t each = 0;
    kube::Wide free = 0, total = 0;
  };
  struct OwnerDevices {
    OwnerId owner;
    std::int64_t devices;
  };
  using Buckets = std::map<FitRank, std::vector<NodeId>>;

  explicit FitIndex(PodShape shape);
  const PodShape& shape() const { return shape_; }
  std::string_view device() const { return device_; }  // The accelerator that it asks for; empty: none.

  // Over all nodes: copies that fit now; that would fit on empty nodes; nodes that could hold one when empty.
  std::int64_t copies() const { return copies_; }
  std::int64_t capacity() const { return capacity_; }
  int eligible_nodes() const { return eligible_nodes_; }
  int largest_capacity() const { return largest_capacity_; }  // No node holds more; the largest may be gone.
  const std::vector<Amount>& amounts() const { return amounts_; }
  std::vector<OwnerDevices> LargestUses(std::size_t count) const;  // Of device(), on eligible nodes.

  bool IsEligible(NodeId id) const { return id < slots_.size() && slots_[id].capacity > 0; }
  int CopiesOn(NodeId id) const { return id < slots_.size() ? slots_[id].rank.copies : 0; }
  int CapacityOf(NodeId id) const { return id < slots_.size() ? slots_[id].capacity : 0; }
  int CopiesOn(NodeId id, const Resources& taken) const;  // If exactly this were taken.
  // Of amounts()[amount]. REQUIRES: IsEligible(id).
  std::int64_t FreeOn(NodeId id, std::size_t amount, const Resources& taken) const;
  // The node has devices and none is taken: worth keeping for pods that need them all.
  bool IsWhole(NodeId id) const { return id < slots_.size() && slots_[id].is_whole; }
  FitRank RankOf(NodeId id) const { return slots_[id].rank; }
  // What `compute` says of the node as it is, as long as nothing changes there and `version` is the same.
  std::optional<double> ScoreOf(NodeId id, std::uint64_t version,
                                const std::function<std::optional<double>()>& compute) const;
  const Buckets& buckets() const { return buckets_; }  // Nodes with room; a bucket may be empty.

  // For the ledger. `state` null: the node is not there (any longer); else it stays where it is until the next call.
  void SetNode(NodeId id, const NodeState* state, const Resources& taken);
  void SetTaken(NodeId id, const Resources& taken);
  // `sign`: 1 if the owner now holds `held` there, -1 if it no longer does.
  void ChangeHeld(NodeId id, OwnerId owner, int sign, const Resources& held);

 private:
  struct Slot {
    FitRank rank;  // Its bucket, if rank.copies > 0.
    std::uint32_t at = 0;
    std::int32_t capacity = 0;
    std::int64_t devices = 0;
    bool is_whole = false;
  };
  int Count(NodeId id, const Resources& taken, std::vector<std::int64_t>* free) const;
  void Place(NodeId id, const FitRank& rank);
  // Of device(); if the shape asks for none, of the first accelerator in `from`.
  std::int64_t DevicesIn(const Resources& from) const;

  struct Score {
    bool is_known = false;
    std::optional<double> score = {};
  };
  void ForgetScore(NodeId id);

  const PodShape shape_;
  const std::string device_;
  const bool asks_for_gpu_parts_;
  std::vector<Amount> amounts_;
  std::vector<Slot> slots_;
  std::vector<std::int64_t> offers_, free_;  // By node, then by amount.
  std::vector<const Resources*> gpus_;       // What they offer, by node, if the shape asks for parts of GPUs.
  std::vector<std::int64_t> scratch_;
  std::vector<std::int64_t> held_;  // Devices on eligible nodes by owner.
  Buckets buckets_;
  std::int64_t copies_ = 0, capacity_ = 0;
  int eligible_nodes_ = 0, largest_capacity_ = 0;
  mutable std::vector<Score> scores_;  // By node.
  mutable std::uint64_t scores_version_ = 0;
};

}  // namespace grus
