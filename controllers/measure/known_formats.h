// SPDX-License-Identifier: Apache-2.0
// What cannot be read from the words of a line, but is known from the source of the framework that prints it; first of
// all, whose a rate is.
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

// An event of MLPerf: it has time stamps, and counts of all kinds, but its throughput.
bool IsEvent(std::string_view text);
// WeNet's "TRAIN Batch EPOCH/STEP": what stands behind the slash is the counter.
bool HasStepBehindSlash(std::string_view text);
// OpenCLIP prints MNIST's lines, but counts the samples of all processes.
bool IsOpenClip(std::string_view text);
// ESPnet's iter_time is that of loading.
bool IsIterationLoading(std::string_view text);

// "Total train batch size (w. parallel, distributed & accumulation) = 64": whether `label`, which is only the end of
// that, and the line are those of Hugging Face's Trainer. Its number counts all samples of an optimizer's step.
bool IsTrainersTotalBatch(std::string_view text, const Words& label);

}  // namespace grus
