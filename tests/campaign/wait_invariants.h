// SPDX-License-Identifier: Apache-2.0
// What must hold of PodGroups and ElasticHorovodJobs that wait for room: of what they are told, and of the room.
#pragma once

#include <vector>

#include "tests/campaign/app_workload.h"

namespace grus::testing {

// None of these for longer than `slack` and a sentence's patience: what it is told names nobody and nothing that could
// end the wait, or somebody who holds nothing and is not there, or a time that is over; or it waits while the GPUs that
// it needs are free and kept for nobody. And while a gang is told that what becomes free is kept for it, no other gang
// or job gets a node on its account.
std::vector<kube::testing::Invariant> WaitInvariants(kube::Duration slack);

}  // namespace grus::testing
