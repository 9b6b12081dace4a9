// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/held_parts.h"

#include <algorithm>
#include <set>
#include <utility>

namespace grus {
namespace {

// One for each GPU, by UUID.
std::vector<ClaimedPart> Merged(const std::vector<std::string>& cdi_ids, const ClaimedParts& claimed) {
  std::map<std::string, ClaimedPart> by_gpu;
  if (!claimed) return {};
  for (const std::string& id : cdi_ids) {
    for (const ClaimedPart& part : claimed(id)) {
      ClaimedPart& sum = by_gpu[part.gpu];
      sum = {part.gpu, sum.milli + part.milli, sum.memory_mib + part.memory_mib};
    }
  }
  std::vector<ClaimedPart> parts;
  for (auto& [gpu, part] : by_gpu) parts.push_back(std::move(part));
  return parts;
}

}  // namespace

PartAmounts HeldParts::amounts() const {
  PartAmounts amounts;
  for (const auto& [resource, list] : ids) amounts[resource] = static_cast<std::int64_t>(list.size());
  return amounts;
}

std::vector<std::string> HeldParts::gpus() const {
  std::set<std::string> gpus;
  for (const auto& [resource, list] : ids) {
    for (const PartId& id : list) gpus.insert(id.gpu);
  }
  for (const ClaimedPart& part : claimed) gpus.insert(part.gpu);
  return {gpus.begin(), gpus.end()};
}

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
