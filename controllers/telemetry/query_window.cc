// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/query_window.h"

#include <utility>

#include "controllers/telemetry/pod_usage.h"

namespace grus {

std::string By(const std::string& aggregate, const std::string& labels, const std::string& series) {
  return aggregate + " by (" + labels + ") (" + series + ")";
}

QueryWindow::QueryWindow(std::string selector, std::int64_t seconds)
    : selector_(std::move(selector)), seconds_(seconds) {}

std::string QueryWindow::Of(const std::string& metric, const std::string& matchers) const {
  const bool has_both = !matchers.empty() && !selector_.empty();
  return metric + "{" + matchers + (has_both ? "," : "") + selector_ + "}";
}

std::string QueryWindow::Over(const std::string& function, const std::string& metric,
                              const std::string& matchers) const {
  return function + "(" + Of(metric, matchers) + "[" + std::to_string(seconds_) + "s])";
}

std::string QueryWindow::OverGpus(const std::string& aggregate, const std::string& labels, const std::string& dcgm,
                                  const std::string& agent) const {
  const std::string over = aggregate + "_over_time";
  return By(aggregate, labels,
            Over(over, dcgm) + " or (100 * " + By("max", "uuid", Over(over, agent)) + ") * on (uuid) group_right () " +
                UsersOfGpus(labels));
}

std::string QueryWindow::UsersOfGpus(const std::string& labels) const {
  return By("max", "uuid," + labels, Over("max_over_time", "grus_gpu_process_memory_bytes") + " >= bool 0");
}

std::string QueryWindow::AgentMemory(const std::string& labels) const {
  const std::string process = By("max", "uuid,pid," + labels, Of("grus_gpu_process_memory_bytes"));
  return By("max", labels,
            "max_over_time((" + By("sum", "uuid," + labels, process) + ")[" + std::to_string(seconds_) + "s:15s])");
}

std::string QueryWindow::OverContainers(const std::string& function, const std::string& metric,
                                        const std::string& condition) const {
  std::string parts;
  for (const std::string label : {"container", "exported_container", "container_label_io_kubernetes_container_name"}) {
    std::string matchers = label + "!=\"\"," + label + "!=\"POD\"";
    if (label == "container") matchers += ",exported_container=\"\",exported_pod=\"\"";
    parts += (parts.empty() ? "" : " or ") + Over(function, metric, matchers);
    if (!condition.empty()) parts += " and (" + Of(metric, matchers) + condition + ")";  // It binds more than "or".
  }
  const std::string labels =
      std::string("container,exported_container,container_label_io_kubernetes_container_name,cpu,device,") + kPodLabels;
  return By("sum", kPodLabels, By("max", labels, parts));
}

std::string QueryWindow::OverInterfaces(const std::string& metric) const {
  return By("sum", kPodLabels, By("max", std::string("interface,") + kPodLabels, Over("irate", metric)));
}

}  // namespace grus
