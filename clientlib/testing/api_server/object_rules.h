// SPDX-License-Identifier: Apache-2.0
// The rules for metadata that all kinds share.
#pragma once

#include <string_view>
#include <vector>

#include "clientlib/testing/api_server/api_error.h"
#include "clientlib/testing/api_server/resource_info.h"
#include "clientlib/testing/api_server/storage.h"

namespace kube::testing {

// Sets kind and apiVersion where they are missing; 400 if they differ.
Check CheckKind(const ResourceInfo& info, Json& object);

// Fields of built-in kinds that are null count as missing.
void RemoveNulls(Json& object);

// Removes unknown fields of metadata, and unknown fields beside it in built-in kinds; returns their paths.
std::vector<std::string> PruneEnvelope(const ResourceInfo& info, Json& object);

// Copies from `before` the metadata that only the server writes.
void CarryMetadata(const Json& before, Json& object);

// Why `name` cannot be an object's name; empty if it can.
std::string_view WhyNoSubdomain(std::string_view name);

std::vector<FieldError> ValidateMetadata(const ResourceInfo& info, const Json& object, const Json* before);

// True if something besides metadata and status differs.
bool IsNewGeneration(const ResourceInfo& info, const Json& before, const Json& after);

inline bool IsBeingDeleted(const Json& object) {
  const Json* const time = object.At({"metadata", "deletionTimestamp"});
  return time && !time->is_null();
}

}  // namespace kube::testing
