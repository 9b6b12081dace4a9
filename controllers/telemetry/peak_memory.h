// SPDX-License-Identifier: Apache-2.0
// How much GPU memory a training will have used at most when it ends, from its first cycles.
//
// Memory that has stopped growing gets a small margin: allocators take a little more when blocks are broken up. Memory
// that grows ever more slowly is extended by what such growth adds. Memory that grows steadily has no peak that could
// be known, and gets no number. A peak that first comes later, as in an evaluation each ten epochs, cannot be foreseen.
// Pure functions.
#pragma once

#include <optional>

#include "controllers/telemetry/series.h"

namespace grus {

// Bytes. `from`: Unix time when the first cycle began. `limit`: bytes there are; 0 if unknown. None: less than three
// cycles were seen, or it cannot be told.
std::optional<double> PredictPeakMemory(const Series& memory, double from, double period_s, double limit);

}  // namespace grus
