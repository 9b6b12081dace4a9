// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/awaited_victims.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace grus {
namespace {

constexpr std::size_t kMostVictims = 50'000;  // A few MiB.
constexpr kube::Duration kLatest = std::chrono::seconds(10);

}  // namespace

void AwaitedVictims::Note(const kube::Pod& pod, const std::map<std::string, PreemptCall::Victims>& victims) {
  Awaited awaited;
  for (const auto& [node, those] : victims) {
    awaited.count += those.uids.size();
    awaited.uids.emplace(node, those.uids);
  }
  const std::string uid(pod.metadata.uid);
  const std::lock_guard lock(mutex_);
  Erase(by_pod_.find(uid));
  if (awaited.count == 0 || awaited.count > kMostVictims) return;
  while (count_ + awaited.count > kMostVictims) {
    Erase(std::ranges::min_element(by_pod_, {}, [](const auto& one) { return one.second.order; }));
  }
  awaited.order = ++orders_;
  count_ += awaited.count;
  by_pod_.emplace(uid, std::move(awaited));
}

bool AwaitedVictims::AreEnough(const kube::Pod& pod, const IsEnough& is_enough) {
  std::string node;
  std::vector<std::string> uids;
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_pod_.find(std::string(pod.metadata.uid));
    if (found == by_pod_.end()) return false;
    Awaited& awaited = found->second;
    // The scheduler takes the nomination back when it is told of no victims.
    if (!pod.status.nominated_node_name.empty()) awaited.node = pod.status.nominated_node_name.str();
    const auto there = awaited.uids.find(awaited.node);
    if (there == awaited.uids.end()) return false;
    const kube::TimePoint now = clock_.Now();
    if (!awaited.since) awaited.since = now;
    if (now - *awaited.since > kLatest) return false;
    node = awaited.node;
    uids = there->second;
  }
  return is_enough(node, uids);
}

void AwaitedVictims::Forget(const kube::Pod& pod) {
  const std::lock_guard lock(mutex_);
  Erase(by_pod_.find(std::string(pod.metadata.uid)));
}

void AwaitedVictims::Erase(Entries::iterator one) {
  if (one == by_pod_.end()) return;
  count_ -= one->second.count;
  by_pod_.erase(one);
}

}  // namespace grus
