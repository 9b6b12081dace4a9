// SPDX-License-Identifier: Apache-2.0
// ObjectMeta and what identifies an object. Values; only the fields that grus reads or writes.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/compact_string.h"
#include "clientlib/model/string_map.h"
#include "clientlib/model/time.h"

namespace kube {

struct FieldInfo;

// Namespace (empty for cluster-scoped kinds) and name.
struct ObjectKey {
  std::string ns;
  std::string name;
  std::string ToString() const { return ns.empty() ? name : ns + "/" + name; }
  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

struct OwnerReference {
  CompactString api_version, kind, name, uid;  // The same for all children: shared.
  std::optional<bool> controller = {}, block_owner_deletion = {};
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const OwnerReference&, const OwnerReference&) = default;
};

struct ObjectMeta {
  std::string name, ns, uid, resource_version;
  CompactString generate_name;
  std::int64_t generation = 0;
  std::optional<Time> creation_timestamp, deletion_timestamp;
  StringMap labels, annotations;  // Without kubectl's last-applied-configuration.
  std::vector<std::string> finalizers;
  std::vector<OwnerReference> owner_references;

  ObjectKey Key() const { return {ns, name}; }
  bool is_being_deleted() const { return deletion_timestamp.has_value(); }
  const OwnerReference* Controller() const;  // The reference with controller=true; null if none.
  std::string_view Label(std::string_view key) const { return labels.Get(key); }            // Empty if missing.
  std::string_view Annotation(std::string_view key) const { return annotations.Get(key); }  // Empty if missing.
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ObjectMeta&, const ObjectMeta&) = default;
};

}  // namespace kube

template <>
struct std::hash<kube::ObjectKey> {
  // Not noexcept: libstdc++ then caches each hash in its table, and a lookup does not hash the other keys in the bucket
  // again.
  std::size_t operator()(const kube::ObjectKey& key) const {
    return std::hash<std::string>()(key.name) * 31 + std::hash<std::string>()(key.ns);
  }
};
