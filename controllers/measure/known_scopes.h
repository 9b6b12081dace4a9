// SPDX-License-Identifier: Apache-2.0
// Whose rate a program prints: its words say so, or else the source of a framework whose format it is.
//
// Pure functions.
#pragma once

#include <string_view>

#include "controllers/measure/figures.h"
#include "controllers/measure/reading.h"

namespace grus {

// Of a rate of samples or tokens on that line: the words before it and behind it (may be null) say it, or else the
// format is a known one.
Scope ScopeOfRate(std::string_view text, Measure measure, const Words& label, const Words* behind);

// "Total train batch size (w. parallel, distributed & accumulation) = 64": whether `label`, which is only the end of
// that, and the line are those of Hugging Face's Trainer. Its number counts all samples of an optimizer's step.
bool IsTrainersTotalBatch(std::string_view text, const Words& label);

}  // namespace grus
