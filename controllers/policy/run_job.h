// SPDX-License-Identifier: Apache-2.0
// The object that a WorkloadRun is of, from its name "KIND/NAMESPACE/NAME". Pure.
#pragma once

#include <string>

#include "clientlib/model/meta.h"

namespace grus {

struct RunJob {
  std::string kind = {};
  kube::ObjectKey key = {};  // Empty if the name is not complete.
};

RunJob RunJobOf(const std::string& name);

}  // namespace grus
