// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_annotations.h"

#include <algorithm>
#include <set>
#include <utility>

#include "clientlib/model/json.h"
#include "crds/types/sharing_names.h"
#include "nodeagent/sharing/gpushare.h"

namespace grus {
namespace {

using kube::Json;

template <typename List>
std::string Joined(const List& list) {
  std::string text;
  for (const std::string& one : list) text.append(text.empty() ? "" : ",").append(one);
  return text;
}

// The ids of memory, as the original has them. Thousandths are too many to be listed.
std::string IdText(std::span<const HeldParts> parts) {
  std::vector<PartId> ids;
  std::set<std::string> gpus;
  bool has_others = false;
  for (const HeldParts& part : parts) {
    has_others = has_others || !part.claimed.empty();
    for (const GpuPart& claimed : part.claimed) gpus.insert(claimed.gpu);
    for (const auto& [resource, list] : part.ids) {
      for (const PartId& id : list) gpus.insert(id.gpu);
      if (resource == PartResource::kMemory) ids.insert(ids.end(), list.begin(), list.end());
      else if (!part.ids.contains(PartResource::kMemory)) has_others = true;
    }
  }
  std::ranges::sort(ids);
  std::vector<std::string> texts;
  for (const PartId& id : ids) texts.push_back(ToText(id));
  std::string text = Joined(texts);
  return has_others || text.size() > kLongestIdList ? Joined(gpus) : text;
}

Json GpuOf(const GpuPart& part) {
  return Json::MakeObject({{"gpu", part.gpu}, {"milli", part.milli}, {"memoryMiB", part.memory_mib}});
}

// REQUIRES: it holds something.
Json GpusOf(const HeldParts& held, std::span<const SharedGpu> gpus) {
  const std::vector<GpuPart> parts = PartsByGpu(held, gpus);
  Json json = GpuOf(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) json["more"].Append(GpuOf(parts[i]));
  if (held.overrides_gpu && !held.ids.empty()) json["overridden"] = true;
  return json;
}

}  // namespace

std::string EnforcementOf(std::span<const HeldParts> parts) {
  const Enforcement way = parts.empty() ? Enforcement::kNone : parts.front().enforcement;
  const bool are_all = std::ranges::all_of(parts, [&](const HeldParts& part) { return part.enforcement == way; });
  return std::string(NameOf(are_all ? way : Enforcement::kNone));
}

AnnotationTexts PodPartAnnotations(std::span<const HeldParts> parts, std::span<const SharedGpu> gpus) {
  AnnotationTexts texts = {{kAlnairGpuIdAnnotation, ""},
                           {kAlnairIdAnnotation, ""},
                           {api::kHeldGpusAnnotation, ""},
                           {api::kEnforcementAnnotation, ""}};
  if (parts.empty()) return texts;
  std::map<std::string, Json> by_container;  // In a fixed order.
  for (const HeldParts& part : parts) by_container[part.container] = GpusOf(part, gpus);
  Json containers = Json::MakeObject();
  std::vector<std::string> names;
  for (auto& [name, gpu] : by_container) {
    containers[name] = std::move(gpu);
    names.push_back(name);
  }
  texts[kAlnairGpuIdAnnotation] = IdText(parts);
  texts[kAlnairIdAnnotation] = Joined(names);
  texts[api::kHeldGpusAnnotation] = kube::ToText(containers);
  texts[api::kEnforcementAnnotation] = EnforcementOf(parts);
  texts.merge(GpushareAnnotations(parts, gpus));
  return texts;
}

AnnotationTexts NodePartAnnotations(SharingMode mode, std::span<const SharedGpu> gpus) {
  AnnotationTexts texts = {{kPhysicalGpuCountAnnotation, ""},
                           {kPhysicalGpuUuidsAnnotation, ""},
                           {kVirtualGpuCountAnnotation, ""},
                           {api::kGpuInventoryAnnotation, ""}};
  if (mode == SharingMode::kNone) return texts;
  Json inventory = Json::MakeArray();
  std::vector<std::string> uuids;
  std::int64_t parts = 0;
  for (const SharedGpu& gpu : gpus) {
    Json& one = inventory.Append(Json::MakeObject(
        {{"uuid", gpu.uuid}, {"memoryMiB", gpu.memory_mib}, {"milli", kMilliOfGpu}, {"mode", NameOf(mode)}}));
    if (!gpu.is_healthy) one["healthy"] = false;
    uuids.push_back(gpu.uuid);
    parts += gpu.count(PartResource::kMemory);
  }
  texts[api::kGpuInventoryAnnotation] = kube::ToText(inventory);
  if (mode != SharingMode::kAlnair) return texts;
  texts[kPhysicalGpuCountAnnotation] = std::to_string(gpus.size());
  texts[kPhysicalGpuUuidsAnnotation] = Joined(uuids);
  texts[kVirtualGpuCountAnnotation] = std::to_string(parts);
  return texts;
}

}  // namespace grus
