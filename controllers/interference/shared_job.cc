// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/shared_job.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "clientlib/base/lower_case.h"

namespace grus {
namespace {

constexpr std::string_view kSeparators = " :(_@/-=";
constexpr std::size_t kMaxDigits = 9;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string Without(const std::string& name, std::size_t begin, std::size_t end) {
  for (; begin > 0 && kSeparators.find(name[begin - 1]) != std::string_view::npos; --begin) {
    if (name[begin - 1] == '(' && end < name.size() && name[end] == ')') ++end;
  }
  return name.substr(0, begin) + name.substr(end);
}

// Reads the number at `begin`; 0 if there is none.
double NumberAt(std::string_view name, std::size_t begin, std::size_t& end) {
  end = begin;
  while (end < name.size() && IsDigit(name[end])) ++end;
  if (end == begin || end - begin > kMaxDigits) return 0;
  int number = 0;
  std::from_chars(name.data() + begin, name.data() + end, number);
  return number;
}

// Behind a word for "batch size".
std::optional<WorkloadFamily> NamedBatch(const std::string& name) {
  static constexpr std::array<std::string_view, 5> kWords = {"batchsize", "batch size", "batch", "bs", "b"};
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](char c) { return c == '_' || c == '-' ? ' ' : kube::LowerCase(c); });
  for (const std::string_view word : kWords) {
    for (std::size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
      if (at == 0 || IsLetter(lower[at - 1]) || IsDigit(lower[at - 1])) continue;
      std::size_t begin = at + word.size(), end = 0;
      while (begin < lower.size() && (lower[begin] == ' ' || lower[begin] == '=' || lower[begin] == ':')) ++begin;
      const double number = NumberAt(lower, begin, end);
      if (number > 0) return WorkloadFamily{Without(name, at, end), number};
    }
  }
  return std::nullopt;
}

// The number that the name ends with, behind a separator.
std::optional<WorkloadFamily> LastNumber(const std::string& name) {
  std::size_t begin = name.size(), end = 0;
  while (begin > 0 && IsDigit(name[begin - 1])) --begin;
  if (begin == 0 || kSeparators.find(name[begin - 1]) == std::string_view::npos) return std::nullopt;
  const double number = NumberAt(name, begin, end);
  std::string family = Without(name, begin, name.size());
  if (number <= 0 || family.empty()) return std::nullopt;
  return WorkloadFamily{std::move(family), number};
}

}  // namespace

std::optional<std::string> WhyNoSpeed(double speed) {
  if (!std::isfinite(speed) || speed <= 0) return "is not a positive number; leave out a run that did not work";
  if (speed < kMinSpeedShare) {
    return "is less than a thousandth of the solo speed; give the speed as a share of it, such as 0.85, and leave out "
           "a run that did not work";
  }
  if (speed > kMaxSpeedShare) {
    return "is more than the solo speed; give the speed as a share of it, such as 0.85, and measure both alike";
  }
  return std::nullopt;
}

std::optional<std::string> WhyNoFeatures(const SoloFeatures& solo) {
  for (const auto& share : {solo.gpu_utilization, solo.memory_bandwidth}) {
    if (share && !(*share >= 0 && std::isfinite(*share))) return "a utilisation is 0 or more";
  }
  for (const auto& amount : {solo.memory_mebibytes, solo.step_milliseconds, solo.batch_size}) {
    if (amount && !(*amount > 0 && std::isfinite(*amount))) return "memory, step time and batch size are above 0";
  }
  return std::nullopt;
}

SharedJob WithPossibleFeatures(SharedJob job) {
  for (const auto feature : kSoloFeatures) {
    SoloFeatures alone;
    alone.*feature = job.solo.*feature;
    if (WhyNoFeatures(alone)) (job.solo.*feature).reset();
  }
  return job;
}

WorkloadFamily FamilyOf(const SharedJob& job) {
  WorkloadFamily family{job.family.empty() ? job.fingerprint : job.family, 0};
  if (auto named = NamedBatch(family.name)) {
    family = *std::move(named);
  } else if (job.family.empty() && !job.solo.batch_size) {
    if (auto last = LastNumber(family.name)) family = *std::move(last);
  }
  if (job.solo.batch_size) family.batch_size = *job.solo.batch_size;
  return family;
}

}  // namespace grus
