// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/claimed_gpus.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "controllers/policy/gpu_parts.h"

namespace grus {
namespace {

using Amount = std::pair<std::string, std::int64_t>;

constexpr std::string_view kMemory = "ai.centauruscloud.io/gpu memory by claims (MiB)#";
constexpr std::string_view kMilli = "ai.centauruscloud.io/gpu-milli by claims#";
// "gpu part by claims 00300 000030720": thousandths and MiB, so that larger ones sort last.
constexpr std::string_view kPart = "gpu part by claims ";
constexpr std::size_t kMilliDigits = 5, kMemoryDigits = 9;
constexpr std::int64_t kMostAsked = 99'999;  // Users may ask for any number; no GPU has more than 1000.
constexpr std::int64_t kMostDevices = 1 << 20;
constexpr std::int64_t kMilliOfRack = 64 * kWholeGpuMilli;
constexpr std::size_t kMostGpus = 128;  // Of a node, as of a ResourceSlice; more are not read.
constexpr char kMilliCapacity[] = "milli", kMemoryCapacity[] = "memory";

std::string Padded(std::int64_t number, std::size_t digits) {
  const std::string text = std::to_string(number);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

std::string NameOf(const ClaimedPart& part) {
  return std::string(kPart) + Padded(part.milli, kMilliDigits) + " " + Padded(part.memory_mib, kMemoryDigits);
}

std::int64_t NumberAt(std::string_view text, std::size_t at, std::size_t digits) {
  std::int64_t number = 0;
  std::from_chars(text.data() + at, text.data() + at + digits, number);
  return number;
}

std::string NameOn(std::string_view prefix, std::string_view device) { return std::string(prefix).append(device); }

struct ClaimableGpu {
  std::string_view device;
  std::int64_t milli = 0, memory_mib = 0;  // Free.
  std::int64_t all_memory_mib = 0;

  std::int64_t MemoryFor(const ClaimedPart& part) const {
    return part.memory_mib >= kWholeGpuMemory ? all_memory_mib : part.memory_mib;
  }
  std::int64_t CopiesOf(const ClaimedPart& part) const {
    const std::int64_t memory = MemoryFor(part);
    return std::min(milli / part.milli, memory > 0 ? memory_mib / memory : milli / part.milli);
  }
  void Take(const ClaimedPart& part) {
    milli -= part.milli;
    memory_mib -= MemoryFor(part);
  }
};

// Those that start with the prefix.
std::pair<std::vector<Amount>::const_iterator, std::vector<Amount>::const_iterator> Range(const Resources& resources,
                                                                                          std::string_view prefix) {
  const auto begin = std::ranges::lower_bound(resources.extended, prefix, {}, &Amount::first);
  auto end = begin;
  while (end != resources.extended.end() && end->first.starts_with(prefix)) ++end;
  return {begin, end};
}

std::vector<ClaimableGpu> GpusOf(const Resources& allocatable, const Resources& taken) {
  std::vector<ClaimableGpu> gpus;
  const auto [begin, end] = Range(allocatable, kMilli);
  for (auto at = begin; at != end && gpus.size() < kMostGpus; ++at) {
    const std::string_view device = std::string_view(at->first).substr(kMilli.size());
    const std::string memory = NameOn(kMemory, device);
    const std::int64_t all = allocatable.Extended(memory);
    gpus.push_back({device, RestOf(at->second, std::max<std::int64_t>(taken.Extended(at->first), 0)),
                    RestOf(all, std::max<std::int64_t>(taken.Extended(memory), 0)), all});
  }
  return gpus;
}

// The largest first.
std::vector<ClaimedPart> PartsIn(const Resources& request) {
  std::vector<ClaimedPart> parts;
  const auto [begin, end] = Range(request, kPart);
  for (auto at = end; at != begin;) {
    --at;
    const std::size_t milli = kPart.size(), memory = milli + kMilliDigits + 1;
    parts.push_back({std::max<std::int64_t>(NumberAt(at->first, milli, kMilliDigits), 1),
                     NumberAt(at->first, memory, kMemoryDigits), at->second});
  }
  return parts;
}

// Takes each part from the first GPU that has room. False: one finds none, and `gpus` has changed all the same.
// `chosen`: by part and copy; may be null.
bool TakeAll(const std::vector<ClaimedPart>& parts, std::vector<ClaimableGpu>& gpus,
             std::vector<std::string_view>* chosen) {
  for (const ClaimedPart& part : parts) {
    std::int64_t left = part.count;
    for (ClaimableGpu& gpu : gpus) {
      for (; left > 0 && gpu.CopiesOf(part) > 0; --left) {
        gpu.Take(part);
        if (chosen != nullptr) chosen->push_back(gpu.device);
      }
    }
    if (left > 0) return false;
  }
  return true;
}

std::int64_t AmountOf(const kube::ResourceList& list, const char* name, std::int64_t otherwise) {
  const kube::Quantity* amount = kube::FindResource(list, name);
  return amount ? amount->Value() : otherwise;
}

std::int64_t MiBOf(std::int64_t bytes) { return bytes / (1 << 20) + (bytes % (1 << 20) > 0 ? 1 : 0); }

// Of what the list says of one GPU; what it does not name is all.
ClaimedPart PartIn(const kube::ResourceList& list) {
  ClaimedPart part;
  part.milli = std::clamp<std::int64_t>(AmountOf(list, kMilliCapacity, kWholeGpuMilli), 1, kMostAsked);
  if (kube::FindResource(list, kMemoryCapacity) != nullptr) {
    part.memory_mib = std::clamp<std::int64_t>(MiBOf(AmountOf(list, kMemoryCapacity, 0)), 1, kWholeGpuMemory);
  }
  return part;
}

}  // namespace

ClaimedPart PartAskedBy(const kube::ResourceList* capacity) {
  return capacity == nullptr ? ClaimedPart() : PartIn(*capacity);
}

ClaimedPart PartGivenBy(const kube::DeviceAllocation& allocation, std::int64_t memory_of_gpu) {
  ClaimedPart part = PartIn(allocation.consumed_capacity);
  const kube::Quantity* const said = kube::FindResource(allocation.consumed_capacity, kMilliCapacity);
  if (said != nullptr && said->Value() < 0) part.milli = kWholeGpuMilli;
  part.milli = std::min(part.milli, kWholeGpuMilli);
  // Of a claim that names no memory, the scheduler says how much the GPU has.
  if (memory_of_gpu > 0 && part.memory_mib >= memory_of_gpu) part.memory_mib = kWholeGpuMemory;
  part.given_mib = part.memory_mib < kWholeGpuMemory ? part.memory_mib : std::max<std::int64_t>(memory_of_gpu, 0);
  part.device = allocation.device.str();
  return part;
}

void AddClaimedPart(const ClaimedPart& part, Resources& request) {
  const std::int64_t count = std::clamp<std::int64_t>(part.count, 1, kMostDevices);
  request.AddExtended(kClaimedMilli, part.milli * count);
  request.AddExtended(NameOf(part), count);
  if (part.device.empty()) return;
  request.AddExtended(NameOn(kMilli, part.device), part.milli);
  request.AddExtended(NameOn(kMemory, part.device), part.given_mib);
}

void AddTooManyClaims(Resources& request) {
  request.AddExtended(kClaimedMilli, kMilliOfRack);
  request.AddExtended(NameOf(ClaimedPart{.milli = kMostAsked}), 1);
}

void AddClaimableGpu(std::string_view device, std::int64_t milli, std::int64_t memory_mib, Resources& allocatable) {
  const std::int64_t offered = std::clamp<std::int64_t>(milli, 0, kWholeGpuMilli);
  const std::string name = NameOn(kMilli, device);
  if (offered == 0 || allocatable.Extended(name) != 0) return;
  allocatable.AddExtended(kClaimedMilli, offered);
  allocatable.AddExtended(name, offered);
  allocatable.AddExtended(NameOn(kMemory, device), std::clamp<std::int64_t>(memory_mib, 0, kWholeGpuMemory));
}

std::int64_t ClaimedMilliOf(const Resources& request) {
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  if (request.extended.empty()) return 0;
  return std::clamp<std::int64_t>(request.Extended(kClaimedMilli), 0, kMost) +
         kWholeGpuMilli * std::clamp<std::int64_t>(request.Extended(kGpusByClaims), 0, kMost / kWholeGpuMilli);
}

bool AsksForClaimedGpus(const Resources& request) {
  return !request.extended.empty() && request.Extended(kClaimedMilli) > 0;
}

bool IsClaimedPart(std::string_view resource) { return resource.starts_with(kPart); }

int CopiesOnClaimedGpus(const Resources& allocatable, const Resources& taken, const Resources& request, int at_most) {
  if (at_most <= 0) return 0;
  std::vector<ClaimableGpu> gpus = GpusOf(allocatable, taken);
  if (gpus.empty()) return at_most;  // Nothing is known of them: the sum alone counts.
  const std::vector<ClaimedPart> parts = PartsIn(request);
  if (parts.size() == 1) {
    std::int64_t room = 0;
    for (const ClaimableGpu& gpu : gpus) room += gpu.CopiesOf(parts.front());
    return static_cast<int>(std::min<std::int64_t>(at_most, room / parts.front().count));
  }
  int copies = 0;
  while (copies < at_most && TakeAll(parts, gpus, nullptr)) ++copies;
  return copies;
}

std::string ChooseClaimedGpus(const Resources& allocatable, const Resources& taken, const Resources& request) {
  std::vector<ClaimableGpu> gpus = GpusOf(allocatable, taken);
  std::vector<std::string_view> chosen;
  if (!TakeAll(PartsIn(request), gpus, &chosen)) return {};
  return GpuListOf(chosen);
}

Resources OnClaimedGpus(Resources request, std::string_view gpus) {
  if (gpus.empty()) return request;
  for (const ClaimedPart& part : PartsIn(request)) {
    for (std::int64_t i = 0; i < part.count && !gpus.empty(); ++i) {
      const std::string_view device = gpus.substr(0, gpus.find(','));
      gpus.remove_prefix(std::min(gpus.size(), device.size() + 1));
      request.AddExtended(NameOn(kMilli, device), part.milli);
      request.AddExtended(NameOn(kMemory, device), part.memory_mib);
    }
  }
  return request;
}

}  // namespace grus
