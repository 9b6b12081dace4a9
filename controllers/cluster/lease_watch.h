// SPDX-License-Identifier: Apache-2.0
// Who holds the Leases of one name: other programs whose start and end matter to us.
//
// Watches only leases of that name, in named namespaces: each node renews one of its own every few seconds, and what
// anybody may write in a namespace of his own says nothing about the cluster. The manager does not wait for this cache,
// since a cluster may hide leases from us. Times in a Lease are for people: a lease that has not changed for its own
// duration, or for a minute, on our clock, has lost its holder (as in clientlib/runtime/lease_record.h). Thread-safe.
// Callbacks run on a thread of the informer, without a lock.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/base/log.h"
#include "clientlib/cache/informer.h"
#include "clientlib/client/client.h"
#include "clientlib/model/coordination_v1.h"

namespace grus {

// kube-scheduler's, by default and wherever kubeadm made the cluster.
inline constexpr char kSchedulerLease[] = "kube-scheduler", kSchedulerLeaseNamespace[] = "kube-system";
// The lease of the controllers of kubernetes-sigs/scheduler-plugins (cmd/controller/app/server.go).
inline constexpr char kSchedulerPluginsLease[] = "sched-plugins-controllers";

class LeaseWatch {
 public:
  // REQUIRES: `namespaces` is not empty.
  LeaseWatch(kube::Client& client, std::vector<std::string> namespaces, const std::string& name,
             const kube::Clock& clock, const kube::Log& log);

  // Called when the holder changes, but not when a lease expires. REQUIRES: before Start().
  void OnChange(std::function<void()> callback) { on_change_.push_back(std::move(callback)); }

  // Returns whether there is such a lease, and watches until Stop(). kForbidden: leases are hidden from us, and nothing
  // is watched. Blocks for one request for each namespace, and until the watches have begun.
  kube::Result<bool> Start(std::stop_token stop);
  void Stop();  // No callback comes after this.

  // As last seen, even if the lease has expired since; of several, the one that expires last. Empty: nobody, or leases
  // are hidden from us.
  std::string holder() const;
  // When the lease expires if it is not renewed; nullopt: nobody holds it now.
  std::optional<kube::TimePoint> held_until() const;

 private:
  struct Holder {
    std::string identity;
    kube::TimePoint ends_at{};
  };
  void OnLease(const kube::Change& change);

  kube::Client& client_;
  const std::vector<std::string> namespaces_;
  const std::string selector_;
  const kube::Clock& clock_;
  std::vector<std::function<void()>> on_change_;

  mutable std::mutex mutex_;                             // Guards holders_.
  std::unordered_map<kube::ObjectKey, Holder> holders_;  // By lease.
  kube::Informer informer_;                              // Last: it calls OnLease() until it is destroyed.
};

}  // namespace grus
