// SPDX-License-Identifier: Apache-2.0
// The garbage collector: deletes children whose owners are gone; foreground deletion; orphaning.
//
// Knows owners by UID, from observed changes: an object that existed before counts as gone.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "clientlib/testing/cluster/cluster_context.h"

namespace kube::testing {

class GarbageCollector {
 public:
  explicit GarbageCollector(const ClusterContext& context);
  void Observe(const ServerChange& change);  // Only records the change.

 private:
  struct Owner {
    std::string uid;
    bool blocks = false;
  };
  struct Item {
    std::string resource;
    ObjectKey key;
    std::vector<Owner> owners;
    bool is_foreground_deletion = false;  // In foreground deletion: waits for its children.
    bool is_orphaning = false;
  };

  void SetOwners(const std::string& uid, Item& item, std::vector<Owner> owners);
  void AddChildren(const std::string& uid);

  bool Reconcile(const std::string& uid);
  bool ReleaseAfterChildren(const Item& item, const std::string& uid);
  bool OrphanChildren(const Item& item, const std::string& uid);
  bool Judge(const Item& item, const std::string& uid, const Json& object);
  const Item* Find(const std::string& uid) const;
  std::vector<std::string> ChildrenOf(const std::string& uid) const;
  bool DropOwners(const Item& item, const std::string& uid, const std::set<std::string, std::less<>>& owners);

  const ClusterContext& context_;
  WorkLoop loop_;  // Its keys are UIDs.
  std::map<std::string, Item> items_;
  std::map<std::string, std::set<std::string>> children_;  // By the owner's UID.
};

}  // namespace kube::testing
