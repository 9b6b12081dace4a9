// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/resources.h"

#include <algorithm>
#include <limits>

namespace grus {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// Users may write any number: sums stop at what 64 bits hold, and at the same below zero.
std::int64_t Sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return a > 0 ? kMost : -kMost;
  return std::max(sum, -kMost);
}

constexpr std::string_view kAccelerators[] = {
    kGpuResource,     "nvidia.com/mig-",       "nvidia.com/gpu.shared", "amd.com/gpu",   "gpu.intel.com/i915",
    "gpu.intel.com/xe", "google.com/tpu",        "habana.ai/gaudi",       "aws.amazon.com/neuron", "huawei.com/Ascend",
    "cambricon.com/", "hygon.com/dcu",         "metax-tech.com/gpu",    "qualcomm.com/qaic",
};

}  // namespace

bool IsAccelerator(std::string_view resource) {
  return std::any_of(std::begin(kAccelerators), std::end(kAccelerators),
                     [resource](std::string_view known) { return resource.starts_with(known); });
}

std::string_view Resources::Accelerator() const {
  for (const auto& [name, amount] : extended) {
    if (amount > 0 && IsAccelerator(name)) return name;
  }
  return {};
}

std::int64_t Resources::Extended(std::string_view name) const {
  for (const auto& [key, amount] : extended) {
    if (key == name) return amount;
  }
  return 0;
}

void Resources::AddExtended(std::string_view name, std::int64_t amount) {
  for (auto& [key, value] : extended) {
    if (key == name) {
      value = Sum(value, amount);
      return;
    }
  }
  extended.emplace_back(name, amount);
}

Resources& Resources::operator+=(const Resources& other) {
  milli_cpu = Sum(milli_cpu, other.milli_cpu);
  memory_bytes = Sum(memory_bytes, other.memory_bytes);
  pods = Sum(pods, other.pods);
  for (const auto& [name, amount] : other.extended) AddExtended(name, amount);
  return *this;
}

Resources& Resources::operator-=(const Resources& other) {
  milli_cpu = Sum(milli_cpu, -other.milli_cpu);
  memory_bytes = Sum(memory_bytes, -other.memory_bytes);
  pods = Sum(pods, -other.pods);
  for (const auto& [name, amount] : other.extended) AddExtended(name, -amount);
  return *this;
}

void Resources::RaiseTo(const Resources& other) {
  milli_cpu = std::max(milli_cpu, other.milli_cpu);
  memory_bytes = std::max(memory_bytes, other.memory_bytes);
  pods = std::max(pods, other.pods);
  for (const auto& [name, amount] : other.extended) {
    if (const std::int64_t have = Extended(name); have < amount) {
      AddExtended(name, -have);
      AddExtended(name, amount);
    }
  }
}

int CopiesThatFit(const Resources& allocatable, const Resources& used, const Resources& request, int at_most) {
  std::int64_t copies = at_most;
  const auto limit = [&copies](std::int64_t free, std::int64_t each) {
    if (each > 0) copies = std::min(copies, std::max<std::int64_t>(free, 0) / each);
  };
  limit(Sum(allocatable.milli_cpu, -used.milli_cpu), request.milli_cpu);
  limit(Sum(allocatable.memory_bytes, -used.memory_bytes), request.memory_bytes);
  limit(Sum(allocatable.pods, -used.pods), request.pods);
  for (const auto& [name, each] : request.extended) {
    limit(Sum(allocatable.Extended(name), -used.Extended(name)), each);
  }
  return static_cast<int>(copies);
}

}  // namespace grus
