// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gpu_parts.h"

#include <algorithm>
#include <span>

#include "clientlib/base/lower_case.h"
#include "controllers/policy/claimed_gpus.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

// What a node offers of each GPU; all but the last are what pods ask for, and offered in sum, too.
constexpr std::string_view kOffered[] = {api::kGpuMilliResource, api::kVgpuComputeResource, api::kVgpuMemoryResource,
                                         api::kGpuMemResource, kSaidMemory};
constexpr std::span kParts(kOffered, std::size(kOffered) - 1);
// On a GPU: the thousandths of pods that say how much memory they bring.
constexpr char kMilliWithoutMemory[] = "ai.centauruscloud.io/gpu-milli without memory";
constexpr char kSeparator = '#', kListSeparator = ',';
constexpr std::int64_t kMostParts = std::int64_t{1} << 40;  // Users may ask for any number.

using Amount = std::pair<std::string, std::int64_t>;

// Calls `visit(gpu, free)` for each GPU of which the node offers this resource, by its name. Both lists are sorted, so
// nothing is looked up.
template <typename F>
void ForEachFree(const Resources& allocatable, const Resources& taken, std::string_view resource, const F& visit) {
  const std::string prefix = PartOn(resource, "");
  auto held = std::ranges::lower_bound(taken.extended, prefix, {}, &Amount::first);
  auto at = std::ranges::lower_bound(allocatable.extended, prefix, {}, &Amount::first);
  for (; at != allocatable.extended.end() && at->first.starts_with(prefix); ++at) {
    while (held != taken.extended.end() && held->first < at->first) ++held;
    const bool is_held = held != taken.extended.end() && held->first == at->first;
    visit(std::string_view(at->first).substr(prefix.size()), RestOf(at->second, is_held ? held->second : 0));
  }
}

// Calls `visit(gpu, offered)` for each GPU of which the node offers this resource, by its name.
template <typename F>
void ForEachGpu(const Resources& allocatable, std::string_view resource, const F& visit) {
  ForEachFree(allocatable, {}, resource, visit);
}

// The first part that the request asks for; empty: none.
std::string_view FirstPart(const Resources& request) {
  for (const std::string_view part : kParts) {
    if (request.Extended(part) > 0) return part;
  }
  return {};
}

// Of the amount: on one GPU all of it, of whole ones what each has.
std::int64_t OnEach(std::string_view part, std::int64_t amount, std::int64_t whole) {
  return whole > 0 && part == api::kGpuMilliResource ? kWholeGpuMilli : amount;
}

// Nobody has any of it, and it has as much memory as each container says, where several ask for 1000 each.
bool IsFreeGpu(std::string_view gpu, const Resources& allocatable, const Resources& taken, const Resources& request) {
  const std::int64_t said = request.Extended(kSaidMemory) / std::max<std::int64_t>(WholeGpusOf(request), 1);
  const std::int64_t memory = allocatable.Extended(PartOn(kSaidMemory, gpu));
  if (memory > 0 && said > memory) return false;
  const std::string name = PartOn(api::kGpuMilliResource, gpu);
  return allocatable.Extended(name) >= kWholeGpuMilli && taken.Extended(name) <= 0;
}

// The first GPUs of which nobody has anything, as many as it asks for, as a list; those of `preferred` before others.
// Empty: there are not as many.
std::string ChooseWholeGpus(const Resources& allocatable, const Resources& taken, const Resources& request,
                            std::string_view preferred) {
  const auto whole = static_cast<std::size_t>(WholeGpusOf(request));
  std::vector<std::string_view> free, wanted;
  ForEachListedGpu(preferred, [&](std::string_view gpu) {
    if (wanted.size() < kMostGpusOfNode) wanted.push_back(gpu);
  });
  ForEachGpu(allocatable, api::kGpuMilliResource, [&](std::string_view gpu, std::int64_t) {
    if (IsFreeGpu(gpu, allocatable, taken, request)) free.push_back(gpu);
  });
  if (free.size() < whole) return {};
  std::stable_partition(free.begin(), free.end(),
                        [&](std::string_view gpu) { return std::ranges::count(wanted, gpu) > 0; });
  free.resize(whole);
  std::ranges::sort(free);
  return GpuListOf(free);
}

struct GpuRoom {
  std::int64_t copies = 0;
  std::int64_t left = 0;  // Free of the first part.
};

