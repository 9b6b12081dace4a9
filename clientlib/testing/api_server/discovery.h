// SPDX-License-Identifier: Apache-2.0
// Discovery: the server's version, groups and resources.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clientlib/http/transport.h"
#include "clientlib/testing/api_server/storage.h"

namespace kube::testing {

// The answer to a GET of `path`; nothing if it is not a discovery path.
std::optional<HttpResponse> Discover(const Storage& storage, const std::vector<std::string>& path);

}  // namespace kube::testing
