// SPDX-License-Identifier: Apache-2.0
// What a CustomResourceDefinition makes the server serve.
#pragma once

#include <memory>

#include "clientlib/testing/api_server/api_error.h"
#include "clientlib/testing/api_server/resource_info.h"

namespace kube::testing {

// The storage version of `definition`. Errors: 422 if its schema is not structural.
Outcome<std::shared_ptr<const ResourceInfo>> InfoFromDefinition(const Json& definition);

// Fields of `object` that its schema does not know: "spec.foo", "spec.parts[0].bar". In order.
std::vector<std::string> UnknownFields(const StructuralSchema& schema, const Json& object);

// The resource of CustomResourceDefinitions, and the finalizer of their clean-up.
inline constexpr std::string_view kDefinitions = "customresourcedefinitions";
inline constexpr std::string_view kDefinitionGroup = "apiextensions.k8s.io";
inline constexpr std::string_view kDefinitionFinalizer = "customresourcecleanup.apiextensions.k8s.io";

}  // namespace kube::testing
