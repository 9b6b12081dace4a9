// SPDX-License-Identifier: Apache-2.0
// How long a training is to be, as its command says: "--epochs 90", "--max_steps=1000". Pure functions.
#pragma once

#include <span>
#include <string>

namespace grus {

struct StatedTotals {
  double epochs = 0, steps = 0;  // 0: not said.
};

// By the names that options of training programs commonly have. The last one counts, as in argument parsers.
StatedTotals TotalsOf(std::span<const std::string> command);

}  // namespace grus
