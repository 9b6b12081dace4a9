// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/node_gpus.h"

#include <charconv>
#include <string>
#include <string_view>

#include "controllers/policy/workload_fingerprint.h"

namespace grus {

NodeGpus NodeGpusOf(const kube::Node& node) {
  NodeGpus gpus{.type = std::string(node.metadata.Label(kGpuProductLabel))};
  if (node.metadata.Label("nvidia.com/mig.strategy") == "mixed") return gpus;
  const std::string_view text = node.metadata.Label("nvidia.com/gpu.memory");  // MiB
  double mebibytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mebibytes);
  if (error == std::errc() && end == text.data() + text.size() && mebibytes > 0) gpus.memory = mebibytes * (1 << 20);
  return gpus;
}

std::optional<double> CoreLimitOf(const kube::Pod& pod) {
  double cores = 0;
  for (const kube::Container& container : pod.spec.containers) {
    const kube::Quantity* limit = kube::FindResource(container.resources.limits, "cpu");
    if (limit == nullptr) return std::nullopt;
    cores += limit->AsDouble();
  }
  return cores;
}

}  // namespace grus
