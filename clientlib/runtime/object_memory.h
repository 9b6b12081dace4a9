// SPDX-License-Identifier: Apache-2.0
// What a reconciler keeps of its objects between passes.
//
// It is about one object: another one of the same name begins anew. Keep nothing in it whose loss would matter, since a
// restart loses all of it. Forget() an object that is gone, or it stays.
// Thread-safe.
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
  kSpec,  // Begins anew with each generation, too.
};

template <typename T>
class ObjectMemory {
 public:
  explicit ObjectMemory(KeptFor kept_for = KeptFor::kObject) : kept_for_(kept_for) {}

  // A copy of what is kept; T() if nothing is.
  T Get(const ObjectMeta& object) const {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(object.Key());
    return found != entries_.end() && IsAbout(found->second, object.uid, object.generation) ? found->second.kept : T();
  }

  // Returns what `use` returns of what is kept, a T&. The lock is held meanwhile: `use` must not come back here.
  template <typename F>
  auto With(const ObjectMeta& object, F&& use) {
    return Use(object.Key(), object.uid, object.generation, std::forward<F>(use));
  }
  // Likewise, where `uid` is not the UID of the object of that key, but of something of which it has one at a time.
  template <typename F>
  auto With(const ObjectKey& key, const std::string& uid, F&& use) {
    return Use(key, uid, 0, std::forward<F>(use));
  }
  // Of whatever object of that name there is; not called if nothing is kept.
  template <typename F>
  void IfKept(const ObjectKey& key, F&& use) {
    std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) use(found->second.kept);
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
