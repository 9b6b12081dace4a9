// SPDX-License-Identifier: Apache-2.0
// What must hold of the runs in WorkloadProfiles, at each revision and at rest.
#pragma once

#include <string>
#include <vector>

#include "tests/campaign/app_workload.h"

namespace grus::testing {

inline constexpr char kProfiles[] = "workloadprofiles.ai.centauruscloud.io";

// kExact: only Prometheus has faults. kDeaths: the manager dies once; what it knew and had not written may be missing.
// kLoose: all have faults; what nobody saw may be missing, and what is seen may come late.
enum class UsageJudgement { kExact, kDeaths, kLoose };

// A run is of a job that was there, and in one profile only; a profile has 32 at most. Its start, end, GPUs and GPU
// seconds are those of the job's pods. Its numbers are some that the pods showed: none is higher than they ever were,
// or zero because nobody knew. What it is was said because series of it were told. One whose job has no pods any more
// has an end.
std::vector<kube::testing::Invariant> UsageInvariants(UsageJudgement judgement);

// At rest, when no job has pods that run: each that numbers were told of has one run, and that has all of them; with
// kLoose, it may lack some.
void CheckUsage(const World& world, UsageJudgement judgement, std::vector<std::string>& complaints);

}  // namespace grus::testing
