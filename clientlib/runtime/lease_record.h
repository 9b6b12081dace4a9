// SPDX-License-Identifier: Apache-2.0
// A Lease as one candidate sees it, and the writes that the candidate makes to it (rules E1, E2).
//
// Times in the record are only for people. Expiry counts from when this candidate saw the record change, on its own
// clock: a lease whose record does not change for its duration has expired. Each write carries the resource version it
// is based on, so that of two concurrent writes one fails. Not thread-safe.
#pragma once

#include <optional>
#include <string>

#include "clientlib/client/client.h"
#include "clientlib/model/coordination_v1.h"

namespace kube {

class LeaseRecord {
 public:
  LeaseRecord(Client& client, const Clock& clock, ObjectKey lease, std::string identity, Duration duration);

  // One try to get the lease, or to renew it. True: we hold it. False: another candidate does, or was faster.
  Result<bool> TryHold(std::stop_token stop);
  // Gives the lease back if we hold it: no holder, one second. Tries once. kConflict: the record had changed and was
  // read again; we still hold it.
  Status TryRelease(std::stop_token stop);

  const std::string& holder() const;  // As last seen; empty: none.
  bool IsOurs() const { return holder() == identity_; }
  // We hold it, or may hold it: a write of ours went out whose answer never came.
  bool MayBeOurs() const { return IsOurs() || is_outcome_unknown_; }
  // When another candidate's lease expires unless renewed; nullopt: no other candidate holds it.
  std::optional<TimePoint> expires_at() const;
  // When the last write that kept the lease ours was sent.
  TimePoint renewed_at() const { return renewed_at_; }

 private:
  Status Read(std::stop_token stop);
  void Observe(const Lease& lease);
  LeaseSpec Wanted() const;
  Result<bool> Write(const LeaseSpec& spec, std::stop_token stop);

  Client& client_;
  const Clock& clock_;
  const ObjectKey lease_;
  const std::string identity_;
  const Duration duration_;

  bool exists_ = false;  // From here on: the lease as last seen.
  std::string resource_version_;
  LeaseSpec spec_;
  TimePoint changed_at_{};
  TimePoint renewed_at_{};
  bool is_outcome_unknown_ = false;
};

}  // namespace kube
