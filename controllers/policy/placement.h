// SPDX-License-Identifier: Apache-2.0
// Places for the members of one gang.
//
// All of them if they fit, else as many of the first as fit, if that is enough; otherwise none. Few nodes are better
// than many; among equal ones the fuller, and a node with all its GPUs free is not broken into for a few members that
// a few partly used nodes can hold.
// Exact for members that are alike and ask nothing of other pods: what fits is found. With several kinds of members,
// or with constraints between pods, it is a greedy search that can miss a place; it never gives a wrong one.
//
// Pure functions; all but KeepConstrainedPlaces() read the ledger and change nothing that can be seen.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controllers/policy/cluster_ledger.h"

namespace grus {

// Members that fit alike, by their numbers, ascending.
struct GangPart {
  std::shared_ptr<const FitIndex> index;
  std::vector<int> members;

  int CountBelow(int limit) const;  // How many of them are among the first `limit` members.
};

struct GangToPlace {
  const std::vector<ShapePtr>* members = nullptr;
  const std::vector<GangPart>* parts = nullptr;
  int needed = 0;
  std::vector<NodeId> avoid = {};
  bool is_constrained = false;  // See HasConstraints().
  bool may_use_reserved = false;
  bool on_empty_cluster = false;  // Could it ever fit?
};

struct GangPlaces {
  std::vector<NodeId> nodes;  // Of the first members; empty if too few have a place.
  int fitting = 0;            // How many had one, as far as was found.
};

// By what their members need of a node; larger requests first.
std::vector<GangPart> PartsOf(ClusterLedger& ledger, const std::vector<ShapePtr>& members);

// Whether a member asks something of other pods, or a pod that is there something of a member.
bool HasConstraints(const ClusterLedger& ledger, const std::vector<ShapePtr>& members);

// How many of the first `limit` members there is room for, at most: each kind counted as if it were alone, and without
// constraints between pods. Fast.
int RoomForMembers(const ClusterLedger& ledger, const GangToPlace& gang, int limit);

// All members, or as many of the first as fit, or none if these are fewer than needed (and than one).
GangPlaces PlaceGang(const ClusterLedger& ledger, const GangToPlace& gang);

// Of pods that are alike, beside all that is held: as many as fit, at most `at_most`.
std::vector<NodeId> PlacesFor(ClusterLedger& ledger, const ShapePtr& shape, int at_most, bool may_use_reserved);

// As ClusterLedger::KeepPlaces(), for pods that ask something of others or of which others ask it.
void KeepConstrainedPlaces(ClusterLedger& ledger, const std::string& owner, const ShapePtr& shape, int count);

}  // namespace grus
