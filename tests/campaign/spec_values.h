// SPDX-License-Identifier: Apache-2.0
// Values for fields of which the schema says no more than that they are objects: pod templates and the like.
#pragma once

#include <string_view>
#include <vector>

#include "clientlib/model/json.h"

namespace grus::testing {

// By the last name in `path`, "spec.workersSpec.template"; for a list, its items. Names that are not known here get an
// empty object and one with a field.
std::vector<kube::Json> FreeObjects(std::string_view path);

}  // namespace grus::testing
