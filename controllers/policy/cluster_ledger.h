// SPDX-License-Identifier: Apache-2.0
// Who holds what on which node, and what is still free.
//
// Two kinds of holdings: pods that are bound (facts of the cluster), and claims, the pods a job was granted that
// are not bound yet. Claims are placed first-fit, so that two jobs planned one after the other do not count on
// the same free GPU. The ledger is rebuilt from the cluster at every start and never stored.
// It knows node readiness (as taints), cordons, taints, node selectors and resources. What it does not know the
// scheduler still checks: an answer too high costs a wait for the unschedulable grace, never a wrong binding.
//
// Pure data structure: no I/O, clock or lock; the owner serialises access.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "controllers/policy/resources.h"

namespace grus {

struct Taint {
  std::string key, value, effect;  // effect: NoSchedule | PreferNoSchedule | NoExecute
};

struct Toleration {
  std::string key, op, value, effect;  // op: "Exists", "Equal" or "" (Equal); empty key with Exists: all taints.
  bool Tolerates(const Taint& taint) const;
  friend bool operator==(const Toleration&, const Toleration&) = default;
};

// What placement must know of a pod.
struct PodShape {
  Resources request;
  std::map<std::string, std::string> node_selector;
  std::vector<Toleration> tolerations;
  friend bool operator==(const PodShape&, const PodShape&) = default;
};

struct NodeState {
  std::string name;
  Resources allocatable;
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;
  bool is_cordoned = false;
};

// What is free for a shape, for the message of a job that waits.
struct Room {
  int copies = 0;            // Pods of the shape that fit now, at most what was asked for.
  int nodes = 0;             // Nodes that could hold the shape at all, were they empty.
  std::int64_t gpus_free = 0, gpus_total = 0;  // On those nodes.
};

class ClusterLedger {
 public:
  void PutNode(NodeState node);
  void RemoveNode(const std::string& name);
  bool HasNode(const std::string& name) const;
  std::size_t node_count() const { return nodes_.size(); }  // With those that are gone and still held.

  // A bound pod of `owner` (empty: nobody that claims). Binding again with the same UID replaces. One claim of the
  // owner ends with each pod that is bound for the first time.
  void Bind(const std::string& pod_uid, const std::string& node, const Resources& request, const std::string& owner);
  void Release(const std::string& pod_uid);

  // `owner` counts on `count` more pods of `shape` than are bound; replaces its earlier claim, unless it is just that.
  // Returns how many found a place.
  int Claim(const std::string& owner, const PodShape& shape, int count);

  // Room for pods of `shape` beside all bound pods and all claims but those of `owner`.
  Room RoomFor(const std::string& owner, const PodShape& shape, int at_most) const;

 private:
  struct NodeEntry {
    NodeState state;
    bool is_known = false;  // False: pods are bound to it, but the node is not (or no longer) there.
    Resources used;         // By bound pods and by claims.
    int holders = 0;        // How many these are. An unknown node that nobody holds is forgotten.
    std::unordered_map<std::string, Resources> claimed;  // Part of `used`, by owner.
  };
  struct Binding {
    std::string node;
    Resources request;
  };
  static bool Accepts(const NodeEntry& node, const PodShape& shape);
  void Take(NodeEntry& node, const Resources& request);
  void GiveBack(const std::string& node, const Resources& request);
  void DropClaim(const std::string& owner);

  std::map<std::string, NodeEntry> nodes_;
  struct ClaimEntry {
    PodShape shape;
    std::vector<std::string> nodes;  // One entry a pod.
  };
  std::unordered_map<std::string, Binding> bindings_;   // By pod UID.
  std::unordered_map<std::string, ClaimEntry> claims_;  // By owner.
};

}  // namespace grus
