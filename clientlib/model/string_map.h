// SPDX-License-Identifier: Apache-2.0
// Labels, annotations, node selectors: a sorted vector of pairs that is used like std::map<string, string>.
//
// 16 bytes per entry where std::map takes 112. Entries are few, so insertion in the middle is fine. Converts from and
// to std::map implicitly. A value; not thread-safe.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clientlib/model/compact_string.h"

namespace kube {

class StringMap {
 public:
  using key_type = CompactString;
  using mapped_type = CompactString;
  using value_type = std::pair<CompactString, CompactString>;
  using Entries = std::vector<value_type>;
  using const_iterator = Entries::const_iterator;
  using iterator = const_iterator;  // Values change through operator[] and insert_or_assign only.

  StringMap() = default;
  StringMap(std::initializer_list<std::pair<std::string_view, std::string_view>> entries) {
    for (const auto& [key, value] : entries) emplace(key, value);
  }
  StringMap(const std::map<std::string, std::string>& entries) {  // NOLINT: implicit on purpose
    for (const auto& [key, value] : entries) entries_.emplace_back(key, value);
  }
  operator std::map<std::string, std::string>() const { return {begin(), end()}; }  // NOLINT: implicit on purpose

  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  void clear() { entries_.clear(); }
  void reserve(std::size_t size) { entries_.reserve(size); }

  const_iterator find(std::string_view key) const {
    const auto at = LowerBound(key);
    return at != end() && at->first == key ? at : end();
  }
  bool contains(std::string_view key) const { return find(key) != end(); }
  std::size_t count(std::string_view key) const { return contains(key) ? 1 : 0; }
  // The value of `key`, empty if there is none.
  std::string_view Get(std::string_view key) const {
    const auto at = find(key);
    return at == end() ? std::string_view() : at->second.view();
  }

  CompactString& operator[](std::string_view key) { return Slot(key).first; }
  // No effect if `key` exists; returns false then.
  bool emplace(std::string_view key, std::string_view value) {
    const auto [slot, is_new] = Slot(key);
    if (is_new) slot = CompactString::Shared(value);
    return is_new;
  }
  void insert_or_assign(std::string_view key, std::string_view value) { (*this)[key] = value; }
  std::size_t erase(std::string_view key) {
    const auto at = find(key);
    if (at == end()) return 0;
    entries_.erase(at);
    return 1;
  }

  friend bool operator==(const StringMap&, const StringMap&) = default;

 private:
  const_iterator LowerBound(std::string_view key) const {
    return std::lower_bound(begin(), end(), key,
                            [](const value_type& entry, std::string_view k) { return entry.first.view() < k; });
  }
  std::pair<CompactString&, bool> Slot(std::string_view key) {
    // Go writes maps in order, so the end is the usual place.
    if (entries_.empty() || entries_.back().first.view() < key) {
      entries_.emplace_back(CompactString::Shared(key), CompactString());
      return {entries_.back().second, true};
    }
    auto at = entries_.begin() + (LowerBound(key) - begin());
    const bool is_new = at->first != key;
    if (is_new) at = entries_.emplace(at, CompactString::Shared(key), CompactString());
    return {at->second, is_new};
  }

  Entries entries_;  // Sorted by key, no key twice.
};

}  // namespace kube
