// SPDX-License-Identifier: Apache-2.0
// What the words of a label or a unit mean for a job's speed: "ms/step", "SamplesPerSec", "elapsed time per
// iteration (ms)", "it/s", "img/sec per GPU". Words are English and in lower case, as Words makes them.
//
// Pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "controllers/measure/figures.h"
#include "controllers/measure/reading.h"

namespace grus {

struct Unit {
  Measure measure = Measure::kStepSeconds;
  double scale = 1;         // Factor from the number to the measure's own unit.
  bool is_inverse = false;  // Steps per second: the step time is its inverse.
  bool has_unit = true;     // False: the time's unit is not said.
  std::string_view per;     // The noun of the step.
};

bool IsStepNoun(std::string_view word);
bool IsTimeWord(std::string_view word);                  // "time", "cost", "duration", "latency".
bool IsByteNoun(std::string_view word);                  // "b", "mb", "bytes", "flops": a rate that is no job's speed.
std::optional<double> SecondsIn(std::string_view word);  // Of "ms": 0.001.

// The first "X per Y" among the words that is a speed or a step's time; in a label, only one at its end.
std::optional<Unit> FindUnit(const Words& words, bool is_label);

// "total steps: 1000", "max_train_steps: 1000", "save every steps: 100": no counter.
bool IsSetting(const Words& label);
double ThousandsIn(std::string_view unit);  // Of the "K" behind "Tokens/s: 65.1K": 1000; 1 if there is none.

// kGpu: "per GPU", "/device"; kProcess: "per worker", "per rank"; else kNotSaid.
Scope HolderIn(const Words& words);
// The same; or kJob: "total img/sec", "global batch size", but not "total loss, img/sec".
Scope ScopeInLabel(const Words& words);
// "data time", "optimizer step": of no whole step.
bool IsOfAPart(const Words& words);

}  // namespace grus
