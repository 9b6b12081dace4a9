// SPDX-License-Identifier: Apache-2.0
// Jobs whose use a Prometheus tells, while it has faults, or the API server, or the manager.
#pragma once

#include "clientlib/testing/faults/campaign.h"

namespace grus::testing {

// Only Prometheus has faults (SweepQueries()), or the manager dies (SweepWrites()).
kube::testing::Workloads UsageStories();
// All have faults.
kube::testing::Workloads UsageUnderFaults();

}  // namespace grus::testing
