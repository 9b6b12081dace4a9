// SPDX-License-Identifier: Apache-2.0
// Parts of queries (PromQL) over one window, of the series that an administrator trusts. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace grus {

// The labels by which exporters of GPUs name a pod.
inline constexpr char kGpuPod[] = "namespace,pod,exported_namespace,exported_pod";

// A rate needs two samples: scrapes of up to a minute have them. Only the newest two count (irate): over a window that
// a young container does not fill, rate() is too low.
inline constexpr std::int64_t kShortestRate = 120;

// AGGREGATE by (LABELS) (SERIES)
std::string By(const std::string& aggregate, const std::string& labels, const std::string& series);

class QueryWindow {
 public:
  // `selector`: as of UsageQueries(). `seconds`: how far it looks back.
  QueryWindow(std::string selector, std::int64_t seconds);

  // METRIC{MATCHERS}
  std::string Of(const std::string& metric, const std::string& matchers = {}) const;
  // FUNCTION(METRIC{MATCHERS}[WINDOW])
  std::string Over(const std::string& function, const std::string& metric, const std::string& matchers = {}) const;

  // By `labels`. `dcgm`: of dcgm-exporter, in percent, with the labels of the pod. `agent`: a ratio of grus-node-agent,
  // whose processes say which pods use the GPU.
  std::string OverGpus(const std::string& aggregate, const std::string& labels, const std::string& dcgm,
                       const std::string& agent) const;
  // 1 for each of `labels` with a process on the GPU, and its UUID.
  std::string UsersOfGpus(const std::string& labels) const;
  // Of all processes of a pod on a GPU at a time, their most, by `labels`; successive ones do not add up.
  std::string AgentMemory(const std::string& labels) const;

  // Of containers, not of the pods that hold them, which count them again: as the kubelet's cAdvisor names them, with
  // and without honorLabels, and one that runs by itself. What several scrapes tell of counts once. `condition`: of the
  // metric itself, as " > 0".
  std::string OverContainers(const std::string& function, const std::string& metric,
                             const std::string& condition = {}) const;
  // The network is the pod's: no container has it.
  std::string OverInterfaces(const std::string& metric) const;

 private:
  const std::string selector_;
  const std::int64_t seconds_;
};

}  // namespace grus