// So many copies find their memory on the GPU; `at_most` if nobody says how much that is.
std::int64_t CopiesByMemory(std::string_view gpu, const Resources& allocatable, const Resources& taken,
                            const Resources& request, std::int64_t at_most) {
  const std::int64_t said = request.Extended(kSaidMemory);
  if (said <= 0 && taken.Extended(kSaidMemory) == 0) return at_most;
  const std::string memory = PartOn(kSaidMemory, gpu);
  const std::int64_t total = allocatable.Extended(memory), milli = request.Extended(api::kGpuMilliResource);
  if (total <= 0 || milli <= 0) return at_most;  // Nothing is known of it, or the mode knows no thousandths.
  const std::int64_t free = RestOf(total, std::max<std::int64_t>(taken.Extended(memory), 0));
  const std::int64_t in_proportion = std::clamp<std::int64_t>(
      RestOf(taken.Extended(PartOn(api::kGpuMilliResource, gpu)), taken.Extended(PartOn(kMilliWithoutMemory, gpu))), 0,
      kWholeGpuMilli);
  if (said > 0) return std::min(at_most, RestOf(free, total * in_proportion / kWholeGpuMilli) / said);
  // The most thousandths whose memory, rounded down, is free.
  const std::int64_t most = ((free + 1) * kWholeGpuMilli - 1) / total;
  return std::min(at_most, RestOf(most, in_proportion) / milli);
}

GpuRoom RoomOn(std::string_view gpu, std::string_view first, const Resources& allocatable, const Resources& taken,
               const Resources& request, int at_most) {
  GpuRoom room{at_most, 0};
  for (const std::string_view part : kParts) {
    const std::int64_t each = request.Extended(part);
    if (each <= 0) continue;
    const std::string name = PartOn(part, gpu);
    const std::int64_t free = RestOf(allocatable.Extended(name), taken.Extended(name));
    room.copies = std::min(room.copies, free / each);
    if (part == first) room.left = free;
  }
  room.copies = CopiesByMemory(gpu, allocatable, taken, request, room.copies);
  return room;
}

// For one kind of part, and nobody says how much memory.
bool IsSimple(std::string_view first, const Resources& taken, const Resources& request) {
  const auto is_other = [&](std::string_view part) { return part != first && request.Extended(part) > 0; };
  const bool says_memory = request.Extended(kSaidMemory) > 0 || taken.Extended(kSaidMemory) != 0;
  return !says_memory && WholeGpusOf(request) == 0 && std::ranges::none_of(kParts, is_other);
}

// Copies of a request for one kind of part where nobody says how much memory, as most. nullopt: it is another one, or
// nothing is known of the node's GPUs.
std::optional<std::int64_t> SimpleCopies(std::string_view first, const Resources& allocatable, const Resources& taken,
                                         const Resources& request, int at_most) {
  if (!IsSimple(first, taken, request)) return std::nullopt;
  const std::int64_t each = request.Extended(first);
  std::optional<std::int64_t> copies;
  ForEachFree(allocatable, taken, first, [&](std::string_view, std::int64_t free) {
    copies = copies.value_or(0) + std::min<std::int64_t>(at_most, free / each);
  });
  return copies;
}

}  // namespace

std::string PartOn(std::string_view resource, std::string_view gpu) {
  return std::string(resource).append(1, kSeparator).append(gpu);
}

std::string GpuListOf(const std::vector<std::string_view>& gpus) {
  std::string list;
  for (const std::string_view gpu : gpus) {
    if (!list.empty()) list += kListSeparator;
    list += gpu;
  }
  return list;
}

void ForEachListedGpu(std::string_view gpus, const std::function<void(std::string_view gpu)>& visit) {
  while (!gpus.empty()) {
    const std::string_view gpu = gpus.substr(0, gpus.find(kListSeparator));
    gpus.remove_prefix(std::min(gpu.size() + 1, gpus.size()));
    if (!gpu.empty()) visit(gpu);
  }
}

void ForEachFreeGpu(const Resources& allocatable, const Resources& taken,
                    const std::function<void(std::string_view gpu, std::int64_t milli)>& visit) {
  ForEachFree(allocatable, taken, api::kGpuMilliResource, visit);
}

