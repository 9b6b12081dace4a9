// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gpu_annotations.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "clientlib/model/json.h"
#include "controllers/policy/claimed_gpus.h"
#include "controllers/policy/gpu_parts.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

constexpr std::size_t kLongestId = 63;  // Of a GPU.

std::string_view TextIn(const kube::Json& object, std::string_view key) {
  const kube::Json* value = object.Find(key);
  const std::string* text = value ? value->AsString() : nullptr;
  return text ? std::string_view(*text) : std::string_view();
}

// Of an amount of one GPU; 0 if it makes no sense.
std::int64_t NumberIn(const kube::Json& object, std::string_view key) {
  const kube::Json* value = object.Find(key);
  const std::int64_t* number = value ? value->AsInt() : nullptr;
  return number && *number > 0 && *number < (std::int64_t{1} << 32) ? *number : 0;
}

bool IsGpuId(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= kLongestId && std::ranges::all_of(text, is_plain);
}

}  // namespace

void AddGpus(const kube::Node& node, Resources& allocatable) {
  const std::string_view text = node.metadata.Annotation(api::kGpuInventoryAnnotation);
  if (text.empty()) return;
  const kube::Result<kube::Json> inventory = kube::ParseJson(text);
  const kube::Json::Array* gpus = inventory ? inventory->AsArray() : nullptr;
  if (gpus == nullptr || gpus->size() > kMostGpusOfNode) return;
  for (const kube::Json& gpu : *gpus) {
    const std::string_view uuid = TextIn(gpu, "uuid"), mode = TextIn(gpu, "mode");
    const kube::Json* is_healthy = gpu.Find("healthy");
    if (!IsGpuId(uuid) || (is_healthy != nullptr && *is_healthy == kube::Json(false))) continue;
    const auto offer = [&](std::string_view part, std::int64_t amount) {
      const std::string name = PartOn(part, uuid);
      if (allocatable.Extended(part) <= 0 || allocatable.Extended(name) != 0) return false;
      allocatable.AddExtended(name, amount);
      return true;
    };
    if (mode == "milli" && offer(api::kGpuMilliResource, kWholeGpuMilli)) {
      allocatable.AddExtended(PartOn(kSaidMemory, uuid), NumberIn(gpu, "memoryMiB"));
    }
    if (mode == "gpushare") offer(api::kGpuMemResource, NumberIn(gpu, "memoryMiB") / 1024);
    if (mode != "alnair") continue;
    offer(api::kVgpuMemoryResource, NumberIn(gpu, "memoryMiB") / 1024);
    offer(api::kVgpuComputeResource, 100);
  }
}

std::string GpusOf(const kube::Pod& pod) {
  std::vector<std::string_view> gpus;
  const auto add = [&](std::string_view gpu) {
    if (IsGpuId(gpu) && std::ranges::find(gpus, gpu) == gpus.end() && gpus.size() < kMostGpusOfNode)
      gpus.push_back(gpu);
  };
  const std::string_view held = pod.metadata.Annotation(api::kHeldGpusAnnotation);
  if (held.empty()) {
    ForEachListedGpu(pod.metadata.Annotation(api::kPlannedGpuAnnotation), add);
    return GpuListOf(gpus);
  }
  const kube::Result<kube::Json> containers = kube::ParseJson(held);
  const kube::Json::Object* each = containers ? containers->AsObject() : nullptr;
  if (each == nullptr) return {};
  for (const auto& [name, part] : *each) {
    add(TextIn(part, "gpu"));
    const kube::Json* more = part.Find("more");
    const kube::Json::Array* list = more ? more->AsArray() : nullptr;
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) add(TextIn((*list)[i], "gpu"));
  }
  return GpuListOf(gpus);
}

}  // namespace grus
