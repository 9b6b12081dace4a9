// SPDX-License-Identifier: Apache-2.0
// Sets of field paths, in the FieldsV1 form of metadata.managedFields.
//
// A FieldSet is a tree of JSON objects whose keys are path elements: f:NAME a field, k:{...} a list item by
// its keys, v:VALUE a set's item. null: nothing; {}: this field itself; ".": itself too, beside what is
// below. Invariants, which sets from a server have: keys are sorted ("." comes first); no null inside.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/json.h"

namespace kube::testing {

using FieldSet = Json;

bool HasSelf(const FieldSet& set);
void AddSelf(FieldSet& set);
// Adds `below` under `element`; nothing if `below` is empty.
void AddBelow(FieldSet& set, std::string element, FieldSet below);
// What is under `element`; null: nothing.
const FieldSet* Below(const FieldSet& set, std::string_view element);

void Unite(FieldSet& set, const FieldSet& other);
void Subtract(FieldSet& set, const FieldSet& other);
FieldSet Intersect(const FieldSet& a, const FieldSet& b);

// Each path as the server prints it: ".spec.containers[name=\"app\"].image".
std::vector<std::string> PathsOf(const FieldSet& set);

}  // namespace kube::testing
