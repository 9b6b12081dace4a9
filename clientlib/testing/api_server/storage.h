// SPDX-License-Identifier: Apache-2.0
// The objects of the server, each resource with its history, under one counter of revisions.
// Not thread-safe: the server's lock guards it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/model/meta.h"
#include "clientlib/testing/api_server/api_error.h"
#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/api_server/resource_info.h"

namespace kube::testing {

// One state of one object. Immutable; its text is made on first use and kept. Thread-safe.
class Revision {
 public:
  Revision(Json object, std::uint64_t number) : object_(std::move(object)), number_(number) {}
  const Json& object() const { return object_; }
  std::uint64_t number() const { return number_; }
  const std::string& Text() const;

 private:
  const Json object_;
  const std::uint64_t number_;
  mutable std::once_flag once_;
  mutable std::string text_;
};
using RevisionPtr = std::shared_ptr<const Revision>;

inline std::shared_ptr<const Json> JsonOf(const RevisionPtr& revision) {
  return revision ? std::shared_ptr<const Json>(revision, &revision->object()) : nullptr;
}

struct Change {
  std::uint64_t number = 0;
  RevisionPtr before, after;  // Null: it is new, or it is deleted.
  RevisionPtr last;           // Of a deletion: the last state, with the revision of the deletion.
  const Json& object() const { return after ? after->object() : last->object(); }
};

class WatchQueue;

// What streams share with their server, and keep after the server is gone.
struct ServerShared {
  std::mutex mutex;            // Guards the whole server, and the unread events of its watches.
  std::uint64_t revision = 1;  // All watches have the changes up to it.
};

// The objects of one resource.
struct Table {
  std::shared_ptr<const ResourceInfo> info;
  std::map<ObjectKey, RevisionPtr> objects;
  std::deque<Change> log;
  std::uint64_t compacted = 0;  // The last change that is not in `log` any more.
  std::vector<std::shared_ptr<WatchQueue>> watches;
};

class Storage {
 public:
  using Observer = std::function<void(const ServerChange&)>;

  Storage(const Clock& clock, const FakeApiServerOptions& options);
  const std::shared_ptr<ServerShared>& shared() const { return shared_; }

  Table* Find(std::string_view group, std::string_view version, std::string_view plural);
  Table* Find(std::string_view id);  // "statefulsets.apps"
  const std::map<std::string, std::unique_ptr<Table>, std::less<>>& tables() const { return tables_; }
  Table& Add(std::shared_ptr<const ResourceInfo> info);  // Or replaces the info under its Id().
  void Remove(std::string_view id);                      // REQUIRES: it has no objects. Its watches end.

  RevisionPtr Get(const Table& table, const ObjectKey& key) const;
  // Stores `object` under the next revision and tells watches and observers.
  RevisionPtr Put(Table& table, Json object);
  // Returns the last state; `object` is what it was at its end. REQUIRES: it exists.
  RevisionPtr Erase(Table& table, Json object);
  // The objects as they were after `number`. Expired if that revision is compacted.
  Outcome<std::map<ObjectKey, RevisionPtr>> At(const Table& table, std::uint64_t number) const;

  std::uint64_t revision() const { return shared_->revision; }
  void Compact();
  void AddObserver(Observer observer) { observers_.push_back(std::move(observer)); }

  std::string Now() const;  // As in metadata.
  WallTime WallNow() const { return clock_.WallNow(); }
  std::string MakeUid();
  std::string MakeName(std::string_view prefix);  // For generateName.
  std::string MakeClusterIp();
  const FakeApiServerOptions& options() const { return options_; }

 private:
  RevisionPtr Record(Table& table, Change change);

  const Clock& clock_;
  const std::shared_ptr<ServerShared> shared_ = std::make_shared<ServerShared>();
  const FakeApiServerOptions options_;
  std::mt19937_64 random_;
  std::uint32_t addresses_given_ = 0;
  std::map<std::string, std::unique_ptr<Table>, std::less<>> tables_;  // By Id().
  std::vector<Observer> observers_;
};

}  // namespace kube::testing
