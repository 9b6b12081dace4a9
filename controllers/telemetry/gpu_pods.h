// SPDX-License-Identifier: Apache-2.0
// The pods with GPUs of a cluster, and the jobs that they are of, in little memory. Pure; not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "clientlib/model/compact_key.h"
#include "clientlib/model/time.h"
#include "crds/types/workload_usage.h"

namespace grus {

// Namespace and UID: unique, whatever UIDs pods of another namespace claim their owners have.
using JobId = kube::CompactKey;

struct JobRef {
  kube::CompactString kind = {};
  kube::CompactKey key = {};
  kube::CompactString uid = {};
  std::string ToString() const { return kind + "/" + key.ToString(); }
  JobId Id() const { return {key.ns, uid}; }
  friend bool operator==(const JobRef&, const JobRef&) = default;
};

struct GpuPod {
  kube::CompactKey key = {};
  kube::CompactString uid = {};
  std::shared_ptr<const JobRef> owner = {};  // Its controller, or itself if it has none.
  std::int32_t gpus = 0;
  kube::CompactString node = {};
  kube::Time started = {};
  std::optional<kube::Time> ended = {};
  api::RunOutcome outcome = api::RunOutcome::kNotKnown;  // Once it has ended.
};

// By name. Pods of one name have different UIDs, and follow one another.
class GpuPods {
  static const kube::CompactKey& NameOf(const GpuPod& pod) { return pod.key; }
  template <typename Key>
  static const Key& NameOf(const Key& name) {
    return name;
  }
  struct HashOfName {
    using is_transparent = void;
    template <typename Pod>
    std::size_t operator()(const Pod& pod) const {
      return kube::HashOfKey()(NameOf(pod));
    }
  };
  struct SameName {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return kube::SameKey()(NameOf(a), NameOf(b));
    }
  };
  using Pods = std::unordered_multiset<GpuPod, HashOfName, SameName>;

 public:
  using Iterator = Pods::const_iterator;

  Iterator begin() const { return pods_.begin(); }
  Iterator end() const { return pods_.end(); }
  std::size_t size() const { return pods_.size(); }

  // `Key`: kube::CompactKey or kube::ObjectKey.
  template <typename Key>
  std::pair<Iterator, Iterator> Named(const Key& name) const {
    return pods_.equal_range(name);
  }
  template <typename Key>
  Iterator Find(const Key& name, std::string_view uid) const {
    const auto [first, last] = Named(name);
    const Iterator at = std::find_if(first, last, [&](const GpuPod& pod) { return pod.uid == uid; });
    return at == last ? end() : at;
  }

  // In the place of what was known of it.
  void Put(GpuPod pod) {
    const Iterator at = Find(pod.key, pod.uid);
    if (at != end()) pods_.erase(at);
    pods_.insert(std::move(pod));
  }
  Iterator Erase(Iterator pod) { return pods_.erase(pod); }

 private:
  Pods pods_;
};

}  // namespace grus
