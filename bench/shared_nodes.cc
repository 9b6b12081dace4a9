// SPDX-License-Identifier: Apache-2.0
#include "bench/shared_nodes.h"

#include <string>

#include "crds/types/sharing_names.h"
#include "nodeagent/sharing/part_annotations.h"

namespace bench {
namespace {

using kube::Json;
using kube::KindOf;

constexpr std::int64_t kGpuMemoryMiB = 81'059;

std::vector<grus::SharedGpu> GpusNamedAfter(const std::string& node, int count, std::int64_t memory_mib) {
  std::vector<grus::SharedGpu> gpus;
  for (int i = 0; i < count; ++i) {
    gpus.push_back({.uuid = "GPU-" + node + "-" + std::to_string(i), .index = i, .memory_mib = memory_mib});
  }
  return gpus;
}

kube::Result<std::shared_ptr<const kube::Node>> ShareGpusOf(kube::Client& client, const kube::ObjectKey& node,
                                                            const std::vector<grus::SharedGpu>& gpus,
                                                            grus::SharingMode mode, grus::PartResource resource,
                                                            std::int64_t offered) {
  Json annotations = Json::MakeObject();
  for (const auto& [key, text] : grus::NodePartAnnotations(mode, gpus)) {
    if (!text.empty()) annotations["metadata"]["annotations"][key] = text;
  }
  auto written = client.Patch(KindOf<kube::Node>(), node, kube::PatchType::kMerge, annotations);
  if (!written) return std::move(written).error().with("patch Node " + node.name);
  Json status = Json::MakeObject();
  for (const char* where : {"capacity", "allocatable"}) {
    status["status"][where][std::string(NameOf(resource))] = std::to_string(offered);
  }
  written = client.Patch(KindOf<kube::Node>(), node, kube::PatchType::kMerge, status, {.subresource = "status"});
  if (!written) return std::move(written).error().with("patch the status of Node " + node.name);
  return std::static_pointer_cast<const kube::Node>(*written);
}

}  // namespace

kube::Result<std::vector<std::shared_ptr<const kube::Node>>> ShareGpus(kube::Client& client, int gpus_of_node) {
  auto nodes = client.List(
      KindOf<kube::Node>(), "",
      {.label_selector = std::string(api::kSharingModeLabel) + "=" + std::string(NameOf(grus::SharingMode::kMilli))});
  if (!nodes) return std::move(nodes).error();
  std::vector<std::shared_ptr<const kube::Node>> shared;
  for (const auto& node : nodes->items) {
    const std::string name(node->metadata.name);
    auto done = ShareGpusOf(client, {"", name}, GpusNamedAfter(name, gpus_of_node, kGpuMemoryMiB),
                            grus::SharingMode::kMilli, grus::PartResource::kMilli, grus::kMilliOfGpu * gpus_of_node);
    if (!done) return std::move(done).error();
    shared.push_back(*std::move(done));
  }
  return shared;
}

kube::Status ShareGpuMemory(kube::Client& client, int gpus_of_node, int gib) {
  auto nodes = client.List(KindOf<kube::Node>(), "");
  if (!nodes) return std::move(nodes).error();
  for (const auto& node : nodes->items) {
    const std::string name(node->metadata.name);
    auto done = ShareGpusOf(client, {"", name}, GpusNamedAfter(name, gpus_of_node, std::int64_t{gib} * 1024),
                            grus::SharingMode::kGpushare, grus::PartResource::kGpuMem, gpus_of_node * gib);
    if (!done) return std::move(done).error();
  }
  return {};
}

}  // namespace bench
