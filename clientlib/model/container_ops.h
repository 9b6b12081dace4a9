// SPDX-License-Identifier: Apache-2.0
// TypeOps of lists and maps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clientlib/model/string_map.h"
#include "clientlib/model/type_ops.h"

namespace kube::internal {

// If T has is_kept(), drops the items for which it is false.
template <typename T>
constexpr auto DropOf() -> void (*)(void*) {
  if constexpr (requires(const T& item) { item.is_kept(); }) {
    return [](void* v) {
      auto& list = *static_cast<std::vector<T>*>(v);
      if (std::erase_if(list, [](const T& item) { return !item.is_kept(); }) > 0) list.shrink_to_fit();
    };
  } else {
    return nullptr;
  }
}

template <typename T>
struct TypeOpsOf<std::vector<T>> {
  using V = std::vector<T>;
  static constexpr TypeOps kOps{.shape = Shape::kList,
                                .element = &TypeOpsOf<T>::kOps,
                                .item_bytes = sizeof(T),
                                .size = [](const void* v) { return static_cast<const V*>(v)->size(); },
                                .resize = [](void* v, std::size_t n) { *static_cast<V*>(v) = V(n); },
                                .at = [](void* v, std::size_t i) -> void* { return &(*static_cast<V*>(v))[i]; },
                                .drop = DropOf<T>()};
};

// The table of a map-like type M with values of type T. `node`: bytes of an entry beside the pair.
template <typename M, typename T>
constexpr TypeOps MapOps(std::size_t node, void* (*append)(void*, std::string_view),
                         void (*resize)(void*, std::size_t)) {
  return {.shape = Shape::kMap,
          .element = &TypeOpsOf<T>::kOps,
          .item_bytes = sizeof(typename M::value_type) + node,
          .size = [](const void* m) { return static_cast<const M*>(m)->size(); },
          .resize = resize,
          .append = append,
          .visit =
              [](const void* m, void* context, TypeOps::Visit each) {
                for (const auto& [key, value] : *static_cast<const M*>(m)) each(context, key, &value);
              }};
}

template <typename T>
struct TypeOpsOf<std::map<std::string, T>> {
  using M = std::map<std::string, T>;
  static constexpr TypeOps kOps = MapOps<M, T>(
      48, [](void* m, std::string_view key) -> void* { return &(*static_cast<M*>(m))[std::string(key)]; },
      [](void* m, std::size_t) { static_cast<M*>(m)->clear(); });
};
// A sorted vector, as ResourceList.
template <typename T>
struct TypeOpsOf<std::vector<std::pair<CompactString, T>>> {
  using M = std::vector<std::pair<CompactString, T>>;
  static constexpr TypeOps kOps = MapOps<M, T>(
      0,
      [](void* m, std::string_view key) -> void* {
        return &static_cast<M*>(m)->emplace_back(CompactString::Shared(key), T()).second;
      },
      [](void* m, std::size_t n) {
        static_cast<M*>(m)->clear();
        static_cast<M*>(m)->reserve(n);
      });
};
template <>
struct TypeOpsOf<StringMap> {
  static constexpr TypeOps kOps = MapOps<StringMap, CompactString>(
      0, [](void* m, std::string_view key) -> void* { return &(*static_cast<StringMap*>(m))[key]; },
      [](void* m, std::size_t n) {
        static_cast<StringMap*>(m)->clear();
        static_cast<StringMap*>(m)->reserve(n);
      });
};

}  // namespace kube::internal
