// SPDX-License-Identifier: Apache-2.0
// Whole lives of TrialJobs. For campaign --sweep the manager is killed at every write of them; for random schedules
// they have names of their own, and what a fault may rightly change of an end is not compared.
#pragma once

#include "clientlib/testing/faults/campaign.h"

namespace grus::testing {

kube::testing::Workloads TrialLives();
kube::testing::Workloads TrialLivesUnderFaults();

}  // namespace grus::testing
