// SPDX-License-Identifier: Apache-2.0
// What must hold of PodGroups and their members, at each revision and at rest.
#pragma once

#include <string>
#include <vector>

#include "tests/campaign/app_workload.h"

namespace grus::testing {

inline constexpr char kGroups[] = "podgroups.scheduling.x-k8s.io";

struct GangRules {
  kube::Duration slack = kFaultySlack;
  bool may_roll_back = false;
  int most_members = 0;  // So many are created in the whole story, at most. 0: chance.
};

// No gang has some, but fewer than its minimum, of its members on nodes for longer than its timeout and the slack,
// while there are pods for the rest. No gate is lifted while fewer than the minimum exist, unless the gang ran. No GPU,
// and no part of one, is given twice. No member that runs is ended before all that its gang lacks have been the
// scheduler's for its timeout. No Job is charged with a failure. No gang is rolled back, and no member made anew, but
// where the story has it (or the wall clock jumped). No part of a GPU is planned twice. Without faults no kubelet
// refuses a member, and no pods on nodes are given more of a GPU than it has.
std::vector<kube::testing::Invariant> GangInvariants(const GangRules& rules);

// At rest no gang is there in part, no gated member holds a node, and none is lifted in vain.
void CheckGangs(const World& world, std::vector<std::string>& complaints);

std::string GroupOf(const Json& pod);                    // Empty: it is no member.
bool IsGated(const Json& pod);                           // By us.
bool IsLift(const kube::testing::ServerChange& change);  // A gate of ours is taken away.

}  // namespace grus::testing
