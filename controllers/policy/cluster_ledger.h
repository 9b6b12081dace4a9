// SPDX-License-Identifier: Apache-2.0
// Who holds what on which node, and what is still free.
//
// Two kinds of holdings: pods that are bound (facts of the cluster), and places, for the pods a job or gang was granted
// that are not bound yet, so that two that are planned one after the other do not count on the same free GPU. The
// ledger is rebuilt from the cluster at every start and never stored.
// For each shape that somebody plans with it keeps an index of the nodes by the room there is.
//
// Pure data structure: no I/O, clock or lock; the owner serialises access.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "controllers/policy/fit_index.h"

namespace grus {

// What is free for a shape, for the message of a job that waits.
struct Room {
  int copies = 0;  // Pods of the shape that fit now, at most what was asked for.
  int nodes = 0;   // Nodes that could hold the shape at all, were they empty.
};

// One pod that is not bound yet, and where it is to run.
struct Place {
  std::string node;
  ShapePtr shape;
  friend bool operator==(const Place&, const Place&) = default;
};

// What one owner holds on one node.
struct NodeUse {
  OwnerId owner = 0;
  int pods = 0;
  Resources held, unbound;  // `unbound` is the part of `held` that is not bound yet.
};

struct LedgerNode {
  NodeId id = 0;
  bool is_known = false;  // False: pods are bound to it, but the node is not (or no longer) there.
  int uses = 0;           // Pods and places. An unknown node that nobody holds is forgotten.
  NodeState state;
  Resources used;      // By bound pods and by places.
  Resources reserved;  // For a gang that waits; nobody else may count on it.
  std::vector<NodeUse> by_owner;
  std::vector<ShapePtr> pods;  // Of those whose shape is known.

  Resources Taken() const;  // Used or reserved.
  // Whether it is there, takes such pods, and has room for one more if so much is taken.
  bool CanHold(const PodShape& shape, const Resources& taken) const;
  const NodeUse* FindUse(OwnerId owner) const;  // Null: it holds nothing here.
};

class ClusterLedger {
 public:
  ClusterLedger();

  void PutNode(NodeState node);
  void RemoveNode(const std::string& name);

  // A bound pod of `owner` (empty: nobody that has places). Binding again with the same UID replaces. One place of the
  // owner ends with each pod that is bound for the first time: one that asks for as much, best on that node; else any.
  // Without a `shape` the pod has that of the place; else no constraint of another pod sees it.
  void Bind(const std::string& pod_uid, const std::string& node, const Resources& request, const std::string& owner,
            ShapePtr shape = nullptr);
  void Release(const std::string& pod_uid);
  const Resources* RequestOf(const std::string& pod_uid) const;  // Of a bound pod; null: it is not. As PlacesOf().

  // `owner` counts on `count` more pods of `shape` than are bound; replaces all its places, unless they are just that.
  // First fit, without regard for reservations. Returns how many found a place.
  int KeepPlaces(const std::string& owner, const PodShape& shape, int count);
  // One place more, on a node that is known. It may over-commit the node: a fact is a fact.
  // REQUIRES: an owner, and a shape.
  void AddPlace(const std::string& owner, const std::string& node, ShapePtr shape);
  const std::vector<Place>& PlacesOf(const std::string& owner) const;              // Valid until the next change.
  bool HasJust(const std::string& owner, const PodShape& shape, int count) const;  // These places and no others.
  bool HasPlaces(const std::function<bool(const std::string& owner)>& of) const;
  void DropPlaces(const std::string& owner);
  bool HoldsAnything(const std::string& owner) const { return owner_ids_.contains(owner); }

  // Room for pods of `shape` beside all bound pods, what is reserved (for others), and all places but those of `owner`.
  Room RoomFor(const std::string& owner, const PodShape& shape, int at_most, bool may_use_reserved = false) const;

  // For planning. The index is kept true for as long as the caller, too, holds it.
  std::shared_ptr<const FitIndex> IndexFor(const PodShape& shape);
  // Kept free of others on these nodes; replaces the earlier reservation. Not part of version().
  void Reserve(std::map<NodeId, Resources> reserved);
  const std::map<NodeId, Resources>& reserved() const { return reserved_; }
  NodeId node_limit() const { return static_cast<NodeId>(by_id_.size()); }
  const LedgerNode* NodeAt(NodeId id) const { return by_id_[id]; }  // Null: no longer used.
  const LedgerNode* FindNode(const std::string& name) const;        // Null: not there.
  OwnerId FindOwner(const std::string& owner) const;                // 0: holds nothing.
  const std::string& OwnerName(OwnerId id) const { return owners_[id].name; }
  OwnerId owner_limit() const { return static_cast<OwnerId>(owners_.size()); }
  // Changes with every change of nodes and holdings.
  std::uint64_t version() const { return version_; }
  std::uint64_t nodes_version() const { return nodes_version_; }  // With what nodes are, not with what they hold.
  std::uint64_t room_version() const { return room_version_; }    // With all that may leave more room than there was.

  // Shapes whose anti-affinity keeps others away, and where pods of them are.
  struct Guard {
    ShapePtr shape;
    std::map<NodeId, int> nodes;
  };
  const std::unordered_map<const PodShape*, Guard>& guards() const { return guards_; }
  std::uint64_t guards_version() const { return guards_version_; }  // Changes when a shape comes to be a guard.

 private:
  struct Binding {
    LedgerNode* node;
    OwnerId owner;
    Resources request;
    ShapePtr shape;
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
  // A pod was bound to `from` where another owner had a place, and left a place of its own at `to`: the scheduler
  // swapped them. The other's place moves, if it does not fit any more where it was.
  void PassOn(LedgerNode& from, const std::string& to);

  std::map<std::string, LedgerNode> nodes_;
  std::vector<LedgerNode*> by_id_;
  std::vector<NodeId> free_ids_;
  std::unordered_map<std::string, Binding> bindings_;  // By pod UID.
  std::unordered_map<std::string, OwnerId> owner_ids_;
  std::vector<Owner> owners_;
  std::vector<OwnerId> free_owners_;
  std::vector<std::shared_ptr<FitIndex>> indexes_;
  std::map<NodeId, Resources> reserved_;
  std::unordered_map<const PodShape*, Guard> guards_;
  std::uint64_t version_ = 1, nodes_version_ = 1, room_version_ = 1, guards_version_ = 1;
};

}  // namespace grus
