// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/dra/cdi_spec.h"

#include <algorithm>
#include <set>
#include <utility>

#include "clientlib/model/json.h"

namespace grus {
namespace {

using kube::Json;

constexpr char kVersion[] = "0.6.0";  // The first with annotations.
constexpr char kKind[] = "ai.centauruscloud.io/gpu", kClaimAnnotation[] = "ai.centauruscloud.io/claim";
constexpr std::size_t kLargestSpec = 1 << 20;

Json JsonOf(const AllocatedClaim& claim) {
  Json parts = Json::MakeArray();
  for (const AllocatedPart& part : claim.parts) {
    parts.Append(Json::MakeObject({{"request", part.request},
                                   {"device", part.device},
                                   {"shareID", part.share_id},
                                   {"gpu", part.gpu},
                                   {"milli", part.milli},
                                   {"memoryMiB", part.memory_mib}}));
  }
  return Json::MakeObject({{"namespace", claim.claim.ns},
                           {"name", claim.claim.name},
                           {"uid", claim.claim.uid},
                           {"parts", std::move(parts)}});
}

bool Read(const Json& object, const char* key, std::string& text) {
  const Json* const value = object.Find(key);
  const std::string* const found = value ? value->AsString() : nullptr;
  if (found) text = *found;
  return found != nullptr;
}

bool Read(const Json& object, const char* key, std::int64_t& number) {
  const Json* const value = object.Find(key);
  const std::int64_t* const found = value ? value->AsInt() : nullptr;
  if (found) number = *found;
  return found != nullptr;
}

Json EnvironmentOf(const std::vector<GpuPart>& parts) {
  std::string gpus, milli, memory;
  for (const GpuPart& part : parts) {
    const char* const comma = gpus.empty() ? "" : ",";
    gpus.append(comma).append(part.gpu);
    milli.append(comma).append(std::to_string(part.milli));
    memory.append(comma).append(std::to_string(part.memory_mib));
  }
  return Json::MakeArray(
      {"NVIDIA_VISIBLE_DEVICES=" + gpus, "GRUS_GPU_MILLI=" + milli, "GRUS_GPU_MEMORY_MIB=" + memory});
}

std::set<std::string> RequestsOf(const AllocatedClaim& claim) {
  std::set<std::string> requests;
  for (const AllocatedPart& part : claim.parts) requests.insert(part.request);
  return requests;
}

}  // namespace

std::string CdiIdOf(const ClaimName& claim, std::string_view request) {
  return std::string(kKind) + "=" + claim.uid + "-" + std::string(request);
}

std::string CdiSpecOf(const AllocatedClaim& claim) {
  Json devices = Json::MakeArray();
  for (const std::string& request : RequestsOf(claim)) {
    const Json edits = Json::MakeObject({{"env", EnvironmentOf(PartsOfRequest(claim, request))}});
    devices.Append(Json::MakeObject({{"name", claim.claim.uid + "-" + request}, {"containerEdits", edits}}));
  }
  return kube::ToText(
      Json::MakeObject({{"cdiVersion", kVersion},
                        {"kind", kKind},
                        {"annotations", Json::MakeObject({{kClaimAnnotation, kube::ToText(JsonOf(claim))}})},
                        {"devices", std::move(devices)}}));
}

std::optional<AllocatedClaim> ReadCdiSpec(std::string_view text) {
  const kube::JsonLimits limits{.max_bytes = kLargestSpec, .max_depth = 10};
  const kube::Result<Json> spec = kube::ParseJson(text, limits);
  const Json* const note = spec ? spec->At({"annotations", kClaimAnnotation}) : nullptr;
  const std::string* const words = note ? note->AsString() : nullptr;
  if (words == nullptr) return std::nullopt;
  const kube::Result<Json> json = kube::ParseJson(*words, limits);
  AllocatedClaim claim;
  if (!json || !Read(*json, "namespace", claim.claim.ns) || !Read(*json, "name", claim.claim.name) ||
      !Read(*json, "uid", claim.claim.uid)) {
    return std::nullopt;
  }
  const Json* const list = json->Find("parts");
  const Json::Array* const parts = list ? list->AsArray() : nullptr;
  if (parts == nullptr) return std::nullopt;
  for (const Json& one : *parts) {
    AllocatedPart part;
    if (!Read(one, "request", part.request) || !Read(one, "device", part.device) ||
        !Read(one, "shareID", part.share_id) || !Read(one, "gpu", part.gpu) || !Read(one, "milli", part.milli) ||
        !Read(one, "memoryMiB", part.memory_mib)) {
      return std::nullopt;
    }
    claim.parts.push_back(std::move(part));
  }
  return claim;
}

std::vector<ReadyDevice> ReadyDevicesOf(const AllocatedClaim& claim, const std::string& pool) {
  std::vector<ReadyDevice> devices;
  std::set<std::string> named;
  for (const AllocatedPart& part : claim.parts) {
    ReadyDevice& device = devices.emplace_back(
        ReadyDevice{.request = part.request, .pool = pool, .device = part.device, .share_id = part.share_id});
    // A request has one id, which says all its GPUs.
    if (named.insert(part.request).second) device.cdi_ids = {CdiIdOf(claim.claim, part.request)};
  }
  return devices;
}

std::vector<GpuPart> PartsOfRequest(const AllocatedClaim& claim, std::string_view request) {
  std::vector<GpuPart> parts;
  for (const AllocatedPart& part : claim.parts) {
    if (part.request != request) continue;
    const auto same = std::ranges::find(parts, part.gpu, &GpuPart::gpu);
    GpuPart& sum = same == parts.end() ? parts.emplace_back(GpuPart{.gpu = part.gpu}) : *same;
    sum.milli += part.milli;
    sum.memory_mib += part.memory_mib;
  }
  return parts;
}

}  // namespace grus
