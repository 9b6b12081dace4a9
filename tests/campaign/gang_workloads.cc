// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/gang_workloads.h"

#include <memory>
#include <utility>

#include "tests/campaign/gang_jobs.h"
#include "tests/campaign/gang_lives.h"
#include "tests/campaign/gang_parts.h"
#include "tests/campaign/gang_protection.h"
#include "tests/campaign/gang_queues.h"

namespace grus::testing {

kube::testing::Workloads GangWorkloads(kube::Duration slack, Nominations nominations) {
  kube::testing::Workloads workloads;
  for (const auto& stories : {GangLives(), GangProtection(), GangsOfJobs(), GangQueues(), GangsOfParts()}) {
    for (GangStory story : stories) {
      story.rules.slack = slack;
      if (nominations != Nominations::kAuto) story.nominations = nominations;
      workloads.push_back(std::make_unique<GangWorkload>(std::move(story)));
    }
  }
  return workloads;
}

}  // namespace grus::testing
