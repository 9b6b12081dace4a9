// SPDX-License-Identifier: Apache-2.0
// Places for the members of one gang.
//
// Places all members if they fit, else as many of the first as fit if those are enough; otherwise none. Prefers few
// nodes to many and, among equals, the fuller; keeps a node with all its GPUs free whole if a few partly used nodes can
// hold the rest. Or it spreads members that ask for GPUs: each goes to the node of which most is still free. Exact for
// members that are alike and have no constraints: what fits is found. With several kinds of members, or with
// constraints between pods, it is a greedy search that can miss a place; it never gives a wrong one.
//
// Pure functions; all but KeepChosenPlaces() read the ledger and change nothing that can be seen.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controllers/policy/cluster_ledger.h"
#include "controllers/queues/queue_spec.h"

namespace grus {

struct GangToPlace;

// Members that fit alike and go to nodes in the same order, by their numbers, ascending.
struct GangPart {
  std::shared_ptr<const FitIndex> index;
  std::vector<int> members;

  int CountBelow(int limit) const;  // How many are among the first `limit` members.
  PoolPlacement PlacementIn(const GangToPlace& gang) const;
};

struct GangToPlace {
  const std::vector<ShapePtr>* members = nullptr;
  const std::vector<GangPart>* parts = nullptr;
  int needed = 0;
  int at_most = std::numeric_limits<int>::max();      // Members to place: so many of the first.
  PoolPlacement placement = PoolPlacement::kBinPack;  // Of members that ask for GPUs and wish for none themselves.
  std::vector<NodeId> avoid = {};
  bool is_constrained = false;             // See HasConstraints().
  const ReservedRoom* may_use = nullptr;   // Reserved room that it may take; null: none.
  std::map<NodeId, Resources> freed = {};  // As if so much less were taken there.
  bool on_empty_cluster = false;           // As if no pod and no place were there.
};

struct GangPlaces {
  std::vector<NodeId> nodes;           // Of the first members; empty if too few have a place.
  std::vector<std::string> gpus = {};  // Of those that ask for a part of one, where it matters which; else empty.
  int fitting = 0;                     // How many a place was found for.
};

// Members grouped by what they need of a node; larger requests first.
std::vector<GangPart> PartsOf(ClusterLedger& ledger, const std::vector<ShapePtr>& members);

// Whether a member requires something of other pods, or the anti-affinity of a pod in the ledger is about a member.
bool HasConstraints(const ClusterLedger& ledger, const std::vector<ShapePtr>& members);

// An upper bound of how many of the first `limit` members have room: counts each kind as if it were alone, and without
// constraints between pods. Fast.
int RoomForMembers(const ClusterLedger& ledger, const GangToPlace& gang, int limit);

// All members, or as many of the first as fit; none if these are fewer than needed, or none at all.
GangPlaces PlaceGang(const ClusterLedger& ledger, const GangToPlace& gang);

// Nodes for at most `at_most` pods that are alike, beside all that is held: for as many as fit.
std::vector<NodeId> PlacesFor(ClusterLedger& ledger, const ShapePtr& shape, int at_most, const ReservedRoom* may_use,
                              PoolPlacement placement);

// As ClusterLedger::KeepPlaces(), on the nodes where PlaceGang() would place such pods.
void KeepChosenPlaces(ClusterLedger& ledger, const std::string& owner, const ShapePtr& shape, int count,
                      PoolPlacement placement);

}  // namespace grus
