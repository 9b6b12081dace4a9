// SPDX-License-Identifier: Apache-2.0
#include "clientlib/cache/write_tracker.h"

#include "clientlib/cache/informer.h"

namespace kube {

void WriteTracker::Note(const ObjectKey& owner, const std::string& owner_uid, const Kind& kind,
                        const std::string& resource_version) {
  std::lock_guard lock(mutex_);
  Record& record = records_[owner];
  if (record.uid != owner_uid) record = Record{owner_uid, {}, false};
  std::string& noted = record.versions[&kind];
  if (!resource_version.empty() && !IsOlder(resource_version, noted)) noted = resource_version;
}

bool WriteTracker::HasCaughtUp(const ObjectKey& owner, const std::string& owner_uid,
                               const std::function<std::string(const Kind&)>& version_of) {
  std::lock_guard lock(mutex_);
  const auto it = records_.find(owner);
  if (it == records_.end()) return true;
  if (it->second.uid != owner_uid) {
    records_.erase(it);
    return true;
  }
  std::erase_if(it->second.versions,
                [&](const auto& noted) { return !IsOlder(version_of(*noted.first), noted.second); });
  it->second.is_awaited = !it->second.versions.empty();
  if (it->second.is_awaited) return false;
  records_.erase(it);
  return true;
}

bool WriteTracker::HasCaughtUp(const ObjectMeta& owner, std::initializer_list<const Informer*> caches) {
  return HasCaughtUp(owner.Key(), owner.uid, [&](const Kind& kind) {
    for (const Informer* cache : caches) {
      if (cache && &cache->kind() == &kind) return cache->store().resource_version(owner.ns);
    }
    return std::string();
  });
}

bool WriteTracker::IsOwnEcho(const ObjectKey& owner, const Kind& kind, std::string_view resource_version) const {
  std::lock_guard lock(mutex_);
  const auto it = records_.find(owner);
  if (it == records_.end() || it->second.is_awaited) return false;
  const auto noted = it->second.versions.find(&kind);
  return noted != it->second.versions.end() && noted->second == resource_version;
}

void WriteTracker::Forget(const ObjectKey& owner) {
  std::lock_guard lock(mutex_);
  records_.erase(owner);
}

}  // namespace kube
