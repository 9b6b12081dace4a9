// SPDX-License-Identifier: Apache-2.0
#include "tests/nodeagent/cuda/sim_agent.h"

#include <memory>
#include <string>
#include <vector>

#include "nodeagent/limits/lending.h"

namespace grus::cuda {

SimNode::Agent LendingAgent() {
  return [lending = std::make_shared<Lending>()](std::uint64_t now, SimNode& node) {
    std::vector<TimeUse> uses;
    for (std::size_t i = 0; i < node.size(); ++i) {
      const GpuTime& time = node.time(i);
      uses.push_back({.container = std::to_string(i),
                      .milli = node.milli(i),
                      .charged = time.charged.load(),
                      .waited = time.waited.load(),
                      .busy = {}});
      for (const auto& slot : time.busy) uses.back().busy.push_back(slot.load());
    }
    const std::vector<std::uint32_t> rates = lending->Rates(now, uses);
    for (std::size_t i = 0; i < rates.size(); ++i) node.SetRate(i, rates[i]);
  };
}

}  // namespace grus::cuda
