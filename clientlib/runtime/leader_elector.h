// SPDX-License-Identifier: Apache-2.0
// Leader election over a coordination.k8s.io Lease, with the semantics of client-go (rules E1-E5, E7).
//
// A peer's lease expires by our own monotonic clock, counted from the last change of the record that we saw: the peers'
// clocks are never trusted (lease_record.h). Run() blocks on the caller's thread. Leadership that cannot be renewed
// within `renew_deadline` is lost, even while a request hangs: the stop token given to the work fires, and Run()
// returns an error. Thread-safe: IsLeader(), Holder() and CheckHealth().
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "clientlib/base/log.h"
#include "clientlib/client/client.h"

namespace kube {

struct LeaderElectionOptions {
  ObjectKey lease;
  std::string identity;  // hostname_uuid
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);
};

class LeaderElector {
 public:
  // The leader's work. `stop` fires when the work has to end, for any reason. `lost` fires when leadership is lost,
  // possibly after `stop`: the work must then end at once.
  using Work = std::function<void(std::stop_token stop, std::stop_token lost)>;

  // `client` should use HttpPool::kLease and a timeout of 0.4 renew deadlines: see Connection.
  // kInvalidArgument unless lease_duration > renew_deadline > 1.2 * retry_period.
  static Result<std::unique_ptr<LeaderElector>> Create(Client& client, const Clock& clock, const Log& log,
                                                       LeaderElectionOptions options);
  ~LeaderElector();

  // Waits to become leader, then calls `lead` on another thread, and renews the lease until `lead` has returned, so
  // that it can drain after a stop. Then gives the lease back (holder "", one second), unless it is lost. Returns ok,
  // also if the stop comes before leadership; an error if leadership was lost or `lead` threw. REQUIRES: one call at a
  // time.
  Status Run(std::stop_token stop, const Work& lead);

  bool IsLeader() const;       // False as soon as the renew deadline has passed.
  std::string Holder() const;  // As last seen, empty if none.
  // Fails when `lead` still runs although the lease was not renewed for its duration plus `tolerance`: the work ignores
  // its stop token, and the liveness probe should restart the process.
  Status CheckHealth(Duration tolerance) const;

 private:
  struct Impl;
  explicit LeaderElector(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kube
