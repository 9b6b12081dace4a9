// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/gpushare_contract.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "clientlib/model/json_writer.h"
#include "controllers/policy/cluster_objects.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/gpushare_gpus.h"
#include "crds/types/gpushare_names.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

// What the pod holds of each GPU of this node.
void AddPod(const kube::Pod& pod, const Resources& held, std::span<const GpushareGpu> gpus, InspectedNode& node) {
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const std::int64_t used = held.Extended(PartOn(api::kGpuMemResource, gpus[i].uuid));
    if (used > 0) node.gpus[i].pods.push_back({pod.metadata.name, pod.metadata.ns, used});
  }
}

void WriteGpu(const InspectedGpu& gpu, std::size_t id, kube::JsonWriter& writer) {
  writer.StartObject();
  writer.Key("id");
  writer.Int(static_cast<std::int64_t>(id));
  writer.Key("totalGPU");
  writer.Int(gpu.total);
  writer.Key("usedGPU");
  writer.Int(gpu.used);
  if (!gpu.is_in_use) {
    writer.Key("healthy");
    writer.Bool(false);
  }
  writer.Key("pods");
  writer.StartArray();
  for (const InspectedPod& pod : gpu.pods) {
    writer.StartObject();
    writer.Key("name");
    writer.String(pod.name);
    writer.Key("namespace");
    writer.String(pod.ns);
    writer.Key("usedGPU");
    writer.Int(pod.used);
    writer.EndObject();
  }
  writer.EndArray();
  writer.EndObject();
}

void WriteNode(const InspectedNode& node, kube::JsonWriter& writer) {
  std::int64_t total = 0, used = 0;
  for (const InspectedGpu& gpu : node.gpus) {
    total += gpu.total;
    used += gpu.used;
  }
  writer.StartObject();
  writer.Key("name");
  writer.String(node.name);
  writer.Key("totalGPU");
  writer.Int(total);
  writer.Key("usedGPU");
  writer.Int(used);
  writer.Key("devs");
  writer.StartArray();
  for (std::size_t i = 0; i < node.gpus.size(); ++i) WriteGpu(node.gpus[i], i, writer);
  writer.EndArray();
  writer.EndObject();
}

}  // namespace

std::int64_t GpuMemOf(const kube::Pod& pod) { return RequestOf(pod).Extended(api::kGpuMemResource); }

void AddGpushareAnnotations(const kube::Node& node, std::string_view gpu, std::int64_t gib, kube::WallTime now,
                            kube::Json& annotations) {
  const std::vector<GpushareGpu> gpus = GpushareGpusOf(node);
  const auto found = std::ranges::find(gpus, gpu, &GpushareGpu::uuid);
  if (found == gpus.end()) return;
  const auto at = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch());
  annotations[api::kGpushareIndex] = std::to_string(found - gpus.begin());
  annotations[api::kGpushareDevice] = std::to_string(found->gib);
  annotations[api::kGpusharePod] = std::to_string(gib);
  annotations[api::kGpushareAssigned] = "false";
  annotations[api::kGpushareAssumeTime] = std::to_string(at.count());
}

void ClearGpushareAnnotations(const kube::Pod& pod, kube::Json& annotations) {
  for (const char* name : {api::kGpushareIndex, api::kGpushareDevice, api::kGpusharePod, api::kGpushareAssigned,
                           api::kGpushareAssumeTime}) {
    if (!pod.metadata.Annotation(name).empty()) annotations[name] = "";
  }
}

std::vector<InspectedNode> Inspected(std::span<const std::shared_ptr<const kube::Node>> nodes,
                                     std::span<const std::shared_ptr<const kube::Pod>> pods, const HoldingsLook& look) {
  std::map<std::string_view, std::vector<std::size_t>> by_node;
  for (std::size_t at = 0; at < pods.size(); ++at) by_node[look.held_on[at]].push_back(at);
  std::vector<InspectedNode> inspected;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::vector<GpushareGpu> gpus = GpushareGpusOf(*nodes[i]);
    InspectedNode& node = inspected.emplace_back();
    node.name = nodes[i]->metadata.name;
    for (const GpushareGpu& gpu : gpus) {
      const std::string part = PartOn(api::kGpuMemResource, gpu.uuid);
      node.gpus.push_back({gpu.gib, std::max<std::int64_t>(look.taken[i].Extended(part), 0),
                           gpu.gib == 0 || look.offered[i].Extended(part) > 0});
    }
    for (const std::size_t at : by_node[node.name]) AddPod(*pods[at], look.held[at], gpus, node);
  }
  return inspected;
}

std::string InspectAnswer(std::span<const InspectedNode> nodes, std::string_view error) {
  kube::JsonWriter writer;
  writer.StartObject();
  writer.Key("nodes");
  writer.StartArray();
  for (const InspectedNode& node : nodes) WriteNode(node, writer);
  writer.EndArray();
  if (!error.empty()) {
    writer.Key("error");
    writer.String(error);
  }
  writer.EndObject();
  return writer.Take();
}

}  // namespace grus
