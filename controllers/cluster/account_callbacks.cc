// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/account_callbacks.h"

namespace grus {

void AccountCallbacks::Tell(const Effects& effects) const {
  for (const std::string& gang : effects.urgent) {
    for (const auto& tell : on_standing_) tell(gang, true);
  }
  for (const std::string& gang : effects.stale) {
    for (const auto& tell : on_standing_) tell(gang, false);
  }
  for (const std::string& owner : effects.yielding) {
    for (const auto& tell : on_yield_) tell(owner);
  }
  for (const auto& tell : on_freed_) {
    if (effects.has_freed) tell();
  }
  for (const auto& tell : on_queues_) {
    if (effects.has_used || effects.has_freed) tell();
  }
}

}  // namespace grus
