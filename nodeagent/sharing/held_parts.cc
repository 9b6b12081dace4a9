// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/held_parts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "crds/types/part_memory.h"

namespace grus {
namespace {

// One for each GPU, by UUID.
std::vector<GpuPart> Merged(const std::vector<std::string>& cdi_ids, const ClaimedParts& claimed) {
  std::map<std::string, GpuPart> by_gpu;
  if (!claimed) return {};
  for (const std::string& id : cdi_ids) {
    for (const GpuPart& part : claimed(id)) {
      GpuPart& sum = by_gpu[part.gpu];
      sum = {part.gpu, sum.milli + part.milli, sum.memory_mib + part.memory_mib};
    }
  }
  std::vector<GpuPart> parts;
  for (auto& [gpu, part] : by_gpu) parts.push_back(std::move(part));
  return parts;
}

}  // namespace

PartAmounts HeldParts::amounts() const {
  PartAmounts amounts;
  for (const auto& [resource, list] : ids) amounts[resource] = static_cast<std::int64_t>(list.size());
  return amounts;
}

PartAmounts HeldParts::amounts_on(const std::string& gpu) const {
  PartAmounts amounts;
  for (const auto& [resource, list] : ids) amounts[resource] = std::ranges::count(list, gpu, &PartId::gpu);
  return amounts;
}

bool HeldParts::has_whole_gpus() const {
  return ids.size() == 1 && AreWholeGpus(ids.begin()->first, ids.begin()->second);
}

std::vector<std::string> HeldParts::gpus() const {
  std::set<std::string> gpus;
  for (const auto& [resource, list] : ids) {
    for (const PartId& id : list) gpus.insert(id.gpu);
  }
  for (const GpuPart& part : claimed) gpus.insert(part.gpu);
  return {gpus.begin(), gpus.end()};
}

std::vector<GpuPart> PartsByGpu(const HeldParts& held, std::span<const SharedGpu> gpus) {
  std::vector<GpuPart> parts;
  std::vector<std::string> others = held.gpus();
  const auto add = [&](const std::string& uuid, const SharedGpu& gpu) {
    const PartAmounts amounts = held.amounts_on(uuid);
    const auto claimed = std::ranges::find(held.claimed, uuid, &GpuPart::gpu);
    if (!amounts.is_zero()) {
      parts.push_back({uuid, MilliOf(amounts), MemoryMiBOf(amounts, gpu, held.memory_mib)});
    } else if (claimed != held.claimed.end()) {
      parts.push_back(*claimed);
    }
  };
  for (const SharedGpu& gpu : gpus) {
    add(gpu.uuid, gpu);
    std::erase(others, gpu.uuid);
  }
  for (const std::string& uuid : others) add(uuid, SharedGpu());
  return parts;
}

void SetSaidMemory(std::int64_t said_mib, HeldParts& held) {
  if (said_mib != api::kSenselessMemory && !held.has_whole_gpus()) held.memory_mib = said_mib;
}

void SetSaidPaging(std::int64_t said_mib, HeldParts& held) { held.paged_mib = held.has_whole_gpus() ? 0 : said_mib; }

std::vector<HeldParts> PartsOf(const std::vector<HeldDevices>& held, std::span<const PartResource> resources,
                               const ClaimedParts& claimed) {
  std::vector<HeldParts> parts;
  for (const HeldDevices& one : held) {
    HeldParts part{.pod = {one.ns, one.pod}, .container = one.container};
    for (const PartResource resource : resources) {
      const auto found = one.ids.find(std::string(NameOf(resource)));
      if (found == one.ids.end()) continue;
      std::vector<PartId> ids;
      for (const std::string& text : found->second) {
        if (std::optional<PartId> id = ParsePartId(text)) ids.push_back(*std::move(id));
      }
      std::ranges::sort(ids);
      if (!ids.empty()) part.ids.emplace(resource, std::move(ids));
    }
    part.claimed = Merged(one.cdi_ids, claimed);
    if (!part.ids.empty() || !part.claimed.empty()) parts.push_back(std::move(part));
  }
  return parts;
}

std::map<std::string, std::string> HeldOtherwise(const std::vector<HeldDevices>& held,
                                                 std::span<const PartResource> resources,
                                                 std::span<const std::string> uuids) {
  std::map<std::string, std::string> holders;
  for (const HeldDevices& one : held) {
    for (const auto& [name, ids] : one.ids) {
      const bool is_own = std::ranges::any_of(resources, [&](PartResource own) { return NameOf(own) == name; });
      // Another plugin gave these before; they do not say of which GPU.
      const bool is_part = std::ranges::any_of(kPartResources, [&](PartResource part) { return NameOf(part) == name; });
      const bool is_of_any =
          is_part && std::ranges::any_of(ids, [](const std::string& id) { return !ParsePartId(id); });
      if (is_own && !is_of_any) continue;
      for (const std::string& uuid : uuids) {
        const auto is_of = [&](const std::string& id) {  // No UUID begins with another one and a sign of these.
          return id.starts_with(uuid) && (id.size() == uuid.size() || id[uuid.size()] == ':' || id[uuid.size()] == '_');
        };
        if (!is_of_any && std::ranges::none_of(ids, is_of)) continue;
        holders.emplace(uuid, OwnerText({one.ns, one.pod}, one.container) + ", by " + name +
                                  (is_of_any ? " of another device plugin" : ""));
      }
    }
  }
  return holders;
}

std::string OwnerText(const kube::ObjectKey& pod, const std::string& container) {
  return pod.ToString() + ", container " + container;
}

}  // namespace grus
