// SPDX-License-Identifier: Apache-2.0
// How the lists and maps of built-in kinds merge. All other fields are unknown to the schemas: never pruned, never
// refused.
#pragma once

#include <memory>
#include <string_view>

#include "clientlib/testing/api_server/structural_schema.h"

namespace kube::testing {

// The schema of "Pod", "StatefulSet" and so on; of metadata alone for kinds without lists of their own. Parsed once.
std::shared_ptr<const StructuralSchema> BuiltinSchema(std::string_view kind);

// The schema of metadata, to be put into that of a CRD.
Json MetadataSchema();

}  // namespace kube::testing
