// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace grus {

// When members of a gang are nominated for their nodes before their gates are lifted.
enum class Nominations {
  kAuto,    // While a foreign pod could take a place.
  kAlways,
  kNever,   // The scheduler may give a place away while a gang is on its way to it.
};

}  // namespace grus
