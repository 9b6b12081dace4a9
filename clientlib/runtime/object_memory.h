// SPDX-License-Identifier: Apache-2.0
// What a reconciler keeps of its objects between passes.
//
// An entry belongs to one UID: another object of the same name starts with an empty one. A restart loses all entries,
// so keep only what may be lost. Call Forget() when an object is deleted; otherwise its entry stays. Thread-safe.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "clientlib/model/meta.h"

namespace kube {

enum class KeptFor {
  kObject,
  kSpec,  // Also starts over with each generation.
};

template <typename T>
class ObjectMemory {
 public:
  explicit ObjectMemory(KeptFor kept_for = KeptFor::kObject) : kept_for_(kept_for) {}

  // A copy of the entry; T() if there is none.
  T Get(const ObjectMeta& object) const {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(object.Key());
    return found != entries_.end() && IsAbout(found->second, object.uid, object.generation) ? found->second.kept : T();
  }

  // Calls `use` with the entry, a T&, and returns its result. The lock is held meanwhile: `use` must not call this
  // object.
  template <typename F>
  auto With(const ObjectMeta& object, F&& use) {
    return Use(object.Key(), object.uid, object.generation, std::forward<F>(use));
  }
  // The same, but `uid` is not the object's own: it is that of something of which the object has one at a time.
  template <typename F>
  auto With(const ObjectKey& key, const std::string& uid, F&& use) {
    return Use(key, uid, 0, std::forward<F>(use));
  }
  // Calls `use` with the entry of `key`, whatever its UID, if there is one.
  template <typename F>
  void IfKept(const ObjectKey& key, F&& use) {
    std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) use(found->second.kept);
  }

  // Calls `use` with the key and the entry, a const T&, of each object, in no order. The lock is held meanwhile.
  template <typename F>
  void ForEach(F&& use) const {
    std::lock_guard lock(mutex_);
    for (const auto& [key, entry] : entries_) use(key, entry.kept);
  }

  // Returns what was kept.
  std::optional<T> Forget(const ObjectKey& key) {
    std::lock_guard lock(mutex_);
    auto entry = entries_.extract(key);
    return entry ? std::optional<T>(std::move(entry.mapped().kept)) : std::nullopt;
  }

 private:
  struct Entry {
    std::string uid;
    std::int64_t generation = 0;
    T kept{};
  };
  bool IsAbout(const Entry& entry, const std::string& uid, std::int64_t generation) const {
    return entry.uid == uid && (kept_for_ == KeptFor::kObject || entry.generation == generation);
  }
  template <typename F>
  auto Use(const ObjectKey& key, const std::string& uid, std::int64_t generation, F&& use) {
    std::lock_guard lock(mutex_);
    Entry& entry = entries_[key];
    if (!IsAbout(entry, uid, generation)) entry = Entry{uid, generation, {}};
    return use(entry.kept);
  }

  const KeptFor kept_for_;
  mutable std::mutex mutex_;  // Guards entries_.
  std::unordered_map<ObjectKey, Entry> entries_;
};

}  // namespace kube