std::string LackOnGpus(const Resources& allocatable, const Resources& taken, const Resources& request) {
  const std::string_view part = FirstPart(request);
  std::int64_t most = 0, free_gpus = 0;
  const bool is_whole = WholeGpusOf(request) > 0;
  ForEachFree(allocatable, taken, part, [&](std::string_view gpu, std::int64_t free) {
    most = std::max(most, free);
    free_gpus += is_whole && IsFreeGpu(gpu, allocatable, taken, request) ? 1 : 0;
  });
  const std::string asked = std::to_string(request.Extended(part)) + " " + std::string(part);
  if (is_whole) return asked + ": " + std::to_string(free_gpus) + " whole GPUs are free";
  if (most >= request.Extended(part)) return asked + " on one GPU: its other parts, or its memory, are not free there";
  return asked + " on one GPU: " + std::to_string(most) + " are free at most";
}

bool IsGpuPart(std::string_view resource) {
  return std::ranges::find(kParts, resource) != kParts.end() || resource == kClaimedMilli;
}

bool IsOnOneGpu(std::string_view resource) { return resource.find(kSeparator) != std::string_view::npos; }

bool AsksForGpuParts(const Resources& request) { return !FirstPart(request).empty(); }

std::int64_t WholeGpusOf(const Resources& request) {
  const std::int64_t milli = request.Extended(api::kGpuMilliResource);
  const bool is_whole = milli > kWholeGpuMilli && milli % kWholeGpuMilli == 0 && request.Extended(kMixedParts) == 0;
  return is_whole ? milli / kWholeGpuMilli : 0;
}
bool IsOnGpus(const Resources& request) { return AsksForGpuParts(request) || AsksForClaimedGpus(request); }

std::optional<PoolPlacement> PlacementNamed(std::string_view word) {
  if (word == "pack") return PoolPlacement::kBinPack;
  if (word == "spread") return PoolPlacement::kSpread;
  return std::nullopt;
}

std::optional<PoolPlacement> PartPlacementOf(const kube::Pod& pod) {
  if (const auto said = PlacementNamed(pod.metadata.Annotation(api::kPartPlacementKey))) return said;
  if (pod.spec.scheduler_name == api::kPackingScheduler) return PoolPlacement::kBinPack;
  if (pod.spec.scheduler_name == api::kSpreadingScheduler) return PoolPlacement::kSpread;
  return std::nullopt;
}

std::int64_t RestOf(std::int64_t offer, std::int64_t taken) {
  std::int64_t rest = 0;
  if (__builtin_sub_overflow(offer, taken, &rest)) rest = taken < 0 ? INT64_MAX : 0;
  return std::max<std::int64_t>(rest, 0);
}

bool IsOfSingleGpus(std::string_view name) { return name == kSaidMemory || name == kMixedParts || IsClaimedPart(name); }

std::int64_t MilliOfGpuParts(const Resources& request) {
  const std::int64_t milli = request.Extended(api::kGpuMilliResource),
                     percent = request.Extended(api::kVgpuComputeResource);
  return std::clamp<std::int64_t>(milli, 0, kMostParts) + 10 * std::clamp<std::int64_t>(percent, 0, kMostParts) +
         ClaimedMilliOf(request);
}

Resources OnGpu(Resources request, std::string_view gpus) {
  if (AsksForClaimedGpus(request) && !gpus.empty()) return OnClaimedGpus(std::move(request), gpus);
  const std::int64_t whole = WholeGpusOf(request), said = whole > 0 ? 0 : request.Extended(kSaidMemory);
  ForEachListedGpu(gpus, [&](std::string_view gpu) {
    for (const std::string_view part : kParts) {
      const std::int64_t amount = request.Extended(part);
      if (amount > 0) request.AddExtended(PartOn(part, gpu), OnEach(part, amount, whole));
    }
    if (said <= 0) return;
    request.AddExtended(PartOn(kSaidMemory, gpu), said);
    request.AddExtended(PartOn(kMilliWithoutMemory, gpu), request.Extended(api::kGpuMilliResource));
  });
  return request;
}

bool AreAlikeWithoutGpu(const Resources& a, const Resources& b) {
  if (a.milli_cpu != b.milli_cpu || a.memory_bytes != b.memory_bytes || a.pods != b.pods) return false;
  auto of_a = a.extended.begin(), of_b = b.extended.begin();
  const auto skip = [](auto& at, const Resources& of) {
    while (at != of.extended.end() && IsOnOneGpu(at->first)) ++at;
    return at == of.extended.end();
  };
  while (true) {
    const bool is_end_of_a = skip(of_a, a), is_end_of_b = skip(of_b, b);
    if (is_end_of_a || is_end_of_b) return is_end_of_a && is_end_of_b;
    if (*of_a++ != *of_b++) return false;
  }
}

