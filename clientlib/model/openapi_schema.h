// SPDX-License-Identifier: Apache-2.0
// Structural OpenAPI v3 schemas, as CustomResourceDefinitions need them, from the tables of field.h.
// Pure functions on values.
#pragma once

#include <span>
#include <string_view>

#include "clientlib/model/field.h"
#include "clientlib/model/json.h"

namespace kube {

// The schema of an object with `fields`. A Json member keeps whatever it is given. REQUIRES: no struct contains itself:
// structural schemas cannot express that.
Json SchemaOf(std::span<const FieldInfo> fields, std::string_view doc = {}, std::span<const CelRule> cel = {});

// The schema of one field, its rules included.
Json SchemaOf(const FieldInfo& field);

}  // namespace kube
