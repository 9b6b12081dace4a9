// SPDX-License-Identifier: Apache-2.0
// PriorityClass: the fields that give a pod's priority. Never send one back whole. Values.
#pragma once

#include <cstdint>

#include "clientlib/model/kind.h"

namespace kube {

struct PriorityClass : Object {
  std::int32_t value = 0;
  bool global_default = false;  // Of pods that name no class.
  static const Kind& ResourceKind();
};

}  // namespace kube
