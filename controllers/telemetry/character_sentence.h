// SPDX-License-Identifier: Apache-2.0
// The character of a job in one sentence, with the numbers that it rests on. Pure.
#pragma once

#include <string>

#include "controllers/telemetry/character.h"

namespace grus {

// Of all but `sentence` itself. It has no full stop, as conditions and events have none.
std::string SentenceOf(const Character& character, const BottleneckFinding& finding, const JobSeries& job);

}  // namespace grus
