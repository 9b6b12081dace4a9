// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/compact_string.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <functional>
#include <limits>
#include <mutex>
#include <new>
#include <stdexcept>

namespace kube {

static_assert(std::endian::native == std::endian::little, "the inline form puts the size into the last byte");

struct CompactString::Block {
  std::atomic<std::uint32_t> references;
  std::uint32_t size;
  char* bytes() { return reinterpret_cast<char*>(this + 1); }
};

namespace {

// Longer strings are seldom equal, and comparing them costs more than it saves.
constexpr std::size_t kMaxSharedBytes = 128;
// 8192 strings in all are remembered, a quarter of a MiB or so. Threads seldom meet: one of 64 locks, for a comparison
// or an allocation.
constexpr std::size_t kStripes = 64, kSlots = 128;

}  // namespace

CompactString::Block* CompactString::block() const { return std::bit_cast<Block*>(static_cast<std::uintptr_t>(word_)); }

std::string_view CompactString::view() const {
  if (is_block()) return {block()->bytes(), block()->size};
  return {reinterpret_cast<const char*>(&word_), inline_size()};
}

std::size_t CompactString::HeapBytes() const { return is_block() ? sizeof(Block) + block()->size : 0; }

void CompactString::Assign(std::string_view text) {
  if (text.empty()) return;
  if (text.size() <= kInlineBytes) {
    std::memcpy(&word_, text.data(), text.size());
    word_ |= std::uint64_t{text.size()} << 56;
    return;
  }
  if (text.size() > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("CompactString");
  void* const memory = ::operator new(sizeof(Block) + text.size());
  Block* const made = new (memory) Block{{1}, static_cast<std::uint32_t>(text.size())};
  std::memcpy(made->bytes(), text.data(), text.size());
  word_ = std::uint64_t{std::bit_cast<std::uintptr_t>(made)};
}

void CompactString::Retain() const noexcept {
  if (is_block()) block()->references.fetch_add(1, std::memory_order_relaxed);
}

void CompactString::Release() noexcept {
  if (!is_block()) return;
  // acq_rel: all reads by other owners happen before the last owner frees the block.
  if (block()->references.fetch_sub(1, std::memory_order_acq_rel) == 1) ::operator delete(block());
}

CompactString CompactString::Shared(std::string_view text) {
  if (text.size() <= kInlineBytes || text.size() > kMaxSharedBytes) return CompactString(text);
  // One slot for each hash: a newer string replaces an older one, which only costs some sharing, and an unused block
  // lives until its slot is used again. The threads share them: each would fill slots of its own, for hours.
  struct Stripe {
    std::mutex mutex;
    std::array<CompactString, kSlots> slots;
  };
  static auto& stripes = *new std::array<Stripe, kStripes>();  // Threads may outlive main().
  const std::size_t hash = std::hash<std::string_view>()(text);
  Stripe& stripe = stripes[hash % kStripes];
  CompactString& slot = stripe.slots[hash / kStripes % kSlots];
  const std::scoped_lock lock(stripe.mutex);
  if (slot.view() != text) slot = CompactString(text);
  return slot;
}

}  // namespace kube
