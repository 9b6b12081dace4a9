// SPDX-License-Identifier: Apache-2.0
// Paths of the Kubernetes API: "/apis/apps/v1/namespaces/team-a/statefulsets/bert-workers/scale".
// Pure functions on values.
#pragma once

#include <string>
#include <string_view>

#include "clientlib/model/kind.h"

namespace kube {

// The collection of `kind` in namespace `ns`; all namespaces if `ns` is empty.
std::string CollectionPath(const Kind& kind, std::string_view ns);
std::string ObjectPath(const Kind& kind, const ObjectKey& key, std::string_view subresource = {});

struct ListOptions;
// The path of a list, with its query.
std::string ListPath(const Kind& kind, std::string_view ns, const ListOptions& options);

}  // namespace kube
