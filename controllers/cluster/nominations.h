// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace grus {

// When members of a gang are nominated for their nodes before their gates are lifted. Where a cluster does not honour
// nominations, members are pinned to their nodes instead, at the same times.
enum class Nominations {
  kAuto,  // While a foreign pod could take a place.
  kAlways,
  kNever,  // The scheduler may give away a place before the gang's pod is bound there.
  kPin,    // Never: members are pinned, always.
};

// Whether places can be given to the scheduler.
enum class Safety {
  kSafe,
  kUndecided,  // The scheduler may be about to bind another's pod to one of the places.
  kTaken,      // A node is gone, does not take such pods any more, or has no room for all that is planned there.
};

}  // namespace grus
