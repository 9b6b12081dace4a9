// SPDX-License-Identifier: Apache-2.0
// Has the cache seen our own writes? (KEP-5647, rule W2)
//
// After a write a reconciler notes the answer's resource version under the owner it reconciles; before the next pass
// over that owner it asks whether the caches have caught up, and waits for the cache if not. A pass on a stale cache
// would repeat writes, or undo them. Records of an owner are dropped once caught up, and replaced when the owner comes
// back with another UID. A version that is no number counts as caught up: never block on it. The echo of an own write
// needs no pass, unless one waits for it. Thread-safe.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "clientlib/cache/store.h"

namespace kube {

class Informer;

class WriteTracker {
 public:
  // `resource_version` is that of the server's answer to a write of an object of `kind`.
  void Note(const ObjectKey& owner, const std::string& owner_uid, const Kind& kind,
            const std::string& resource_version);
  void Note(const ObjectMeta& owner, const Kind& kind, const Object& answer) {
    Note(owner.Key(), owner.uid, kind, answer.metadata.resource_version);
  }

  // True if for every noted kind the store's version, `version_of(kind)`, has reached the noted one. An empty store
  // version counts as reached.
  bool HasCaughtUp(const ObjectKey& owner, const std::string& owner_uid,
                   const std::function<std::string(const Kind&)>& version_of);
  // `caches`: those of the kinds that are written; null ones are skipped.
  bool HasCaughtUp(const ObjectMeta& owner, std::initializer_list<const Informer*> caches);

  // True if `resource_version`, which an event just brought, is that of the newest noted write of this kind, and the
  // owner's last HasCaughtUp() did not find the caches behind.
  bool IsOwnEcho(const ObjectKey& owner, const Kind& kind, std::string_view resource_version) const;

  void Forget(const ObjectKey& owner);

 private:
  struct Record {
    std::string uid;
    std::map<const Kind*, std::string> versions;
    bool is_awaited = false;  // A pass waits until the caches have caught up.
  };
  mutable std::mutex mutex_;  // Guards records_.
  std::unordered_map<ObjectKey, Record> records_;
};

}  // namespace kube
