// SPDX-License-Identifier: Apache-2.0
// From JSON tokens to C++ values, by the tables of field.h.
//
// Errors name the field: `spec.workersSpec.minReplicas: expected an integer, found a string`. Thread-safe.
#pragma once

#include <span>
#include <string_view>

#include "clientlib/model/field.h"
#include "clientlib/model/json.h"

namespace kube {

struct JsonToken;

// Reads `token`, an object, into the struct at `target` that `fields` describes. Fields that are missing keep
// their values. After an error the struct is half read.
Status ReadStruct(std::span<const FieldInfo> fields, const JsonToken& token, void* target);

// Reads any JSON text into a struct with Fields(): files, bodies that are no API objects.
Status ReadText(std::span<const FieldInfo> fields, std::string_view text, void* target, const JsonLimits& limits = {});

template <typename T>
Result<T> ReadText(std::string_view text, const JsonLimits& limits = {}) {
  T value;
  if (Status read = ReadText(T::Fields(), text, &value, limits); !read) return std::move(read).error();
  return value;
}

namespace internal {
// Errors: kDecode if a key is given twice; kTooLarge if `token` nests deeper than `max_depth`, since values are built
// and destroyed recursively.
Status JsonFromToken(const JsonToken& token, Json& json, int max_depth);
}  // namespace internal

}  // namespace kube
