// SPDX-License-Identifier: Apache-2.0
// Whole lives of TrialJobs, for campaign --sweep: the manager is killed at every write of them.
#pragma once

#include "clientlib/testing/faults/campaign.h"

namespace grus::testing {

kube::testing::Workloads TrialLives();

}  // namespace grus::testing
