// SPDX-License-Identifier: Apache-2.0
// The conditions that tools wait for (kstatus): Ready, and whether an object is on its way there or stuck. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/condition.h"

namespace grus {

enum class Standing {
  kReady,
  kReconciling,  // On its way.
  kStalled,      // Only a change from outside helps.
  kNotWanted,    // Not ready, as the user wants it.
  kSuspended,    // Likewise, until it is resumed.
  kUnknown,      // Ready is "Unknown".
};

// Writes the conditions of one object in one pass.
class Kstatus {
 public:
  // `conditions` must outlive it.
  Kstatus(std::vector<kube::Condition>& conditions, std::int64_t generation, const kube::Time& now)
      : conditions_(conditions), generation_(generation), now_(now) {}

  // Sets Ready, Reconciling and Stalled, of which at most one is true; and Suspended to "True" for kSuspended.
  void Say(Standing standing, std::string_view reason, const std::string& message);
  // nullopt: "Unknown".
  void Set(std::string_view type, std::optional<bool> is_true, std::string_view reason, const std::string& message);
  // Sets Suspended to "False", if there is such a condition.
  void SayResumed();

 private:
  std::vector<kube::Condition>& conditions_;
  const std::int64_t generation_;
  const kube::Time now_;
};

}  // namespace grus
