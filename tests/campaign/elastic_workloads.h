// SPDX-License-Identifier: Apache-2.0
// The stories of ElasticHorovodJob that the fault campaign plays.
#pragma once

#include "clientlib/testing/faults/campaign.h"

namespace grus::testing {

kube::testing::Workloads ElasticWorkloads();

}  // namespace grus::testing
