// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/units.h"

#include <algorithm>
#include <array>

namespace grus {
namespace {

using std::string_view;

template <std::size_t N>
bool IsOneOf(string_view word, const std::array<string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<string_view, 13> kSteps = {"step",   "steps",     "it",         "its",   "iter",
                                                "iters",  "iteration", "iterations", "batch", "batches",
                                                "update", "updates",   "minibatch"};
constexpr std::array<string_view, 34> kSamples = {
    "sample",    "samples", "image",    "images",    "img",       "imgs",   "example", "examples", "sequence",
    "sequences", "seq",     "seqs",     "sentence",  "sentences", "record", "records", "item",     "items",
    "frame",     "frames",  "instance", "instances", "sent",      "pairs",  "row",     "rows",     "ex",
    "utt",       "utts",    "doc",      "clip",      "clips",     "video",  "videos"};
constexpr std::array<string_view, 6> kTokens = {"token", "tokens", "tok", "toks", "word", "words"};
constexpr std::array<string_view, 8> kGpus = {"gpu",  "gpus", "device", "devices",
                                              "chip", "core", "card",   "accelerator"};
constexpr std::array<string_view, 4> kProcesses = {"worker", "rank", "process", "replica"};
// Words that may stand between "total" and the number: "Total img/sec on 8 GPU(s)", "total_ips", "global batch size".
constexpr std::array<string_view, 14> kRateWords = {"per",   "on",    "ips",        "fps",     "sps",
                                                    "wps",   "tps",   "speed",      "rate",    "size",
                                                    "train", "batch", "throughput", "training"};
constexpr std::array<string_view, 4> kParts = {"local", "sub", "node", "non"};  // Before "total" and the like.
// What takes a part of a step, or feeds it.
constexpr std::array<string_view, 17> kPartsOfStep = {
    "data",    "dataloader", "dataloading", "loader", "loading",   "reader", "comm",  "communication", "allreduce",
    "forward", "backward",   "fwd",         "bwd",    "optimizer", "optim",  "micro", "checkpoint"};
constexpr std::array<string_view, 4> kAll = {"total", "global", "overall", "aggregate"};
constexpr std::array<string_view, 13> kBytes = {"b",    "kb",    "mb",   "gb",    "kib",   "mib",   "gib",
                                                "byte", "bytes", "flop", "flops", "tflop", "tflops"};
constexpr std::array<string_view, 5> kTimes = {"time", "timing", "cost", "duration", "latency"};

constexpr std::array<string_view, 11> kSettings = {"total", "max",    "every",        "warmup",   "save",   "logging",
                                                   "of",    "number", "accumulation", "interval", "skipped"};

// The measure of "X per second".
std::optional<Unit> PerSecond(string_view what) {
  Unit unit;
  if (IsStepNoun(what)) {
    unit.is_inverse = true;
    return unit;
  }
  if (IsOneOf(what, kSamples)) {
    unit.measure = Measure::kSamplesPerSecond;
    return unit;
  }
  if (IsOneOf(what, kTokens)) {
    unit.measure = Measure::kTokensPerSecond;
    return unit;
  }
  return std::nullopt;
}

// The same with thousands: "kit", "Mtok", and "k" as a word of its own.
std::optional<Unit> PerSecond(string_view what, string_view before) {
  double scale = 1;
  if (before == "k") scale = 1e3;
  if (before == "m") scale = 1e6;
  std::optional<Unit> unit = PerSecond(what);
  if (!unit && what.size() > 1 && (what[0] == 'k' || what[0] == 'm')) {
    scale = what[0] == 'k' ? 1e3 : 1e6;
    unit = PerSecond(what.substr(1));
  }
  if (unit) unit->scale = scale;
  return unit;
}

// Whether only words that can follow a unit come after it in a label: "img/sec per GPU", "img/sec on 8 GPU(s)", "(ms)".
bool EndsAfter(const Words& words, std::size_t at) {
  for (++at; at < words.size(); ++at) {
    const string_view word = words[at];
    const bool is_holder = IsOneOf(word, kGpus) || IsOneOf(word, kProcesses);
    if (word != "per" && word != "on" && !IsTimeWord(word) && !SecondsIn(word) && !is_holder) return false;
  }
  return true;
}

}  // namespace

bool IsStepNoun(string_view word) { return IsOneOf(word, kSteps); }
bool IsByteNoun(string_view word) { return IsOneOf(word, kBytes); }
bool IsTimeWord(string_view word) { return IsOneOf(word, kTimes); }

std::optional<double> SecondsIn(string_view word) {
  if (word == "s" || word == "sec" || word == "secs" || word == "second" || word == "seconds") return 1;
  if (word == "ms" || word == "msec" || word == "millisecond" || word == "milliseconds") return 1e-3;
  if (word == "us" || word == "usec" || word == "microseconds") return 1e-6;
  if (word == "min" || word == "mins" || word == "minute" || word == "minutes") return 60;
  if (word == "ns") return 1e-9;
  return std::nullopt;
}

std::optional<Unit> FindUnit(const Words& words, bool is_label) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] != "per" || (is_label && !EndsAfter(words, i + 1))) continue;
    const string_view right = words[i + 1];
    const string_view left = i > 0 ? words[i - 1] : string_view();
    const bool is_rate_next = i + 3 < words.size() && words[i + 2] == "per" && SecondsIn(words[i + 3]);
    if (IsStepNoun(right) && !is_rate_next) {  // "timing/steps_per_second" is no time of steps.
      Unit unit;
      unit.per = right;
      if (const std::optional<double> seconds = SecondsIn(left)) {
        unit.scale = *seconds;
        return unit;
      }
      const bool is_time = IsTimeWord(left) || (i + 2 < words.size() && IsTimeWord(words[i + 2]));
      if (!is_time) continue;
      const std::optional<double> seconds = SecondsIn(words.last());  // "... per iteration (ms)"
      unit.has_unit = seconds.has_value();
      unit.scale = seconds.value_or(1);
      return unit;
    }
    const std::optional<double> seconds = SecondsIn(right);
    if (!seconds) continue;
    std::optional<Unit> unit = PerSecond(left, i > 1 ? words[i - 2] : string_view());
    if (!unit) continue;
    unit->scale /= *seconds;
    return unit;
  }
  // "Total img/sec on 8 GPU(s)" is a total, though it names GPUs.
  const string_view last = words.last();
  Unit unit;
  unit.measure = Measure::kSamplesPerSecond;
  if (last == "ips" || last == "fps" || last == "sps") return unit;
  unit.measure = Measure::kTokensPerSecond;
  if (last == "wps" || last == "tps") return unit;
  unit.measure = Measure::kStepSeconds;
  unit.is_inverse = true;
  if (last == "ups") return unit;
  return std::nullopt;
}

