// SPDX-License-Identifier: Apache-2.0
// Since when the tries of a TrialJob's trials hold GPUs, and until when.
//
// While pods hold GPUs, use the monotonic clock, from when the hold was first seen. When they no longer do, use the end
// times in their pods, so that late events cost nothing; for pods that vanished, the time when their absence was seen.
// So the result is never less than what they held, up to differences between the machines' clocks. Times in pods are
// whole seconds, so an end counts one second more.
// A cache: without it, a process counts from the remaining pods. If the status shows that the wall clock has jumped
// since they were bound, it goes on from what the status counted, and when.
//
// Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "clientlib/base/clock.h"
#include "clientlib/model/pod.h"
#include "controllers/trial/trial_view.h"

namespace grus {

class TrialHoldings {
 public:
  // The last state of a worker that is no longer in the cluster.
  void NoteGone(const std::string& trial, const kube::Pod& worker);
  // Sets what `run` says of its holding. `made`: when this process made its child, if it did: the wall clock may be
  // ahead of the cluster's.
  void SetHeld(const std::string& trial, const api::TrialJobStatus& status, std::optional<kube::TimePoint> made,
               const kube::Clock& clock, TrialRun& run);
  void Forget(const std::string& trial) { trials_.erase(trial); }
  // Forgets the trials that have held nothing.
  void DropEmpty();

 private:
  struct Held {
    std::string child_uid;
    kube::TimePoint since;
    kube::Time bound;  // By the cluster's clock.
    std::int64_t spent_before = 0;
    kube::TimePoint seen;      // When that was found out,
    kube::WallTime seen_wall;  // which shows whether the wall clock has jumped since.
    bool is_behind = false;    // The wall clock is behind the pods' clocks: by it they were bound in the future.
  };
  struct Gone {
    std::optional<kube::Time> first_bound, last_end;
    bool has_unknown_end = false;
  };
  struct Kept {
    std::optional<Held> held;
    Gone gone;
  };
  std::map<std::string, Kept> trials_;
};

}  // namespace grus
