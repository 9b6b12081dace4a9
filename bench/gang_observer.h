// SPDX-License-Identifier: Apache-2.0
// The state of the cluster as a gang bench sees it, from its own watches: pods, PodGroups, namespaces. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "crds/types/pod_group.h"
#include "tests/kit/observer.h"
#include "tests/kit/pods.h"

namespace bench {

using kit::IsBound;
using kit::IsGated;
using kit::IsUnschedulable;

// Pods of one namespace.
struct PodCounts {
  int all = 0, gated = 0, bound = 0, running = 0, succeeded = 0;
};

struct GroupState {
  std::string phase, reason, message;  // Reason and message of its condition Ready.
  int attempts = 0;
};

class GangObserver {
 public:
  GangObserver(kube::Client& client, const kube::Clock& clock, const kube::Log& log);
  kube::Status Start();

  // Each returns false if `until` came first. `reached` is asked after each change, with our lock held.
  bool WaitForPods(const std::string& ns, const std::function<bool(const PodCounts&)>& reached, kube::TimePoint until);
  bool WaitForGroups(const std::string& ns,
                     const std::function<bool(const std::map<std::string, GroupState>&)>& reached,
                     kube::TimePoint until);
  bool WaitForNoNamespace(const std::string& ns, kube::TimePoint until);

  PodCounts Pods(const std::string& ns);
  GroupState Group(const std::string& ns, const std::string& name);  // Empty: not there.

  // What happened in one namespace since Record(), one by one. `pod` is null where a PodGroup changed.
  struct Event {
    std::shared_ptr<const kube::Pod> pod;
    bool is_gone = false;
    kube::TimePoint at;
  };
  void Record(const std::string& ns);  // Empty: no more. What was recorded before is dropped.
  std::optional<Event> Next(kube::TimePoint until);
  // How often all pods were listed: no revision is missed while that stays the same.
  std::uint64_t pod_lists() const { return observer_.Of(kube::KindOf<kube::Pod>()).stats().lists; }

 private:
  void OnPod(const kube::Change& change);
  void OnGroup(const kube::Change& change);
  void Count(const kube::Pod& pod, int by);
  bool Wait(const std::function<bool()>& reached, kube::TimePoint until);

  const kube::Clock& clock_;
  std::mutex mutex_;                                                   // Guards what follows, up to observer_.
  std::map<std::string, PodCounts> counts_;                            // By namespace.
  std::map<std::string, std::map<std::string, GroupState>> by_group_;  // By namespace, then name.
  std::string recorded_;
  std::deque<Event> events_;
  kit::Observer observer_;  // Last: it tells of changes until it is gone.
};

}  // namespace bench
