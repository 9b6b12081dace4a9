// SPDX-License-Identifier: Apache-2.0
// Words of which the stories of gangs are made.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/campaign/gang_workload.h"

namespace grus::testing {

using GangStory = GangWorkload::Traits;
using Act = std::function<void(World&)>;

inline constexpr char kGang[] = "gang";  // Of the stories with one gang alone.

void AddNodes(World& world, int nodes, int gpus);
// A gang of one StatefulSet.
void SubmitGang(World& world, int min_member, int replicas, int gpus, int seconds = kLongTimeout,
                const std::string& name = kGang);

// One that grus knows nothing of: from now on it binds what is its own ("schedulerName": "other"), until kGang runs.
void StartOtherScheduler(World& world);

Act AddsNode(std::string name, int gpus);
Step UntilRuns(int members, Act act = nullptr, const std::string& gang = kGang);
Step UntilWaits(int members, Act act, const std::string& gang = kGang);
Step UntilPodRuns(const std::string& pod, Act act = nullptr);

}  // namespace grus::testing
