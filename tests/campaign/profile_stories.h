// SPDX-License-Identifier: Apache-2.0
// Stories of running jobs whose speed is compared with a WorkloadProfile, for the fault campaign.
#pragma once

#include "clientlib/testing/faults/campaign.h"

namespace grus::testing {

kube::testing::Workloads ProfileStories();

}  // namespace grus::testing
