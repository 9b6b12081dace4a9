// SPDX-License-Identifier: Apache-2.0
// Since when the tries of a TrialJob's trials hold GPUs, and until when.
//
// While they do, it goes by a clock that does not jump, once it was seen. When they do not any more, it goes by what
// their pods said of their end, so that news that come late cost nothing; of pods that went without a word it is until
// their absence was seen. So it is never less than they held, to within the clocks of the cluster's machines. Those
// count whole seconds, and what is said of an end is a second more.
// What is kept here is exactness: whoever begins without it counts from what the pods say that are there still, or the
// status, whichever is more: the wall clock of this machine may be behind.
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
  // A worker that is in the cluster no more, as it was last.
  void NoteGone(const std::string& trial, const kube::Pod& worker);
  // Sets what `run` says of its holding. `written`: the trial in the status; null: it is not there. `made`: when this
  // process made its child, if it did: the wall clock may be ahead of the cluster's.
  void SetHeld(const std::string& trial, const api::Trial* written, std::optional<kube::TimePoint> made,
               const kube::Clock& clock, TrialRun& run);
  void Forget(const std::string& trial);

 private:
  struct Held {
    std::string child_uid;
    kube::TimePoint since;
    kube::Time bound;  // By the cluster's clock.
    std::int64_t spent_before = 0;
    kube::TimePoint seen;      // When that was found out,
    kube::WallTime seen_wall;  // which shows whether the wall clock has jumped since.
    bool is_behind = false;    // By the wall clock its pods were yet to be bound then, so it is behind theirs.
  };
  struct Gone {
    std::optional<kube::Time> first_bound, last_end;
    bool has_unknown_end = false;
  };
  std::map<std::string, Held> held_;  // By trial, both.
  std::map<std::string, Gone> gone_;
};

}  // namespace grus
