// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/top_parts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "clientlib/base/printable.h"
#include "controllers/kubectl/table.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

constexpr char kUnknown[] = "unknown", kNone[] = "-";
constexpr std::int64_t kMilliOfGpu = 1000;
constexpr std::size_t kLongestWord = 63;

// What one GPU's lines tell of one container.
struct PartLine {
  PartUser user = {};
  std::optional<NotedPart> part = {};  // None: it has none.
  std::string enforcement = {};
};

struct NodeParts {
  std::optional<std::vector<OfferedGpu>> gpus = {};  // None: its annotation makes no sense.
  bool is_offering = false;
  std::map<std::string, std::vector<PartLine>> by_gpu = {};  // By UUID.
  std::vector<PartLine> unknown = {};                        // Pods whose annotation makes no sense.
};

std::string MiB(std::int64_t mib) { return BytesText(static_cast<double>(mib) * (1 << 20)); }

std::string Word(std::string_view annotation) {
  if (annotation.empty()) return kNone;
  return annotation.size() > kLongestWord ? kUnknown : kube::Printable(annotation);
}

bool HasEnded(const PartPod& pod) { return pod.status.phase == "Succeeded" || pod.status.phase == "Failed"; }

void AddPod(const PartPod& pod, NodeParts& node) {
  const std::string enforcement = Word(pod.metadata.Annotation(api::kEnforcementAnnotation));
  const auto parts = ParseNotedParts(pod.metadata.Annotation(api::kHeldGpusAnnotation));
  if (!parts) {
    node.unknown.push_back({{pod.metadata.Key(), kNone, kUnknown}, std::nullopt, enforcement});
    return;
  }
  for (const NotedPart& part : *parts) {
    node.by_gpu[part.gpu].push_back({{pod.metadata.Key(), part.container, part.gpu}, part, enforcement});
  }
}

std::map<std::string, NodeParts> Collect(const PartsView& view) {
  std::map<std::string, NodeParts> nodes;
  for (const auto& node : view.nodes) {
    const std::string_view inventory = node->metadata.Annotation(api::kGpuInventoryAnnotation);
    if (inventory.empty()) continue;
    NodeParts& parts = nodes[node->metadata.name];
    parts.is_offering = true;
    parts.gpus = ParseInventory(inventory);
  }
  for (const auto& pod : view.pods) {
    if (HasEnded(*pod) || pod->spec.node_name.empty()) continue;
    if (!pod->metadata.Annotation(api::kHeldGpusAnnotation).empty()) AddPod(*pod, nodes[pod->spec.node_name]);
  }
  return nodes;
}

// Those who use a GPU of this node without a part of it.
void AddPartless(const PartUses& uses, std::map<std::string, NodeParts>& nodes) {
  std::map<std::string, NodeParts*> by_gpu;
  for (auto& [name, node] : nodes) {
    if (!node.gpus) continue;
    for (const OfferedGpu& gpu : *node.gpus) by_gpu.emplace(gpu.uuid, &node);
  }
  for (const auto& [user, use] : uses) {
    const auto node = by_gpu.find(user.gpu);
    if (use.is_partless && node != by_gpu.end())
      node->second->by_gpu[user.gpu].push_back({user, std::nullopt, "no part"});
  }
}

class PartTable {
 public:
  explicit PartTable(const PartsView& view) : view_(view) {}

  void AddNode(const std::string& name, NodeParts& node) {
    if (node.is_offering && !node.gpus)
      rows_.push_back({name, kUnknown, kNone, "(unknown)", kNone, kNone, kNone, kNone, kNone});
    if (node.gpus) {
      for (std::size_t i = 0; i < node.gpus->size(); ++i) {
        const OfferedGpu& gpu = (*node.gpus)[i];
        std::vector<PartLine> lines;
        if (const auto found = node.by_gpu.extract(gpu.uuid)) lines = found.mapped();
        AddLines(name, std::to_string(i), lines);
        AddFree(name, std::to_string(i), gpu, lines);
      }
    }
    for (auto& [uuid, lines] : node.by_gpu) AddLines(name, uuid, lines);  // It does not offer them any more.
    AddLines(name, kUnknown, node.unknown);
  }
  std::string Text() const {
    std::vector<std::vector<std::string>> rows{
        {"NODE", "GPU", "NAMESPACE", "POD", "CONTAINER", "MILLI", "MEMORY", "UTIL", "ENFORCEMENT"}};
    rows.insert(rows.end(), rows_.begin(), rows_.end());
    return TableText(rows);
  }
  bool is_empty() const { return rows_.empty(); }

 private:
  void AddLines(const std::string& node, const std::string& gpu, std::vector<PartLine>& lines) {
    std::ranges::sort(lines, {}, &PartLine::user);
    for (const PartLine& line : lines) {
      if (!view_.ns.empty() && line.user.pod.ns != view_.ns) continue;
      const auto found = view_.uses.find(line.user);
      static const PartUse kUnused;
      const PartUse& use = found == view_.uses.end() ? kUnused : found->second;
      const std::string used = use.memory_bytes ? BytesText(*use.memory_bytes) : kNone;
      const std::string milli = !line.part ? (use.is_partless ? "0" : kNone) : std::to_string(line.part->milli);
      const std::string limit = !line.part ? (use.is_partless ? "0" : kNone) : MiB(line.part->memory_mib);
      const std::string util =
          use.sm_ratio ? std::to_string(std::lround(std::min(*use.sm_ratio, 1.0) * 100)) + "%" : kNone;
      rows_.push_back({node, gpu, line.user.pod.ns, line.user.pod.name, kube::Printable(line.user.container), milli,
                       used + "/" + limit, util, line.enforcement});
    }
  }

  void AddFree(const std::string& node, const std::string& index, const OfferedGpu& gpu,
               const std::vector<PartLine>& lines) {
    std::int64_t milli = kMilliOfGpu, memory_mib = gpu.memory_mib;
    for (const PartLine& line : lines) {
      if (!line.part) continue;
      milli = std::max<std::int64_t>(0, milli - line.part->milli);
      memory_mib = std::max<std::int64_t>(0, memory_mib - line.part->memory_mib);
    }
    const bool is_known = view_.has_all_pods;
    rows_.push_back({node, index, kNone, gpu.is_healthy ? "(free)" : "(sick)", kNone,
                     is_known && gpu.counts_milli ? std::to_string(milli) : kNone, is_known ? MiB(memory_mib) : kNone,
                     kNone, kNone});
  }

  const PartsView& view_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace

std::string TopPartsText(const PartsView& view) {
  std::map<std::string, NodeParts> nodes = Collect(view);
  AddPartless(view.uses, nodes);
  PartTable table(view);
  for (auto& [name, node] : nodes) table.AddNode(name, node);
  if (!table.is_empty()) return table.Text();
  return "no node offers parts of GPUs; label one with " + std::string(api::kSharingModeLabel) + "\n";
}

std::vector<std::string> NodesWithParts(const PartsView& view) {
  std::vector<std::string> names;
  for (const auto& [name, node] : Collect(view)) names.push_back(name);
  return names;
}

}  // namespace grus
