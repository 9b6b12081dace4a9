// SPDX-License-Identifier: Apache-2.0
// Words that say that a line is not about training: "Validation DataLoader 0:", "Epoch(val)", "Loading shards".
//
// Pure functions.
#pragma once

#include <cstddef>
#include <string_view>

#include "controllers/measure/reading.h"

namespace grus {

constexpr std::size_t kLongestHead = 96;  // Bytes in front of a number in which a word can name its phase.

// "validation", "loading", ...; in lower case.
bool IsPhaseWord(std::string_view word);

// What the first such word among the last kLongestHead bytes of `head` says; training if there is none. `head` is the
// beginning of `text`; the word after "val" may show that it only names a metric ("val loss"). Parts of paths and names
// do not count as words.
Phase PhaseOf(std::string_view head, std::string_view text);

}  // namespace grus
