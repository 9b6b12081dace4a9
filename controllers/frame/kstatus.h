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
  kStalled,      // Nothing but a change from outside helps.
  kAtRest,       // Not ready, as was asked for.
  kSuspended,    // Likewise, for now.
  kUnknown,      // Ready is "Unknown".
};

// Writes the conditions of one object in one pass.
class Kstatus {
 public:
  // `conditions` must outlive it.
  Kstatus(std::vector<kube::Condition>& conditions, std::int64_t generation, const kube::Time& now)
      : conditions_(conditions), generation_(generation), now_(now) {}

  // Ready, Reconciling and Stalled, of which one at most is true; and Suspended of one that is.
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
