// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/part_objects.h"

#include <algorithm>

#include "clientlib/model/json.h"

namespace grus {
namespace {

using kube::Json;

constexpr kube::JsonLimits kLimits{.max_bytes = kLongestAnnotation, .max_depth = 8, .max_values = 10'000};
constexpr std::size_t kLongestName = 63;
constexpr std::int64_t kWholeGpu = 1000, kMostMiB = std::int64_t{1} << 30;

std::optional<std::string> NameIn(const Json& object, std::string_view key) {
  const Json* const value = object.Find(key);
  const std::string* const text = value == nullptr ? nullptr : value->AsString();
  const auto is_sign = [](unsigned char c) { return c > ' ' && c < 0x7f; };
  const bool is_name =
      text != nullptr && !text->empty() && text->size() <= kLongestName && std::ranges::all_of(*text, is_sign);
  return is_name ? std::optional(*text) : std::nullopt;
}

std::optional<std::int64_t> AmountIn(const Json& object, std::string_view key, std::int64_t most) {
  const Json* const value = object.Find(key);
  const std::int64_t* const number = value == nullptr ? nullptr : value->AsInt();
  return number != nullptr && *number >= 0 && *number <= most ? std::optional(*number) : std::nullopt;
}

// False: it makes no sense.
bool AddPart(const std::string& container, const Json& part, std::vector<NotedPart>& parts) {
  const auto gpu = NameIn(part, "gpu");
  const auto milli = AmountIn(part, "milli", kWholeGpu), memory = AmountIn(part, "memoryMiB", kMostMiB);
  if (!gpu || !milli || !memory) return false;
  parts.push_back({container, *gpu, *milli, *memory});
  return true;
}

}  // namespace

std::span<const kube::FieldInfo> PortOfPod::Fields() {
  static constexpr kube::FieldInfo kFields[] = {kube::Field<&PortOfPod::name>("name"),
                                                kube::Field<&PortOfPod::container_port>("containerPort")};
  return kFields;
}

std::span<const kube::FieldInfo> ContainerOfPod::Fields() {
  static constexpr kube::FieldInfo kFields[] = {kube::Field<&ContainerOfPod::ports>("ports")};
  return kFields;
}

std::span<const kube::FieldInfo> PartPodSpec::Fields() {
  static constexpr kube::FieldInfo kFields[] = {kube::Field<&PartPodSpec::node_name>("nodeName"),
                                                kube::Field<&PartPodSpec::containers>("containers")};
  return kFields;
}

std::span<const kube::FieldInfo> PartPodStatus::Fields() {
  static constexpr kube::FieldInfo kFields[] = {kube::Field<&PartPodStatus::phase>("phase")};
  return kFields;
}

const kube::Kind& PartPod::ResourceKind() {
  static constexpr kube::FieldInfo kFields[] = {kube::Field<&PartPod::spec>("spec"),
                                                kube::Field<&PartPod::status>("status")};
  static const kube::Kind kKind =
      kube::MakeKind<PartPod>({.version = "v1", .kind = "Pod", .plural = "pods", .fields = kFields});
  return kKind;
}

std::optional<std::vector<OfferedGpu>> ParseInventory(std::string_view text) {
  const kube::Result<Json> json = kube::ParseJson(text, kLimits);
  const Json::Array* const list = json ? json->AsArray() : nullptr;
  if (list == nullptr) return std::nullopt;
  std::vector<OfferedGpu> gpus;
  for (const Json& one : *list) {
    const auto uuid = NameIn(one, "uuid"), mode = NameIn(one, "mode");
    const auto memory = AmountIn(one, "memoryMiB", kMostMiB);
    if (!uuid || !mode || !memory) return std::nullopt;
    const Json* const is_healthy = one.Find("healthy");
    gpus.push_back({.uuid = *uuid,
                    .memory_mib = *memory,
                    .counts_milli = *mode != "gpushare",
                    .is_healthy = is_healthy == nullptr || *is_healthy != Json(false)});
  }
  return gpus;
}

std::optional<std::vector<NotedPart>> ParseNotedParts(std::string_view text) {
  const kube::Result<Json> json = kube::ParseJson(text, kLimits);
  const Json::Object* const containers = json ? json->AsObject() : nullptr;
  if (containers == nullptr) return std::nullopt;
  std::vector<NotedPart> parts;
  for (const auto& [container, part] : *containers) {
    if (container.size() > kLongestName || !AddPart(container.str(), part, parts)) return std::nullopt;
    const Json* const more = part.Find("more");
    const Json::Array* const others = more == nullptr ? nullptr : more->AsArray();
    if (others == nullptr) continue;
    for (const Json& other : *others) {
      if (!AddPart(container.str(), other, parts)) return std::nullopt;
    }
  }
  return parts;
}

}  // namespace grus
