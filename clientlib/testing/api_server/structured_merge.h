// SPDX-License-Identifier: Apache-2.0
// Objects as sets of fields: what differs, what is owned by writing a value, merging two values, taking
// fields out (sigs.k8s.io/structured-merge-diff/typed). Pure functions.
#pragma once

#include "clientlib/model/json.h"
#include "clientlib/testing/api_server/field_set.h"
#include "clientlib/testing/api_server/field_type.h"

namespace kube::testing {

struct Comparison {
  FieldSet changed;  // Added, or with another value.
  FieldSet removed;
};

// Null pointers stand for a value that is not there.
Comparison Compare(const FieldType& type, const Json* before, const Json* after);

// What a manager owns who applies `value`: the leaves, the items of lists and the keys of maps.
FieldSet FieldsOf(const FieldType& type, const Json& value);

// `config` over `live`, as apply merges. Items that both have take the order of `config`, others that of
// `live`.
Json Merge(const FieldType& type, Json live, const Json& config);

// Takes out the fields of `set`. Maps and lists that are emptied by that go too (the server leaves null there, and then
// refuses its own result where the schema forbids null).
void RemoveFields(const FieldType& type, Json& value, const FieldSet& set);

// Adds the named fields above the members of `set`, which a set does not contain otherwise.
void AddNamedFields(const FieldType& type, FieldSet& set);

}  // namespace kube::testing
