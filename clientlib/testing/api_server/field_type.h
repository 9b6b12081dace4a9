// SPDX-License-Identifier: Apache-2.0
// How one field of an object merges: its schema, where there is one. A value; the schema must outlive it.
//
// Without a schema, maps merge by key and lists are atomic. The root's metadata has the schema of ObjectMeta
// always.
#pragma once

#include <string>
#include <string_view>

#include "clientlib/testing/api_server/structural_schema.h"

namespace kube::testing {

class FieldType {
 public:
  using ListType = StructuralSchema::ListType;

  static FieldType Root(const StructuralSchema* schema) { return FieldType(schema, true); }

  FieldType Field(std::string_view name) const;
  FieldType Item() const { return FieldType(schema_ ? schema_->Items() : nullptr, false); }
  bool IsNamed(std::string_view name) const;  // A field of a struct, not a key of a map.
  bool is_atomic_map() const { return schema_ && schema_->is_atomic_map(); }
  ListType list_type() const { return schema_ ? schema_->list_type() : ListType::kAtomic; }
  const StructuralSchema* schema() const { return schema_; }

  // The path element of a list's item, k:{...} or v:...; empty if the item has no key. REQUIRES: no atomic
  // list.
  std::string ElementOf(const Json& item) const;
  // Whether two items of this list have equal path elements, without writing them. REQUIRES: no atomic list.
  bool IsSameItem(const Json& a, const Json& b) const;
  // Whether each item has a key. One that has none makes the list atomic.
  bool IsMergeable(const Json::Array& items) const;

 private:
  FieldType(const StructuralSchema* schema, bool is_root) : schema_(schema), is_root_(is_root) {}
  // The value of a list item's key, defaulted; null: none.
  const Json* KeyOf(const Json& item, std::string_view key) const;

  const StructuralSchema* schema_;
  bool is_root_;
};

// The members of `item` that are keys of `list`, as an object.
Json KeysOf(const StructuralSchema& list, const Json& item);

}  // namespace kube::testing
