// SPDX-License-Identifier: Apache-2.0
// What the models of a cluster share: time, the server, their delays, and how they write.
//
// Models read the server's state when they act, not a cache: where a real controller sees a change late, its model acts
// after a lag. (Only the scheduler has a memory of its own.) Not thread-safe, like Simulation.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "clientlib/model/json.h"
#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/simulation/simulation.h"

namespace kube::testing {

// The delay is drawn anew each time.
struct Lag {
  Duration least, most;
};

struct FakeClusterOptions {
  using ms = std::chrono::milliseconds;
  using s = std::chrono::seconds;

  // From a change to the pass over it.
  Lag statefulset{ms(1), ms(30)}, job{ms(1), ms(30)}, garbage{ms(1), ms(30)}, namespaces{ms(1), ms(30)},
      nodes{ms(1), ms(30)}, kubelet{ms(1), ms(30)};
  Lag quotas{ms(1), s(1)};             // From a pod's end until the quota no longer counts it.
  Lag events{ms(1), ms(30)};           // From a controller's action to its event.
  Lag scheduler_watch{ms(0), ms(20)};  // From a change to the scheduler's knowledge of it.
  Lag scheduling{ms(1), ms(5)};        // Of one pod; they are scheduled one after the other.
  Lag binding{ms(1), ms(30)};          // From the decision to the bound pod; meanwhile other pods are scheduled.
  Lag start{ms(10), s(1)};             // From bound to Running.
  Lag relist{ms(1), s(1)};             // From a container's start or crash to the kubelet's knowledge of it.
  Lag stop{ms(1), s(2)};               // From deleted to gone, at most the pod's grace period.
  Lag pod_collection{s(40), s(60)};    // From a node's removal to its pods' removal.
  int late_ready_one_in = 4;           // One in this many pods is Running for a while before it is Ready.
  Duration job_batch_period = s(1);    // How long the job controller gathers changes of pods.
};

struct ClusterContext {
  Simulation& simulation;
  FakeApiServer& server;
  FakeClusterOptions& options;

  std::string Now() const;  // As in the API, in whole seconds.
  Duration Draw(const Lag& lag) const { return simulation.Between(lag.least, lag.most); }

  // Reads the object, has `change` change it and writes it, again after a conflict. `change` returns false if there is
  // nothing to write. False if the server refused; true also if the object is gone or has another UID.
  bool Modify(std::string_view resource, const ObjectKey& key, std::string_view uid, std::string_view subresource,
              const std::function<bool(Json&)>& change) const;
  // Likewise, deletes only the object with that UID. A `grace` below zero is the object's own.
  bool DeleteObject(std::string_view resource, const Json& object, int grace = -1,
                    std::string_view propagation = {}) const;
};

// The loop of a controller: reconciles each key after its delay, and once however often it was added.
class WorkLoop {
 public:
  // `reconcile` returns false to be called again: after the least of `retries`, doubling up to the most, as in most
  // controllers.
  WorkLoop(const ClusterContext& context, const Lag& lag, std::function<bool(const ObjectKey&)> reconcile,
           Lag retries = {std::chrono::milliseconds(5), std::chrono::seconds(1000)});

  void Add(const ObjectKey& key) { AddAfter(key, context_.Draw(lag_)); }
  // If a pass over the key is due sooner, there is only that one: it must add the key again if it still has to wait.
  void AddAfter(const ObjectKey& key, Duration delay);

 private:
  void Run(const ObjectKey& key);

  const ClusterContext& context_;
  const Lag& lag_;
  const std::function<bool(const ObjectKey&)> reconcile_;
  const Lag retries_;
  std::map<ObjectKey, TimePoint> due_;
  std::map<ObjectKey, int> failures_;
};

}  // namespace kube::testing
