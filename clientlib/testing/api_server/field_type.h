// SPDX-License-Identifier: Apache-2.0
// How one field of an object merges: its schema, where there is one. A value; the schema must outlive it.
//
// Without a schema, maps merge by key and lists are atomic. The root's metadata always has the schema of ObjectMeta.
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
  ListType list_type() const { return schema_ ? schema_->list_type() : ListType::kAtomic; }
  const StructuralSchema* schema() const { return schema_; }

 private:
  FieldType(const StructuralSchema* schema, bool is_root) : schema_(schema), is_root_(is_root) {}

  const StructuralSchema* schema_;
  bool is_root_;
};

// The members of `item` that are keys of `list`, as an object.
Json KeysOf(const StructuralSchema& list, const Json& item);

}  // namespace kube::testing
