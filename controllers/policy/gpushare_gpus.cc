// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gpushare_gpus.h"

#include <algorithm>
#include <charconv>

#include "clientlib/model/json.h"
#include "controllers/policy/gpu_parts.h"
#include "crds/types/gpushare_names.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

constexpr std::string_view kMode = "gpushare", kUnhealthyGpus = "unhealthy-gpu-", kBlanks = " \t\r\n";
constexpr std::size_t kMostGpus = 64;  // As of an inventory.
// A GPU that offers nothing at all is not known, and one of which nothing is known is not refused.
constexpr std::int64_t kLessThanAny = -1;

bool IsText(const kube::Json* value, std::string_view text) {
  const std::string* const found = value == nullptr ? nullptr : value->AsString();
  return found != nullptr && *found == text;
}

std::string_view Trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

// Of a GPU; nullopt: it is none.
std::optional<std::size_t> NumberIn(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);  // As Go reads numbers.
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && number < kMostGpus ? std::optional(number) : std::nullopt;
}

std::int64_t CapacityOf(const kube::Node& node, std::string_view resource) {
  const kube::Quantity* const has = kube::FindResource(node.status.capacity, resource);
  return has == nullptr ? 0 : has->Value();
}

// The agent's nodes have the label before they offer anything, and the inventory afterwards.
bool IsOfGpusharesPlugin(const kube::Node& node) {
  return node.metadata.annotations.Get(api::kGpuInventoryAnnotation).empty() &&
         node.metadata.labels.Get(api::kSharingModeLabel).empty();
}

std::vector<GpushareGpu> EqualGpusOf(const kube::Node& node) {
  const std::int64_t count = CapacityOf(node, api::kGpushareCountResource),
                     sum = CapacityOf(node, api::kGpuMemResource);
  std::vector<GpushareGpu> gpus;
  if (count <= 0 || count > static_cast<std::int64_t>(kMostGpus) || sum <= 0) return gpus;
  for (std::int64_t i = 0; i < count; ++i) gpus.push_back({std::to_string(i), sum / count});
  return gpus;
}

}  // namespace

std::vector<GpushareGpu> GpushareGpusOf(const kube::Node& node) {
  if (IsOfGpusharesPlugin(node)) return EqualGpusOf(node);
  const auto inventory = kube::ParseJson(node.metadata.Annotation(api::kGpuInventoryAnnotation));
  const kube::Json::Array* const each = inventory ? inventory->AsArray() : nullptr;
  std::vector<GpushareGpu> gpus;
  bool is_any_offered = false;
  for (std::size_t i = 0; each != nullptr && i < each->size(); ++i) {
    const kube::Json &one = (*each)[i], *const uuid = one.Find("uuid"), *const memory = one.Find("memoryMiB");
    const std::string* const name = uuid == nullptr ? nullptr : uuid->AsString();
    const std::int64_t* const mib = memory == nullptr ? nullptr : memory->AsInt();
    if (name == nullptr) return {};
    const bool is_offered = IsText(one.Find("mode"), kMode);
    is_any_offered |= is_offered;
    gpus.push_back({*name, mib == nullptr || !is_offered ? 0 : std::max<std::int64_t>(*mib, 0) / 1024});
  }
  return is_any_offered ? gpus : std::vector<GpushareGpu>();
}

void AddGpushareGpus(const kube::Node& node, Resources& allocatable) {
  if (!IsOfGpusharesPlugin(node) || allocatable.Extended(api::kGpuMemResource) <= 0) return;
  const std::vector<GpushareGpu> gpus = EqualGpusOf(node);
  for (const GpushareGpu& gpu : gpus) allocatable.AddExtended(PartOn(api::kGpuMemResource, gpu.uuid), gpu.gib);
  // Without a count nobody can be told a GPU.
  if (gpus.empty()) allocatable.AddExtended(PartOn(api::kGpuMemResource, "0"), kLessThanAny);
}

std::string AssumedGpuOf(const kube::Pod& pod) {
  const auto number = NumberIn(pod.metadata.Annotation(api::kGpushareIndex));
  return number ? std::to_string(*number) : std::string();
}

std::string UnhealthyGpusOf(std::string_view node) { return std::string(kUnhealthyGpus).append(node); }

std::string_view NodeOfUnhealthyGpus(std::string_view config_map) {
  return config_map.starts_with(kUnhealthyGpus) ? config_map.substr(kUnhealthyGpus.size()) : std::string_view();
}

std::optional<std::set<std::size_t>> UnhealthyGpusIn(std::string_view text) {
  std::set<std::size_t> numbers;
  for (text = Trimmed(text); !text.empty();) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view one = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::optional<std::size_t> number = NumberIn(one);
    if (!number) return std::nullopt;
    numbers.insert(*number);
  }
  return numbers;
}

void WithholdGpushareGpus(const kube::Node& node, const std::set<std::size_t>& numbers, Resources& allocatable) {
  if (numbers.empty()) return;
  const std::vector<GpushareGpu> gpus = GpushareGpusOf(node);
  for (const std::size_t number : numbers) {
    if (number >= gpus.size()) continue;
    const std::string part = PartOn(api::kGpuMemResource, gpus[number].uuid);
    const std::int64_t offered = allocatable.Extended(part);
    if (offered > 0) allocatable.AddExtended(part, kLessThanAny - offered);
  }
}

}  // namespace grus