bool NamesGpu(const Resources& request) {
  return std::ranges::any_of(request.extended, [](const auto& amount) { return IsOnOneGpu(amount.first); });
}

bool IsOnGpu(const Resources& held, std::string_view gpus) {
  bool is_on_all = !gpus.empty();
  ForEachListedGpu(gpus, [&](std::string_view gpu) {
    const auto has = [&](std::string_view part) { return held.Extended(PartOn(part, gpu)) > 0; };
    is_on_all = is_on_all && (std::ranges::any_of(kParts, has) || has(kClaimedMilli));
  });
  return is_on_all;
}

int CopiesOnGpus(const Resources& allocatable, const Resources& taken, const Resources& request, int at_most) {
  if (AsksForClaimedGpus(request)) return CopiesOnClaimedGpus(allocatable, taken, request, at_most);
  const std::string_view first = FirstPart(request);
  if (first.empty() || at_most <= 0) return at_most;
  const std::int64_t whole = WholeGpusOf(request);
  bool is_known = false;
  std::int64_t copies = 0;
  if (const auto simple = SimpleCopies(first, allocatable, taken, request, at_most)) {
    return static_cast<int>(std::min<std::int64_t>(*simple, at_most));
  }
  ForEachGpu(allocatable, first, [&](std::string_view gpu, std::int64_t) {
    is_known = true;
    if (whole > 0) copies += IsFreeGpu(gpu, allocatable, taken, request) ? 1 : 0;
    else copies += RoomOn(gpu, first, allocatable, taken, request, at_most).copies;
  });
  if (whole > 0) copies /= whole;
  return is_known ? static_cast<int>(std::min<std::int64_t>(copies, at_most)) : at_most;
}

std::vector<std::string> GpusWithRoom(const Resources& allocatable, const Resources& taken, const Resources& request) {
  std::vector<std::string> gpus;
  const std::string_view first = FirstPart(request);
  if (first.empty() || WholeGpusOf(request) > 0) return gpus;
  const bool is_simple = IsSimple(first, taken, request);
  const std::int64_t each = request.Extended(first);
  ForEachFree(allocatable, taken, first, [&](std::string_view gpu, std::int64_t free) {
    const bool fits = free >= each && (is_simple || RoomOn(gpu, first, allocatable, taken, request, 1).copies > 0);
    if (fits) gpus.emplace_back(gpu);
  });
  return gpus;
}

std::string ChooseGpu(const Resources& allocatable, const Resources& taken, const Resources& request,
                      PoolPlacement placement, std::string_view preferred) {
  if (AsksForClaimedGpus(request)) return ChooseClaimedGpus(allocatable, taken, request);
  const std::string_view first = FirstPart(request);
  const bool is_spread = placement == PoolPlacement::kSpread;
  std::string best;
  std::int64_t left_on_best = 0;
  if (first.empty()) return best;
  if (WholeGpusOf(request) > 0) return ChooseWholeGpus(allocatable, taken, request, preferred);
  ForEachGpu(allocatable, first, [&](std::string_view gpu, std::int64_t) {
    const GpuRoom room = RoomOn(gpu, first, allocatable, taken, request, 1);
    if (room.copies == 0 || (!best.empty() && best == preferred)) return;
    const bool is_better = is_spread ? room.left > left_on_best : room.left < left_on_best;
    if (!best.empty() && gpu != preferred && !is_better) return;
    left_on_best = room.left;
    best = gpu;
  });
  return best;
}

void WithholdClaimedGpus(const std::set<std::string>& devices, Resources& allocatable) {
  bool is_shared = false;
  for (const std::string_view part : kOffered) {
    std::vector<Amount> claimed;
    ForEachGpu(allocatable, part, [&](std::string_view gpu, std::int64_t offered) {
      is_shared = true;
      if (devices.contains(kube::LowerCase(gpu))) claimed.emplace_back(PartOn(part, gpu), offered);
    });
    for (const auto& [name, offered] : claimed) {
      allocatable.AddExtended(name, -offered);
      allocatable.AddExtended(part, -std::min(offered, allocatable.Extended(part)));
    }
  }
  if (is_shared) return;
  const std::int64_t whole = allocatable.Extended(kGpuResource);
  allocatable.AddExtended(kGpuResource, -std::min(whole, static_cast<std::int64_t>(devices.size())));
}

}  // namespace grus
