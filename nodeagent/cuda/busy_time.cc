// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/busy_time.h"

#include <algorithm>

namespace grus::cuda {
namespace {

constexpr std::uint64_t kSlot = std::uint64_t{1} << kBusySlotShift;
constexpr std::uint64_t kRing = kSlot * kBusySlots;
constexpr std::uint32_t kBusyMask = (std::uint32_t{1} << kBusyBits) - 1;

// Adds to the slot that `when` lies in, up to `most`; returns how much there was room for.
std::uint64_t AddToSlot(GpuTime& time, std::uint64_t when, std::uint64_t amount) {
  const std::uint64_t number = when >> kBusySlotShift;
  const auto round = static_cast<std::uint32_t>(number / kBusySlots) << kBusyBits;
  std::atomic<std::uint32_t>& slot = time.busy[number % kBusySlots];
  std::uint32_t old = slot.load(std::memory_order_relaxed);
  while (true) {
    const std::uint64_t busy = (old & ~kBusyMask) == round ? std::min<std::uint64_t>(old & kBusyMask, kSlot) : 0;
    const std::uint64_t added = std::min(amount, kSlot - busy);
    const std::uint32_t wanted = round | static_cast<std::uint32_t>(busy + added);
    if (added == 0 || slot.compare_exchange_weak(old, wanted, std::memory_order_relaxed)) return added;
  }
}

}  // namespace

std::uint64_t AddBusy(GpuTime& time, std::uint64_t begin, std::uint64_t end, std::uint64_t amount) {
  if (end <= begin) return 0;
  const std::uint64_t length = end - begin;
  amount = std::min(amount, length);
  std::uint64_t added = 0, given = 0;
  std::uint64_t from = begin;
  if (length > kRing - 2 * kSlot) {
    from = end - (kRing - 2 * kSlot);
    given = static_cast<std::uint64_t>(static_cast<double>(amount) * static_cast<double>(from - begin) /
                                       static_cast<double>(length));
    added = given;
  }
  while (from < end) {
    const std::uint64_t to = std::min(end, (from | (kSlot - 1)) + 1);
    const std::uint64_t part =
        to == end ? amount - given
                  : static_cast<std::uint64_t>(static_cast<double>(amount) * static_cast<double>(to - from) /
                                               static_cast<double>(length));
    added += AddToSlot(time, from, std::min(part, amount - given));
    given += std::min(part, amount - given);
    from = to;
  }
  return added;
}

void GpuClock::Saw(std::uint64_t launched, std::int64_t gpu_start, std::int64_t gpu_end, std::uint64_t seen) {
  const std::int64_t least = static_cast<std::int64_t>(launched) - gpu_start;
  const std::int64_t most = static_cast<std::int64_t>(seen) - gpu_end;
  if (!set_ || offset_ < least) offset_ = least;
  if (offset_ > most) offset_ = most;
  set_ = true;
}

}  // namespace grus::cuda
