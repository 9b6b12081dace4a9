// SPDX-License-Identifier: Apache-2.0
// Objects of one kind in memory, found by key or by index.
//
// Objects are shared and immutable: to change one, copy it. Each query sees one consistent state. Replace() is atomic
// to readers. A store is filled by one watch over all namespaces (scope ""), or by one watch per namespace (scope: its
// name). The resource version of a scope never goes back and also advances on bookmarks, so that "has the cache seen my
// write?" has an answer even if the object was deleted meanwhile. Thread-safe. REQUIRES: one writer per scope.
#pragma once

#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "clientlib/model/kind.h"

namespace kube {

using ConstObject = std::shared_ptr<const Object>;

// One change of the store. `before` is null for a new object, `after` for a deleted one. If an object was deleted
// and created again between two looks, both are set and their UIDs differ.
struct Change {
  ConstObject before;
  ConstObject after;
  const Object& Any() const { return after ? *after : *before; }
};

// Compares resource versions as integers (KEP-5504). False if either is malformed: never block on those.
bool IsOlder(std::string_view a, std::string_view b);

class Store {
 public:
  // The values under which an object is found; none leaves it out.
  using IndexFunction = std::function<std::vector<std::string>(const Object&)>;
  using IndexId = std::size_t;

  // Adding the same plain function again returns the same index. REQUIRES: called before the first object is stored.
  IndexId AddIndex(IndexFunction function);

  ConstObject Get(const ObjectKey& key) const;
  std::vector<ConstObject> List() const;
  std::vector<ConstObject> ByIndex(IndexId index, const std::string& value) const;
  std::size_t size() const;
  // Of the scope that holds objects of namespace `ns`; empty before the first list.
  std::string resource_version(const std::string& ns = {}) const;

  Change Put(ConstObject object, const std::string& scope = {});
  Change Remove(const Object& object, const std::string& scope = {});  // Both null if it did not exist.
  std::vector<Change> Replace(std::vector<ConstObject> objects, const std::string& resource_version,
                              const std::string& scope = {});
  void Advance(const std::string& resource_version, const std::string& scope = {});

 private:
  // A key that views into its object: an ObjectKey would take a tenth of a pod's memory.
  struct KeyView {
    std::string_view ns, name;
    KeyView(const ObjectKey& key) : ns(key.ns), name(key.name) {}  // NOLINT: implicit on purpose
    KeyView(const Object& object) : ns(object.metadata.ns), name(object.metadata.name) {}  // NOLINT
    KeyView(const ConstObject& object) : KeyView(*object) {}                               // NOLINT
    friend bool operator==(const KeyView&, const KeyView&) = default;
  };
  // Not noexcept: libstdc++ then caches each hash, and a lookup does not touch the other objects in its bucket.
  struct KeyHash {
    using is_transparent = void;
    std::size_t operator()(const KeyView& key) const {
      return std::hash<std::string_view>()(key.name) * 31 + std::hash<std::string_view>()(key.ns);
    }
  };
  struct KeyEqual {
    using is_transparent = void;
    bool operator()(const KeyView& a, const KeyView& b) const { return a == b; }
  };
  using Objects = std::unordered_set<ConstObject, KeyHash, KeyEqual>;

  struct Index {
    IndexFunction function;
    std::unordered_map<std::string, std::unordered_set<const Object*>> keys;
  };
  void AddToIndexes(const Object& object);
  void RemoveFromIndexes(const Object& object);
  // Replaces the object of `key` by `object`, or removes it if `object` is null. Returns the previous one.
  ConstObject SwapLocked(const KeyView& key, ConstObject object);
  void AdvanceLocked(const std::string& resource_version, const std::string& scope);

  mutable std::shared_mutex mutex_;  // Guards everything below.
  Objects objects_;
  std::vector<Index> indexes_;
  std::unordered_map<std::string, std::string> resource_versions_;  // By scope.
};

}  // namespace kube
