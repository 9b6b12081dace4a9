// SPDX-License-Identifier: Apache-2.0
// Who holds what on which node, and what is still free.
//
// Two kinds of holdings: bound pods (facts of the cluster), and places, for pods that a job or gang was granted and
// that are not bound yet: two jobs that are planned one after the other must not count on the same free GPU. The ledger
// is rebuilt from the cluster at every start and never stored. For each shape that somebody plans with, it keeps an
// index of the nodes by their room.
//
// Pure data structure: no I/O, clock or lock; the owner serialises access.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controllers/policy/fit_index.h"
#include "controllers/policy/holdings_observer.h"
#include "controllers/policy/ledger_node.h"
#include "controllers/policy/part_mix.h"

namespace grus {

// What is free for a shape, for the message of a job that waits.
struct Room {
  int copies = 0;  // Pods of the shape that fit now, at most what was asked for.
  int nodes = 0;   // Nodes that could hold the shape if they were empty.
  // Pods that the owner may have, whether there is room for them or not, and what says so.
  int allowed = std::numeric_limits<int>::max();
  enum class Limit { kNone, kQueue, kWorth } limit = Limit::kNone;  // Worth: more would gain too little.
};

// One pod that is not bound yet, and where it is to run.
struct Place {
  std::string node;
  ShapePtr shape;
  std::string gpu = {};  // Which its part is of; empty: it asks for none, or nothing is known of the node's GPUs.
  std::string ToldGpu() const;  // The same, for the pod to be told; empty for claims: the scheduler chooses.
  Resources Request() const;
  friend bool operator==(const Place&, const Place&) = default;
};

class ClusterLedger {
 public:
  ClusterLedger();

  void Observe(HoldingsObserver* observer) { observer_ = observer; }  // REQUIRES: the ledger is empty.

  void PutNode(NodeState node);
  void RemoveNode(const std::string& name);

  // A bound pod of `owner` (empty: nobody that has places). A second bind of one UID replaces the first. The first bind
  // ends one place of the owner: one with the same request, on that node if possible; else one on that node; else any.
  // Without `shape`, the pod gets that of the place; without a place, the constraints of other pods do not see it.
  void Bind(const std::string& pod_uid, const std::string& node, const Resources& request, const std::string& owner,
            ShapePtr shape = nullptr);
  void NoteEnding(const std::string& pod_uid);  // The pod is being deleted. It holds its node until it is released.
  void ForEachEnding(
      const std::function<void(const LedgerNode&, const std::string& owner, const Resources&)>& tell) const;
  void Release(const std::string& pod_uid);
  const Resources* RequestOf(const std::string& pod_uid) const;  // Null: not bound. Valid as PlacesOf().
  const Resources* HeldOn(const std::string& pod_uid, const LedgerNode& node) const;  // Null: not bound there.

  // `owner` counts on `count` more pods of `shape` than are bound: replaces all its places, unless they are exactly
  // these. On few nodes, first on those where it is, ignoring reservations. Returns how many pods found a place.
  int KeepPlaces(const std::string& owner, const PodShape& shape, int count);
  // One more place. It may over-commit the node, or lie on one that is not known: a fact is a fact. If it asks for a
  // part of a GPU and names none, or one without room, one with room is chosen. REQUIRES: an owner, and a shape.
  void AddPlace(const std::string& owner, const std::string& node, ShapePtr shape, std::string gpu = {});
  const std::vector<Place>& PlacesOf(const std::string& owner) const;                 // Valid until the next change.
  bool HasExactly(const std::string& owner, const PodShape& shape, int count) const;  // No other places.
  void DropPlaces(const std::string& owner);
  bool HoldsAnything(const std::string& owner) const { return owner_ids_.contains(owner); }

  // Room for pods of `shape` beside all bound pods, what is reserved but for `may_use`, and the places of other owners.
  Room RoomFor(const std::string& owner, const PodShape& shape, int at_most,
               const ReservedRoom* may_use = nullptr) const;

  // For planning. The ledger updates the index as long as the caller holds it, and a few of those last asked for.
  std::shared_ptr<const FitIndex> IndexFor(const PodShape& shape);
  const FitIndex* FindIndex(const PodShape& shape) const;  // Null: it would be built. Valid until IndexFor().
  // Keeps these amounts free of others; replaces all that was reserved. Does not change version().
  void Reserve(ReservedRoom reserved);
  const ReservedRoom& reserved() const { return reserved_; }
  NodeId node_limit() const { return static_cast<NodeId>(by_id_.size()); }
  const LedgerNode* NodeAt(NodeId id) const { return by_id_[id]; }  // Null: the ID is not in use.
  const LedgerNode* FindNode(std::string_view name) const;          // Null: not there.
  OwnerId FindOwner(const std::string& owner) const;                // 0: holds nothing.
  const std::string& OwnerName(OwnerId id) const { return owners_[id].name; }
  OwnerId owner_limit() const { return static_cast<OwnerId>(owners_.size()); }
  // Changes with every change of nodes and holdings.
  std::uint64_t version() const { return version_; }
  std::uint64_t nodes_version() const { return nodes_version_; }  // With what nodes are, not with what they hold.
  std::uint64_t room_version() const { return room_version_; }    // With all that may add room.

  // A shape whose anti-affinity keeps others away, and where its pods and places are.
  struct Guard {
    ShapePtr shape;
    std::map<NodeId, int> nodes;
  };
  const std::unordered_map<const PodShape*, Guard>& guards() const { return guards_; }
  std::uint64_t guards_version() const { return guards_version_; }  // Changes when a shape becomes a guard.
  const PartMix& part_mix() const { return part_mix_; }             // Of all that is held.

 private:
  struct Binding {
    LedgerNode* node;
    OwnerId owner;
    Resources request;
    ShapePtr shape;
    bool is_ending = false;
  };
  struct Owner {
    std::string name;
    int holdings = 0;
    std::vector<Place> places;
  };
  LedgerNode& NodeNamed(const std::string& name);
  void Forget(LedgerNode& node);
  OwnerId Intern(const std::string& owner);
  void Take(LedgerNode& node, OwnerId owner, const Resources& request, const ShapePtr& shape, bool is_place);
  void GiveBack(LedgerNode& node, OwnerId owner, const Resources& request, const ShapePtr& shape, bool is_place);
  void Reindex(LedgerNode& node, OwnerId owner, const Resources& request, bool is_taken);
  // A pod was bound to `from`, where another owner had a place, and its own place at `to` became free: the scheduler
  // swapped them. Moves the other's place there if it no longer fits on `from`.
  void PassOn(LedgerNode& from, const std::string& to);

  HoldingsObserver* observer_ = nullptr;
  std::map<std::string, LedgerNode> nodes_;
  std::unordered_map<std::string_view, LedgerNode*> by_name_;  // Of nodes_; much faster.
  std::vector<LedgerNode*> by_id_;
  std::vector<NodeId> free_ids_;
  std::unordered_map<std::string, Binding> bindings_;  // By pod UID.
  std::unordered_map<std::string, OwnerId> owner_ids_;
  std::vector<Owner> owners_;
  std::vector<OwnerId> free_owners_;
  std::vector<std::shared_ptr<FitIndex>> indexes_;  // The one asked for last is the last.
  ReservedRoom reserved_;
  std::unordered_map<const PodShape*, Guard> guards_;
  PartMix part_mix_;
  std::uint64_t version_ = 1, nodes_version_ = 1, room_version_ = 1, guards_version_ = 1;
};

}  // namespace grus