bool IsSetting(const Words& label) {
  return label.last(1) == "per" || IsOneOf(label.last(1), kSettings) || IsOneOf(label.last(2), kSettings);
}

double ThousandsIn(string_view unit) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (unit.empty() || (unit.size() > 1 && is_letter(unit[1]))) return 1;
  const char letter = static_cast<char>(unit[0] | 0x20);
  return letter == 'k' ? 1e3 : letter == 'm' ? 1e6 : 1;
}

Scope HolderIn(const Words& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i - 1] != "per") continue;
    if (IsOneOf(words[i], kGpus)) return Scope::kGpu;
    if (IsOneOf(words[i], kProcesses)) return Scope::kProcess;
  }
  return Scope::kNotSaid;
}

Scope ScopeInLabel(const Words& words) {
  if (const Scope holder = HolderIn(words); holder != Scope::kNotSaid) return holder;
  for (std::size_t i = words.size(); i-- > 0;) {
    const string_view word = words[i];
    if (IsOneOf(word, kAll)) return i > 0 && IsOneOf(words[i - 1], kParts) ? Scope::kNotSaid : Scope::kJob;
    if (!IsStepNoun(word) && !IsOneOf(word, kSamples) && !IsOneOf(word, kTokens) && !IsOneOf(word, kGpus) &&
        !IsOneOf(word, kRateWords) && !SecondsIn(word)) {
      return Scope::kNotSaid;  // "total loss", "overall average speed", "global rank 0: speed"
    }
  }
  return Scope::kNotSaid;
}

bool IsOfAPart(const Words& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (IsOneOf(words[i], kPartsOfStep)) return true;
  }
  return false;
}

}  // namespace grus
