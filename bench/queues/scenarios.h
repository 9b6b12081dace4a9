// SPDX-License-Identifier: Apache-2.0
// What is played through each side, and what is measured.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/queues/job_watch.h"
#include "bench/queues/mix_sides.h"
#include "clientlib/client/client.h"
#include "tests/kit/child_process.h"

namespace bench {

struct MixWorld {
  kube::Client& client;
  JobWatch& watch;
  const kube::Clock& clock;
  int gpus = 0;
  double day_seconds = 120;
  std::uint64_t seed = 1;
  std::string kubectl;  // A shell command.
  int threads = 8;      // That create objects.
};

// In the order of the table.
using MixFigures = std::vector<std::pair<std::string, double>>;

std::vector<std::string> MixScenarios();
// With the side's programs and manifests for as long as it takes. False and a message if a part did not finish; the
// figures until then stand.
bool RunMixScenario(const MixWorld& world, const MixSide& side, const std::string& scenario, MixFigures& figures);

}  // namespace bench
