// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/resources.h"

#include <algorithm>
#include <limits>

#include "clientlib/model/quantity.h"
#include "controllers/policy/claimed_gpus.h"
#include "controllers/policy/gpu_parts.h"

namespace grus {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// Users may write any number: sums saturate at the largest 64-bit value, and at its negative.
std::int64_t Sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return a > 0 ? kMost : -kMost;
  return std::max(sum, -kMost);
}

std::int64_t Product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return (a > 0) == (b > 0) ? kMost : -kMost;
  return std::max(product, -kMost);
}

constexpr std::string_view kAccelerators[] = {
    kGpuResource,
    "nvidia.com/gpu.shared",
    "amd.com/gpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "google.com/tpu",
    "habana.ai/gaudi",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neurondevice",
    "aws.amazon.com/neuroncore",
    "cambricon.com/mlu",
    "hygon.com/dcu",
    "hygon.com/dcunum",
    "metax-tech.com/gpu",
    "qualcomm.com/qaic",
};
constexpr std::string_view kMigPrefix = "nvidia.com/mig-", kAscendPrefix = "huawei.com/Ascend";
// Channels between nodes, of which a node has thousands beside its GPUs.
constexpr std::string_view kComputeDomain = "compute-domain-";
constexpr std::size_t kPrefixSize = std::string_view(kDeviceClassPrefix).size();

using Amounts = std::vector<std::pair<std::string, std::int64_t>>;

constexpr std::size_t kFew = 4;  // Amounts, for which a search each is faster than going through all.

std::string_view NameOf(const Amounts::value_type& amount) { return amount.first; }

// What is in `b` combined with what is in `a`, or 0; and the rest of `a`. Without zeros. In linear time: a pod may ask
// for tens of thousands of resources, and nobody else must wait for that.
template <typename F>
Amounts Merged(const Amounts& a, const Amounts& b, F combine) {
  Amounts merged;
  merged.reserve(a.size() + b.size());
  auto left = a.begin(), right = b.begin();
  while (left != a.end() || right != b.end()) {
    const bool has_left = left != a.end() && (right == b.end() || left->first <= right->first);
    const bool has_right = right != b.end() && (left == a.end() || right->first <= left->first);
    const std::int64_t own = has_left ? left->second : 0, amount = has_right ? combine(own, right->second) : own;
    if (amount != 0) merged.emplace_back(has_left ? left->first : right->first, amount);
    if (has_left) ++left;
    if (has_right) ++right;
  }
  return merged;
}

}  // namespace

bool IsAccelerator(std::string_view resource) {
  if (std::ranges::find(kAccelerators, resource) != std::end(kAccelerators) || resource == kGpusByClaims) return true;
  if (resource.starts_with(kMigPrefix)) return true;
  if (resource.starts_with(kDeviceClassPrefix)) return !resource.substr(kPrefixSize).starts_with(kComputeDomain);
  // "Ascend910", "Ascend310P", and not "Ascend910-memory".
  return resource.starts_with(kAscendPrefix) &&
         resource.substr(kAscendPrefix.size()).find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") ==
             std::string_view::npos;
}

std::string_view Resources::Accelerator() const {
  for (const auto& [name, amount] : extended) {
    if (amount > 0 && (IsAccelerator(name) || IsGpuPart(name))) return name;
  }
  return {};
}

std::int64_t Resources::Extended(std::string_view name) const {
  const auto at = std::ranges::lower_bound(extended, name, {}, NameOf);
  return at != extended.end() && at->first == name ? at->second : 0;
}

void Resources::AddExtended(std::string_view name, std::int64_t amount) {
  const auto at = std::ranges::lower_bound(extended, name, {}, NameOf);
  if (at == extended.end() || at->first != name) {
    if (amount != 0) extended.emplace(at, name, amount);
  } else if ((at->second = Sum(at->second, amount)) == 0) {
    extended.erase(at);
  }
}

Resources& Resources::AddTimes(std::int64_t sign, const Resources& other) {
  milli_cpu = Sum(milli_cpu, sign * other.milli_cpu);
  memory_bytes = Sum(memory_bytes, sign * other.memory_bytes);
  pods = Sum(pods, sign * other.pods);
  if (other.extended.size() <= kFew) {
    for (const auto& [name, amount] : other.extended) AddExtended(name, sign * amount);
  } else {
    extended = Merged(extended, other.extended, [sign](auto own, auto added) { return Sum(own, sign * added); });
  }
  return *this;
}

Resources& Resources::operator*=(std::int64_t copies) {
  milli_cpu = Product(milli_cpu, copies);
  memory_bytes = Product(memory_bytes, copies);
  pods = Product(pods, copies);
  for (auto& [name, amount] : extended) amount = Product(amount, copies);
  return *this;
}

void Resources::RaiseTo(const Resources& other) {
  milli_cpu = std::max(milli_cpu, other.milli_cpu);
  memory_bytes = std::max(memory_bytes, other.memory_bytes);
  pods = std::max(pods, other.pods);
  if (other.extended.empty()) return;
  extended = Merged(extended, other.extended, [](auto own, auto raised) { return std::max(own, raised); });
}

std::string TextOf(const Resources& resources) {
  using kube::Quantity;
  std::string text;
  const auto add = [&](std::string_view name, const std::string& amount) {
    text += (text.empty() ? "" : ", ") + std::string(name) + " " + amount;
  };
  if (resources.milli_cpu > 0) add("cpu", kube::ToText(Quantity::OfMilli(resources.milli_cpu)));
  if (resources.memory_bytes > 0) {
    add("memory", kube::ToText(Quantity(resources.memory_bytes, Quantity::Format::kBinarySi)));
  }
  for (const auto& [name, amount] : resources.extended) {
    if (amount > 0 && !IsOnOneGpu(name) && !IsClaimedPart(name) && name != kMixedParts) {
      add(name, std::to_string(amount));
    }
  }
  return text;
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
    if (IsOfSingleGpus(name)) continue;
    limit(Sum(allocatable.Extended(name), -used.Extended(name)), each);
  }
  return CopiesOnGpus(allocatable, used, request, static_cast<int>(copies));
}

}  // namespace grus
