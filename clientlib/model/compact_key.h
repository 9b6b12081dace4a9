// SPDX-License-Identifier: Apache-2.0
// An ObjectKey of 16 bytes, for what is kept by the hundred thousand: namespaces are shared, and copies share the name.
#pragma once

#include <compare>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "clientlib/model/compact_string.h"
#include "clientlib/model/meta.h"

namespace kube {

// A value, as thread-safe as an int.
struct CompactKey {
  CompactString ns, name;

  CompactKey() = default;
  CompactKey(std::string_view in, CompactString is) : ns(CompactString::Shared(in)), name(std::move(is)) {}
  CompactKey(const ObjectKey& key) : CompactKey(key.ns, key.name) {}  // NOLINT: implicit on purpose
  operator ObjectKey() const { return {ns.str(), name.str()}; }       // NOLINT
  std::string ToString() const { return ObjectKey(*this).ToString(); }
  friend auto operator<=>(const CompactKey&, const CompactKey&) = default;
};

// Finds the one by the other.
struct SameKey {
  using is_transparent = void;
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    return a.name == b.name && a.ns == b.ns;
  }
};
struct HashOfKey {
  using is_transparent = void;
  // Not noexcept: as that of ObjectKey.
  template <typename Key>
  std::size_t operator()(const Key& key) const {
    return std::hash<std::string_view>()(key.name) * 31 + std::hash<std::string_view>()(key.ns);
  }
};

}  // namespace kube
