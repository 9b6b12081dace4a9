// SPDX-License-Identifier: Apache-2.0
// The stories of PodGroup that the fault campaign plays.
#pragma once

#include "clientlib/testing/faults/campaign.h"
#include "tests/campaign/gang_invariants.h"

namespace grus::testing {

// `slack`: see GangRules.
kube::testing::Workloads GangWorkloads(kube::Duration slack = kFaultySlack,
                                       Nominations nominations = Nominations::kAuto);

}  // namespace grus::testing
