// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/garbage_collector.h"

#include <algorithm>
#include <utility>

#include "clientlib/testing/cluster/objects.h"

namespace kube::testing {
namespace {

constexpr std::string_view kForeground = "foregroundDeletion";
constexpr std::string_view kOrphan = "orphan";

}  // namespace

GarbageCollector::GarbageCollector(const ClusterContext& context)
    : context_(context),
      loop_(context, context.options.garbage, [this](const ObjectKey& key) { return Reconcile(key.name); }) {}

void GarbageCollector::Observe(const ServerChange& change) {
  const Json& object = change.after ? *change.after : *change.before;
  const std::string uid(UidOf(object));
  if (!change.after) {
    const auto gone = items_.find(uid);
    if (gone == items_.end()) return;
    for (const Owner& owner : gone->second.owners) {
      const Item* const its = Find(owner.uid);
      if (its && its->is_foreground_deletion) loop_.Add({"", owner.uid});
    }
    SetOwners(uid, gone->second, {});
    items_.erase(gone);
    AddChildren(uid);
    return;
  }
  Item& item = items_[uid];
  const bool is_new = item.key.name.empty();
  if (is_new) {
    item.resource = change.resource;
    item.key = KeyOf(object);
  }
  const bool is_deleted = IsBeingDeleted(object);
  item.is_foreground_deletion = is_deleted && HasFinalizer(object, kForeground);
  item.is_orphaning = is_deleted && HasFinalizer(object, kOrphan);
  std::vector<Owner> owners;
  for (const Json& owner : ItemsAt(object, {"metadata", "ownerReferences"})) {
    owners.push_back({std::string(TextAt(owner, {"uid"})), IsTrueAt(owner, {"blockOwnerDeletion"})});
  }
  const auto is_same = [](const Owner& a, const Owner& b) { return a.uid == b.uid && a.blocks == b.blocks; };
  const bool has_new_owners =
      !std::equal(owners.begin(), owners.end(), item.owners.begin(), item.owners.end(), is_same);
  if (has_new_owners) {
    // An owner that waits for its children may have one less.
    for (const Owner& owner : item.owners) {
      if (const Item* const its = Find(owner.uid); its && its->is_foreground_deletion) loop_.Add({"", owner.uid});
    }
    SetOwners(uid, item, std::move(owners));
  }
  if (item.is_foreground_deletion || item.is_orphaning) {
    loop_.Add({"", uid});
    if (item.is_foreground_deletion) AddChildren(uid);
  } else if (has_new_owners && !item.owners.empty()) {
    loop_.Add({"", uid});
  }
}

void GarbageCollector::SetOwners(const std::string& uid, Item& item, std::vector<Owner> owners) {
  for (const Owner& owner : item.owners) {
    const auto found = children_.find(owner.uid);
    found->second.erase(uid);
    if (found->second.empty()) children_.erase(found);
  }
  item.owners = std::move(owners);
  for (const Owner& owner : item.owners) children_[owner.uid].insert(uid);
}

void GarbageCollector::AddChildren(const std::string& uid) {
  for (const std::string& child : ChildrenOf(uid)) loop_.Add({"", child});
}

const GarbageCollector::Item* GarbageCollector::Find(const std::string& uid) const {
  const auto found = items_.find(uid);
  return found == items_.end() ? nullptr : &found->second;
}

std::vector<std::string> GarbageCollector::ChildrenOf(const std::string& uid) const {
  const auto found = children_.find(uid);
  if (found == children_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

bool GarbageCollector::Reconcile(const std::string& uid) {
  const Item* const found = Find(uid);
  if (!found) return true;
  const Item item = *found;  // Our own writes change the notes.
  const FakeApiServer::ObjectPtr object = context_.server.Get(item.resource, item.key);
  if (!object || UidOf(*object) != uid) return true;
  if (item.is_orphaning) return OrphanChildren(item, uid);
  if (item.is_foreground_deletion) return ReleaseAfterChildren(item, uid);
  return IsBeingDeleted(*object) || item.owners.empty() || Judge(item, uid, *object);
}

bool GarbageCollector::ReleaseAfterChildren(const Item& item, const std::string& uid) {
  for (const std::string& child : ChildrenOf(uid)) {
    const Item* const its = Find(child);
    const bool blocks = its && std::any_of(its->owners.begin(), its->owners.end(),
                                           [&](const Owner& owner) { return owner.uid == uid && owner.blocks; });
    if (blocks) return true;  // Its end, or a change of its owners, causes another pass.
  }
  return context_.Modify(item.resource, item.key, uid, {},
                         [](Json& object) { return RemoveFinalizer(object, kForeground); });
}

bool GarbageCollector::OrphanChildren(const Item& item, const std::string& uid) {
  for (const std::string& child : ChildrenOf(uid)) {
    const Item* const its = Find(child);
    if (its && !DropOwners(Item(*its), child, {uid})) return false;
  }
  return context_.Modify(item.resource, item.key, uid, {},
                         [](Json& object) { return RemoveFinalizer(object, kOrphan); });
}

bool GarbageCollector::Judge(const Item& item, const std::string& uid, const Json& object) {
  bool has_owner = false, waits_for_us = false;
  std::set<std::string, std::less<>> useless;
  for (const Owner& owner : item.owners) {
    const Item* const its = Find(owner.uid);
    if (!its || (!its->key.ns.empty() && its->key.ns != item.key.ns)) {
      useless.insert(owner.uid);
    } else if (its->is_foreground_deletion && owner.blocks) {
      useless.insert(owner.uid);
      waits_for_us = true;
    } else {
      has_owner = true;
    }
  }
  if (has_owner) return useless.empty() || DropOwners(item, uid, useless);
  // In foreground deletion the owner waits for this object, and this object for its own children.
  const bool has_children = !ChildrenOf(uid).empty();
  std::string_view how = "Background";
  if (HasFinalizer(object, kOrphan)) how = "Orphan";
  if (HasFinalizer(object, kForeground) || (waits_for_us && has_children)) how = "Foreground";
  return context_.DeleteObject(item.resource, object, -1, how);
}

bool GarbageCollector::DropOwners(const Item& item, const std::string& uid,
                                  const std::set<std::string, std::less<>>& owners) {
  return context_.Modify(item.resource, item.key, uid, {}, [&](Json& object) {
    Json* const references = object["metadata"].Find("ownerReferences");
    if (!references || !references->AsArray()) return false;
    const bool has_changed = std::erase_if(*references->AsArray(), [&](const Json& owner) {
                               return owners.contains(TextAt(owner, {"uid"}));
                             }) > 0;
    if (references->AsArray()->empty()) object["metadata"].Erase("ownerReferences");
    return has_changed;
  });
}

}  // namespace kube::testing
