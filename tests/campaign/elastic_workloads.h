// SPDX-License-Identifier: Apache-2.0
// The stories of ElasticHorovodJob that the fault campaign plays.
#pragma once

#include "clientlib/testing/faults/campaign.h"
#include "tests/campaign/app_workload.h"

namespace grus::testing {

// `slack`: how long a job may say what is no longer so (ElasticInvariants()).
kube::testing::Workloads ElasticWorkloads(kube::Duration slack = kFaultySlack);

}  // namespace grus::testing
