// SPDX-License-Identifier: Apache-2.0
// Every kind that grus brings, for crdgen and for the check that the cluster knows them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/crd.h"

namespace api {

std::vector<kube::CrdInfo> AllCrds();

// Where crdgen writes the one named PLURAL.GROUP, in its folder. That of the older PodGroups is not among the others,
// and so not installed with them: where it is, kubectl takes "podgroups" for it.
std::string CrdFile(std::string_view name);

}  // namespace api
