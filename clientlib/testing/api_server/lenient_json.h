// SPDX-License-Identifier: Apache-2.0
// JSON as the API server reads it: of two equal keys the last counts. (kube::ParseJson refuses them.)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"
#include "clientlib/model/json.h"

namespace kube::testing {

// `duplicates`: paths of keys that occur more than once ("data.k"). Errors as ParseJson().
Result<Json> ParseLenientJson(std::string_view text, std::vector<std::string>& duplicates);

}  // namespace kube::testing
