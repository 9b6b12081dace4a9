// SPDX-License-Identifier: Apache-2.0
// A store kept up to date by one reflector, or by one per namespace, with handlers for its changes.
//
// Handlers run on a reflector's thread after the store and its indexes changed, one change at a time, in order; they
// must be quick (typically: put a key on a work queue). A handler added late gets one synthetic change for each object
// in the store. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/cache/reflector.h"
#include "clientlib/cache/store.h"

namespace kube {

struct InformerOptions {
  std::vector<std::string> namespaces{};  // Empty: all.
  std::string label_selector{}, field_selector{};
  // Without the permission to read the kind, or if it is not served, the informer counts as synced, and HasList() is
  // false.
  bool is_optional = false;
};

class Informer {
 public:
  // `is_initial` is set for the objects of the first complete list, which are less urgent.
  using Handler = std::function<void(const Change& change, bool is_initial)>;

  Informer(Client& client, const Kind& kind, InformerOptions options, const Clock& clock, const Log& log);
  ~Informer();  // Stops and joins.

  const Kind& kind() const { return kind_; }
  const Store& store() const { return store_; }
  // See Store. REQUIRES: before Start().
  Store::IndexId AddIndex(Store::IndexFunction function) { return store_.AddIndex(std::move(function)); }
  void AddHandler(Handler handler);
  void Start();
  void Stop();  // Requests a stop.
  void Join();  // After Stop(): waits until no handler runs any more.
  // Waits until the first complete list is stored and every handler was told of it.
  bool WaitForSync(TimePoint until, std::stop_token stop = {}) const;
  bool HasSynced() const;
  bool HasList() const;          // The first complete list is stored.
  ReflectorStats stats() const;  // Summed over the reflectors.

  // Typed reads.
  template <typename T>
  std::shared_ptr<const T> Get(const ObjectKey& key) const {
    return std::static_pointer_cast<const T>(store_.Get(key));
  }
  template <typename T>
  std::vector<std::shared_ptr<const T>> ByIndex(Store::IndexId index, const std::string& value) const {
    return Cast<T>(store_.ByIndex(index, value));
  }
  template <typename T>
  std::vector<std::shared_ptr<const T>> List() const {
    return Cast<T>(store_.List());
  }

 private:
  class Source;  // One reflector and its thread.
  void Tell(const Change& change, bool is_initial);

  template <typename T>
  static std::vector<std::shared_ptr<const T>> Cast(std::vector<ConstObject> objects) {
    std::vector<std::shared_ptr<const T>> typed;
    typed.reserve(objects.size());
    for (ConstObject& o : objects) typed.push_back(std::static_pointer_cast<const T>(std::move(o)));
    return typed;
  }

  const Kind& kind_;
  const Clock& clock_;
  Store store_;

  // Guards handlers_. Held while a change is stored and handlers run: a late handler sees no gap, and two sources do
  // not call handlers at once.
  std::mutex handlers_mutex_;
  std::vector<Handler> handlers_;

  mutable std::mutex sync_mutex_;  // Guards the counts.
  mutable CondVar sync_changed_;
  std::size_t unsynced_sources_ = 0, unlisted_sources_ = 0;
  std::vector<std::unique_ptr<Source>> sources_;
};

}  // namespace kube
