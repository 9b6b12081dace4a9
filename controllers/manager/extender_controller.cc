// SPDX-License-Identifier: Apache-2.0
#include "controllers/manager/extender_controller.h"

#include <vector>

namespace grus {

ExtenderController::ExtenderController(const Shared& with, kube::Registry& metrics)
    : advisor(with.client, {with.pods, with.nodes, with.profiles, with.jobs, with.options.profile_trust}, with.account,
              with.events, with.clock, with.log),
      interference(
          *with.profiles, with.options.told_co_runs,
          [this](std::shared_ptr<const InterferenceModel> model) { advisor.SetModel(std::move(model)); }, with.clock,
          with.log),
      extender(with.client, with.pods, with.nodes, with.account, with.clock, with.log, metrics) {
  extender.refused_pods().FeedQueue(with.Run(extender.refused_pods(), "refused-pods", 1));
  interference.FeedQueue(with.Run(interference, "interference", 1));
  extender.SetAdvisor(advisor);
  if (with.options.usage_prometheus.empty()) return;
  prometheus.emplace(with.to_prometheus, with.clock, std::vector{with.options.usage_prometheus});
  utilization.emplace(
      *prometheus,
      UtilizationSource{with.options.usage_prometheus, with.options.usage_selector, with.options.gpu_weights},
      with.clock, with.log);
  utilization->FeedQueue(with.Run(*utilization, "utilization", 1));
  extender.SetUtilization(*utilization);
}

}  // namespace grus
