// SPDX-License-Identifier: Apache-2.0
// Edits of a custom object's spec, made from the schema of its CRD: a new field joins by itself. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"
#include "clientlib/model/json.h"

namespace grus::testing {

using kube::Json;

struct SpecEdit {
  std::string path;           // "spec.workersSpec.maxReplicas"
  std::optional<Json> value;  // None: the field is taken out.
  friend bool operator==(const SpecEdit&, const SpecEdit&) = default;
};

// Edits of every field below `schema.properties.spec`, whatever the rules of the schema say of them: values around
// limits, defaults and the integers that `object` has beside the field; each enum; other, empty, odd and longest
// strings; lists with an item more, one less and none; no value at all. None leaves `object` as it is.
std::vector<SpecEdit> EditsOf(const Json& schema, const Json& object);

// `object` with the edit made. REQUIRES: its path runs through objects.
Json Edited(Json object, const SpecEdit& edit);

// The message of the first of the schema's x-kubernetes-validations below `spec` that `object` breaks; empty: none. The
// fake API server does not evaluate them. Only the shape of ours is understood: !has(self.a.b) || self.a.b <= self.c.d.
// Throws std::invalid_argument on others: teach it.
std::string BrokenRule(const Json& schema, const Json& object);

// "spec.workersSpec.maxReplicas=8"; nothing after the '=': taken out. Several are parted by blanks.
std::string ToText(const std::vector<SpecEdit>& edits);
kube::Result<std::vector<SpecEdit>> ParseEdits(std::string_view text);

}  // namespace grus::testing
