// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/hooks.h"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstring>

#include "nodeagent/cuda/find.h"

// Their addresses alone: each has its type where it is defined.
#define GRUS_HOOK(name, asked, since, is_per_thread, group) extern "C" void name();
#include "nodeagent/cuda/nvml_functions.inc"
#include "nodeagent/cuda/table/hooked_functions.inc"
#undef GRUS_HOOK

namespace grus::cuda {
namespace {

struct Hook {
  const char* name;
  const char* asked;  // Empty: it is never handed out by cuGetProcAddress.
  int since;
  bool is_per_thread;
  void (*ours)();
};

// That of the table: a later version may give a name a function with other parameters.
constexpr int kNewestVersion = 13050;

constexpr Hook kHooks[] = {
#define GRUS_HOOK(name, asked, since, is_per_thread, group) {#name, asked, since, is_per_thread, &::name},
#include "nodeagent/cuda/nvml_functions.inc"
#include "nodeagent/cuda/table/hooked_functions.inc"
#undef GRUS_HOOK
};
constexpr std::size_t kHookCount = sizeof(kHooks) / sizeof(kHooks[0]);
static_assert(kHookCount == static_cast<std::size_t>(Call::kCount));

std::atomic<void*> real[kHookCount];

// By their hash, for names that are asked for by dlsym(); built by the first who asks, and the same whoever builds it.
constexpr std::size_t kSlots = 512;
static_assert(kHookCount * 2 < kSlots);
std::atomic<std::uint16_t> slots[kSlots];  // Index + 1; 0: none.
std::atomic<bool> has_slots;

std::size_t HashOf(const char* text) {
  std::uint32_t hash = 2166136261U;
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 16777619U;
  return hash % kSlots;
}

void FillSlots() {
  std::uint16_t filled[kSlots] = {};
  for (std::size_t i = 0; i < kHookCount; ++i) {
    std::size_t at = HashOf(kHooks[i].name);
    while (filled[at] != 0) at = (at + 1) % kSlots;
    filled[at] = static_cast<std::uint16_t>(i + 1);
  }
  for (std::size_t at = 0; at < kSlots; ++at) slots[at].store(filled[at], std::memory_order_relaxed);
  has_slots.store(true, std::memory_order_release);
}

}  // namespace

int NewestKnownVersion() { return kNewestVersion; }

void* RealOf(Call call) {
  const auto index = static_cast<std::size_t>(call);
  void* known = real[index].load(std::memory_order_relaxed);
  if (known != nullptr) return known;
  known = RealNamed(kHooks[index].name);
  if (known != nullptr) real[index].store(known, std::memory_order_relaxed);
  return known;
}

void* HookNamed(const char* name) {
  if (!has_slots.load(std::memory_order_acquire)) FillSlots();
  for (std::size_t at = HashOf(name);; at = (at + 1) % kSlots) {
    const std::uint16_t found = slots[at].load(std::memory_order_relaxed);
    if (found == 0) return nullptr;
    if (std::strcmp(kHooks[found - 1].name, name) == 0) return reinterpret_cast<void*>(kHooks[found - 1].ours);
  }
}

void* HookAsked(const char* name, int version, bool is_per_thread, void* answer) {
  if (*name == '\0') return nullptr;
  // The one that the driver exports at this address, if it is one of them: headers are at odds about some versions.
  // Else, of few, the newest that is old enough; one that takes no stream is the same for both.
  std::size_t found = kHookCount, newest[2] = {kHookCount, kHookCount};
  for (std::size_t i = 0; i < kHookCount && found == kHookCount; ++i) {
    const Hook& hook = kHooks[i];
    if (std::strcmp(hook.asked, name) != 0) continue;
    if (RealOf(static_cast<Call>(i)) == answer) found = i;
    if (hook.since <= version) newest[hook.is_per_thread ? 1 : 0] = i;
  }
  if (found == kHookCount) {
    found = newest[is_per_thread && newest[1] != kHookCount ? 1 : 0];
    if (found == kHookCount) return nullptr;
    if (version > kNewestVersion && RealOf(static_cast<Call>(found)) != nullptr) return nullptr;
  }
  void* none = nullptr;
  real[found].compare_exchange_strong(none, answer, std::memory_order_relaxed);
  return reinterpret_cast<void*>(kHooks[found].ours);
}

}  // namespace grus::cuda
