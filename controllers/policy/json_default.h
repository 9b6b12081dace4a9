// SPDX-License-Identifier: Apache-2.0
// A field where the user says nothing. Pure.
#pragma once

#include <span>
#include <string>

#include "clientlib/model/json.h"

namespace grus {

// Sets the field at `path`, unless it exists or something on the path is not an object. REQUIRES: a path.
void SetDefault(kube::Json& object, std::span<const std::string> path, const kube::Json& value);

}  // namespace grus
