// SPDX-License-Identifier: Apache-2.0
#include "clientlib/cache/store.h"

#include <algorithm>
#include <mutex>

namespace kube {
namespace {

bool IsVersion(std::string_view v) {
  return !v.empty() && v.front() != '0' && std::all_of(v.begin(), v.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

bool IsOlder(std::string_view a, std::string_view b) {
  if (!IsVersion(a) || !IsVersion(b)) return false;
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

Store::IndexId Store::AddIndex(IndexFunction function) {
  using PlainFunction = std::vector<std::string> (*)(const Object&);
  const PlainFunction* plain = function.target<PlainFunction>();
  std::unique_lock lock(mutex_);
  for (IndexId id = 0; id < indexes_.size() && plain != nullptr; ++id) {
    const PlainFunction* known = indexes_[id].function.target<PlainFunction>();
    if (known != nullptr && *known == *plain) return id;
  }
  indexes_.push_back({std::move(function), {}});
  return indexes_.size() - 1;
}

ConstObject Store::Get(const ObjectKey& key) const {
  std::shared_lock lock(mutex_);
  const auto it = objects_.find(KeyView(key));
  return it == objects_.end() ? nullptr : *it;
}

std::vector<ConstObject> Store::List() const {
  std::shared_lock lock(mutex_);
  return {objects_.begin(), objects_.end()};
}

std::vector<ConstObject> Store::ByIndex(IndexId index, const std::string& value) const {
  std::shared_lock lock(mutex_);
  std::vector<ConstObject> found;
  const auto it = indexes_.at(index).keys.find(value);
  if (it == indexes_[index].keys.end()) return found;
  found.reserve(it->second.size());
  for (const Object* object : it->second) found.push_back(*objects_.find(KeyView(*object)));
  return found;
}

std::size_t Store::size() const {
  std::shared_lock lock(mutex_);
  return objects_.size();
}

std::string Store::resource_version(const std::string& ns) const {
  std::shared_lock lock(mutex_);
  auto it = resource_versions_.find(ns);
  if (it == resource_versions_.end()) it = resource_versions_.find({});
  return it == resource_versions_.end() ? std::string() : it->second;
}

void Store::AddToIndexes(const Object& object) {
  for (Index& index : indexes_) {
    for (std::string& value : index.function(object)) index.keys[std::move(value)].insert(&object);
  }
}

void Store::RemoveFromIndexes(const Object& object) {
  for (Index& index : indexes_) {
    for (const std::string& value : index.function(object)) {
      const auto it = index.keys.find(value);
      if (it == index.keys.end()) continue;
      it->second.erase(&object);
      if (it->second.empty()) index.keys.erase(it);
    }
  }
}

ConstObject Store::SwapLocked(const KeyView& key, ConstObject object) {
  const auto it = objects_.find(key);
  if (it == objects_.end()) {
    if (!object) return nullptr;
    AddToIndexes(*object);
    objects_.insert(std::move(object));
    return nullptr;
  }
  RemoveFromIndexes(**it);
  auto node = objects_.extract(it);
  if (!object) return std::move(node.value());
  AddToIndexes(*object);
  std::swap(node.value(), object);
  objects_.insert(std::move(node));
  return object;
}

void Store::AdvanceLocked(const std::string& resource_version, const std::string& scope) {
  std::string& current = resource_versions_[scope];
  if (!resource_version.empty() && !IsOlder(resource_version, current)) current = resource_version;
}

Change Store::Put(ConstObject object, const std::string& scope) {
  std::unique_lock lock(mutex_);
  Change change{nullptr, object};
  AdvanceLocked(object->metadata.resource_version, scope);
  change.before = SwapLocked(*change.after, std::move(object));
  return change;
}

Change Store::Remove(const Object& object, const std::string& scope) {
  std::unique_lock lock(mutex_);
  AdvanceLocked(object.metadata.resource_version, scope);
  return Change{SwapLocked(object, nullptr), nullptr};
}

std::vector<Change> Store::Replace(std::vector<ConstObject> objects, const std::string& resource_version,
                                   const std::string& scope) {
  std::vector<Change> changes;
  std::unique_lock lock(mutex_);
  std::vector<ConstObject> gone;
  if (!objects_.empty()) {
    const Objects listed(objects.begin(), objects.end());
    for (const ConstObject& object : objects_) {
      if ((scope.empty() || object->metadata.ns == scope) && !listed.contains(object)) gone.push_back(object);
    }
  }
  for (const ConstObject& object : gone) changes.push_back({SwapLocked(*object, nullptr), nullptr});
  changes.reserve(changes.size() + objects.size());
  for (ConstObject& object : objects) {
    Change change{nullptr, object};
    change.before = SwapLocked(*change.after, std::move(object));
    const bool is_same = change.before && change.before->metadata.uid == change.after->metadata.uid &&
                         change.before->metadata.resource_version == change.after->metadata.resource_version;
    if (!is_same) changes.push_back(std::move(change));
  }
  AdvanceLocked(resource_version, scope);
  return changes;
}

void Store::Advance(const std::string& resource_version, const std::string& scope) {
  std::unique_lock lock(mutex_);
  AdvanceLocked(resource_version, scope);
}

}  // namespace kube
