// SPDX-License-Identifier: Apache-2.0
// A string of 8 bytes for objects that are kept by the hundred thousand.
//
// Up to 7 bytes are held inline, longer ones in an immutable block that copies share. Strings read from the API server
// go through Shared(), so that node names, label keys, condition types and the like exist once and not once per pod.
// Converts from and to std::string and std::string_view implicitly. A value: as thread-safe as an int.
#pragma once

#include <compare>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace kube {

class CompactString {
 public:
  CompactString() = default;
  CompactString(std::string_view text) { Assign(text); }                             // NOLINT: implicit on purpose
  CompactString(const std::string& text) : CompactString(std::string_view(text)) {}  // NOLINT
  CompactString(const char* text) : CompactString(std::string_view(text)) {}         // NOLINT
  CompactString(const CompactString& other) noexcept : word_(other.word_) { Retain(); }
  CompactString(CompactString&& other) noexcept : word_(std::exchange(other.word_, 0)) {}
  CompactString& operator=(CompactString other) noexcept {
    std::swap(word_, other.word_);
    return *this;
  }
  ~CompactString() { Release(); }

  // Shares the block of an equal string that was made this way recently, if it is still remembered.
  static CompactString Shared(std::string_view text);

  std::string_view view() const;
  bool empty() const { return word_ == 0; }
  std::size_t size() const { return view().size(); }
  operator std::string_view() const { return view(); }          // NOLINT: implicit on purpose
  operator std::string() const { return std::string(view()); }  // NOLINT
  std::string str() const { return std::string(view()); }

  // Bytes on the heap; a shared block counts in full.
  std::size_t HeapBytes() const;

  friend bool operator==(const CompactString& a, const CompactString& b) {
    return a.word_ == b.word_ || a.view() == b.view();
  }
  friend bool operator==(const CompactString& a, std::string_view b) { return a.view() == b; }
  friend bool operator==(const CompactString& a, const char* b) { return a.view() == b; }
  friend bool operator==(const CompactString& a, const std::string& b) { return a.view() == b; }
  friend auto operator<=>(const CompactString& a, const CompactString& b) { return a.view() <=> b.view(); }
  friend auto operator<=>(const CompactString& a, std::string_view b) { return a.view() <=> b; }
  friend std::ostream& operator<<(std::ostream& out, const CompactString& s) { return out << s.view(); }
  friend std::string operator+(const CompactString& a, std::string_view b) { return a.str().append(b); }
  friend std::string operator+(std::string_view a, const CompactString& b) { return std::string(a).append(b.view()); }

 private:
  struct Block;

  // 0: empty. Top byte 1..7: that many bytes inline, the first in the lowest byte. Top byte 0: a Block*.
  static constexpr std::size_t kInlineBytes = 7;
  static_assert(sizeof(void*) == sizeof(std::uint64_t));

  std::size_t inline_size() const { return static_cast<std::size_t>(word_ >> 56); }
  bool is_block() const { return word_ != 0 && inline_size() == 0; }
  Block* block() const;
  void Assign(std::string_view text);
  void Retain() const noexcept;
  void Release() noexcept;

  std::uint64_t word_ = 0;
};

}  // namespace kube

template <>
struct std::hash<kube::CompactString> {
  std::size_t operator()(const kube::CompactString& s) const noexcept {
    return std::hash<std::string_view>()(s.view());
  }
};
