// SPDX-License-Identifier: Apache-2.0
// Every kind that grus brings, for crdgen and for the check that the cluster knows them.
#pragma once

#include <vector>

#include "clientlib/model/crd.h"

namespace api {

std::vector<kube::CrdInfo> AllCrds();

}  // namespace api
