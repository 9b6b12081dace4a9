// SPDX-License-Identifier: Apache-2.0
// The stories of TrialJobs in the fault campaign.
#pragma once

#include "clientlib/testing/faults/campaign.h"

namespace grus::testing {

kube::testing::Workloads TrialWorkloads();

}  // namespace grus::testing
