// SPDX-License-Identifier: Apache-2.0
// The stories of lone pods and grus's extender that the fault campaign plays, and whether their rules ask enough.
#pragma once

#include <string>
#include <vector>

#include "clientlib/testing/faults/campaign.h"

namespace grus::testing {

kube::testing::Workloads LonePartStories();

}  // namespace grus::testing
