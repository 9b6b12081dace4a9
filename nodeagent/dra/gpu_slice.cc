// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/dra/gpu_slice.h"

#include <utility>

#include "clientlib/model/quantity.h"

namespace grus {
namespace {

using kube::Json;

constexpr std::size_t kLongestText = 64;  // Of an attribute.

Json TextAttribute(const std::string& text) { return Json::MakeObject({{"string", text.substr(0, kLongestText)}}); }

// All of it, or any multiple of `step`.
Json CapacityOf(const kube::Quantity& all, const kube::Quantity& step) {
  const std::string whole = kube::ToText(all), least = kube::ToText(step);
  return Json::MakeObject(
      {{"value", whole},
       {"requestPolicy",
        Json::MakeObject({{"default", whole},
                          {"validRange", Json::MakeObject({{"min", least}, {"step", least}, {"max", whole}})}})}});
}

Json DeviceOf(const SharedGpu& gpu) {
  using kube::Quantity;
  constexpr std::int64_t kMiB = 1 << 20;
  Json attributes =
      Json::MakeObject({{"index", Json::MakeObject({{"int", gpu.index}})}, {"uuid", TextAttribute(gpu.uuid)}});
  if (!gpu.model.empty()) attributes["productName"] = TextAttribute(gpu.model);
  if (!gpu.driver_version.empty()) attributes["driverVersion"] = TextAttribute(gpu.driver_version);
  const Quantity memory(gpu.memory_mib * kMiB, Quantity::Format::kBinarySi), mib(kMiB, Quantity::Format::kBinarySi);
  return Json::MakeObject(
      {{"name", DeviceNameOf(gpu.uuid)},
       {"allowMultipleAllocations", true},
       {"attributes", std::move(attributes)},
       {"capacity", Json::MakeObject({{kMemoryCapacity, CapacityOf(memory, mib)},
                                      {kMilliCapacity, CapacityOf(Quantity(kMilliOfGpu), Quantity(1))}})}});
}

Json PoolOf(const std::string& node, std::int64_t generation) {
  return Json::MakeObject({{"name", node}, {"generation", generation}, {"resourceSliceCount", 1}});
}

}  // namespace

const kube::Kind& NodeSlice::ResourceKind() {
  static constexpr kube::FieldInfo kFields[] = {kube::Field<&NodeSlice::spec>("spec")};
  static const kube::Kind kKind = kube::MakeKind<NodeSlice>({.group = "resource.k8s.io",
                                                             .version = "v1",
                                                             .kind = "ResourceSlice",
                                                             .plural = "resourceslices",
                                                             .is_namespaced = false,
                                                             .fields = kFields});
  return kKind;
}

std::string SliceNameOf(const std::string& node) { return node + "-" + kGpuDriver; }

Json DevicesOf(std::span<const SharedGpu> gpus, const std::map<std::string, std::string>& held) {
  std::map<std::string, Json> devices;  // By name: the order is always the same.
  for (const SharedGpu& gpu : gpus) {
    const std::string name = DeviceNameOf(gpu.uuid);
    if (name.empty() || !gpu.is_healthy || held.contains(gpu.uuid) || devices.size() == kMostDevices) continue;
    devices.emplace(name, DeviceOf(gpu));
  }
  Json list = Json::MakeArray();
  for (auto& [name, device] : devices) list.Append(std::move(device));
  return list;
}

Json SliceOf(const std::string& node, const std::string& uid, Json devices) {
  const Json owner =
      Json::MakeObject({{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", uid}, {"controller", true}});
  return Json::MakeObject(
      {{"apiVersion", "resource.k8s.io/v1"},
       {"kind", "ResourceSlice"},
       {"metadata", Json::MakeObject({{"name", SliceNameOf(node)}, {"ownerReferences", Json::MakeArray({owner})}})},
       {"spec", Json::MakeObject({{"driver", kGpuDriver},
                                  {"nodeName", node},
                                  {"pool", PoolOf(node, 1)},
                                  {"devices", std::move(devices)}})}});
}

Json PatchOf(const NodeSlice& live, const std::string& node, const Json& devices) {
  const Json* const generation = live.spec.At({"pool", "generation"});
  const std::int64_t* const newest = generation ? generation->AsInt() : nullptr;
  const Json* const has = live.spec.Find("devices");
  const Json now = has ? *has : Json::MakeArray();
  // Both ways, as each finds what the other one has and it has not.
  const bool is_right = kube::IsCovered(devices, now) && kube::IsCovered(now, devices) && newest != nullptr &&
                        live.spec.At({"pool"}) != nullptr &&
                        kube::IsCovered(PoolOf(node, *newest), *live.spec.At({"pool"}));
  if (is_right) return {};
  return Json::MakeObject(
      {{"metadata", Json::MakeObject({{"resourceVersion", live.metadata.resource_version}})},
       {"spec", Json::MakeObject({{"pool", PoolOf(node, newest ? *newest + 1 : 1)}, {"devices", devices}})}});
}

}  // namespace grus
