// SPDX-License-Identifier: Apache-2.0
// Does a row of values repeat itself, and after how many?
//
// Candidates are the peaks of the autocorrelation of the values without their trend. Each is then checked window by
// window: what lies in a window of one period must come again one period later, a little earlier or later. That holds
// although the length of cycles varies, and a burst that came once does not carry the rest. Where few cycles were seen,
// they must also agree better than those of rows that are random and have the same values and the same inertia.
//
// Pure functions: the random rows are always the same ones. O(n * kMostLag) time, O(n) memory.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace grus {

struct Repetition {
  double period = 0;     // Values from one cycle to the next.
  double agreement = 0;  // The median correlation of a cycle with the next one; 1 is equal.
  double count = 0;      // Cycles in the row, the last one in part.
};

inline constexpr std::size_t kLeastLag = 4;   // Below, a cycle has no shape.
inline constexpr std::size_t kMostLag = 128;  // Longer cycles are searched in coarser rows.
inline constexpr double kFewestCycles = 2.8;  // Three, the edges of which may be cut.

// The shortest period, from kLeastLag to kMostLag values, with which the row repeats itself. None: it does not.
std::optional<Repetition> FindRepetition(std::span<const float> values);

// How well it repeats itself with about this period, which is measured more exactly. None: it does not.
std::optional<Repetition> CheckRepetition(std::span<const float> values, double period);

}  // namespace grus
