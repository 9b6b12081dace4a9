// SPDX-License-Identifier: Apache-2.0
// The part of PodDevices that reads what claims ask for, and what they have.
#include <algorithm>
#include <memory>

#include "controllers/cluster/pod_devices.h"
#include "controllers/policy/claimed_gpus.h"

namespace grus {
namespace {

void AddPart(const ClaimedPart& part, DeviceNeeds& needs) {
  if (++needs.parts <= kMostClaimedParts) AddClaimedPart(part, needs.devices);
}

// A class may count its devices under that name already.
void RaiseGpus(std::int64_t whole, Resources& devices) {
  devices.AddExtended(kGpusByClaims, std::max<std::int64_t>(whole - devices.Extended(kGpuResource), 0));
}

// No claim gets more devices (AllocationResultsMaxSize of k8s.io/api/resource/v1).
constexpr std::int64_t kMostDevicesOfClaim = 32;

kube::ExactDeviceRequest AsExact(const kube::DeviceSubRequest& sub) {
  kube::ExactDeviceRequest exact{.device_class_name = sub.device_class_name};
  exact.allocation_mode = sub.allocation_mode;
  exact.count = sub.count;
  exact.capacity = sub.capacity;
  return exact;
}

std::int64_t MemoryOf(const kube::Device& gpu) {
  const auto memory = std::ranges::find(gpu.capacity, "memory", [](const auto& one) { return one.first.view(); });
  return memory == gpu.capacity.end() ? 0 : std::max<std::int64_t>(memory->second.value.Value() >> 20, 0);
}

// Of a GPU that gives parts; without a word, all.
std::int64_t MilliOf(const kube::Device& gpu) {
  const auto milli = std::ranges::find(gpu.capacity, "milli", [](const auto& one) { return one.first.view(); });
  return milli == gpu.capacity.end() ? kWholeGpuMilli : milli->second.value.Value();
}

}  // namespace

void DevicesByNode::Put(const std::string& node, std::int64_t count) {
  if (const auto known = of_node_.find(node); known != of_node_.end()) {
    const auto with = nodes_with_.find(known->second);
    if (--with->second == 0) nodes_with_.erase(with);
    of_node_.erase(known);
  }
  if (count <= 0) return;
  of_node_[node] = count;
  ++nodes_with_[count];
}

PodDevices::DeviceKind PodDevices::KindOfClass(std::string_view name) const {
  std::lock_guard lock(mutex_);
  const auto found = classes_.find(name);
  if (found == classes_.end()) return DeviceKind::kOther;
  if (found->second.driver == kGpuClaimDriver) return DeviceKind::kGpuPart;
  return found->second.filter && found->second.filter->IsOfWholeGpus() ? DeviceKind::kWholeGpu : DeviceKind::kOther;
}

bool PodDevices::CountDevicesOf(const std::string& node, Class& its_class) {
  const bool is_of_parts = its_class.driver == kGpuClaimDriver;
  if (node.empty() || (!is_of_parts && !(its_class.filter && its_class.filter->IsOfWholeGpus()))) return false;
  std::int64_t count = 0;
  for (const auto& slice : caches_.slices.ByIndex<kube::ResourceSlice>(slices_by_node_, node)) {
    const std::string_view driver = slice->spec.driver.view();
    if (!IsCurrent(*slice) || (is_of_parts && driver != kGpuClaimDriver)) continue;
    // Of a class that is not understood, all of the driver.
    count += std::ranges::count_if(slice->spec.devices, [&](const kube::Device& device) {
      return IsUsable(device) && (!its_class.filter || its_class.filter->Selects(driver, device));
    });
  }
  const std::int64_t before = its_class.devices.Most();
  its_class.devices.Put(node, count);
  return its_class.devices.Most() != before;
}

std::int64_t PodDevices::CountOf(const kube::ExactDeviceRequest& request) const {
  constexpr std::int64_t kMost = 1 << 20;
  if (request.allocation_mode.view() != "All") return std::clamp<std::int64_t>(request.count, 1, kMost);
  std::lock_guard lock(mutex_);
  const auto found = classes_.find(request.device_class_name.view());
  return found == classes_.end() ? 1 : std::clamp<std::int64_t>(found->second.devices.Most(), 1, kMostDevicesOfClaim);
}

ClaimedPart PodDevices::PartOf(const kube::ExactDeviceRequest& request) const {
  ClaimedPart part = PartAskedBy(request.capacity ? &request.capacity->requests : nullptr);
  part.count = CountOf(request);
  return part;
}

std::int64_t PodDevices::AddExact(const kube::ExactDeviceRequest& request, DeviceNeeds& needs) const {
  const std::string_view its_class = request.device_class_name.view();
  AddOf(its_class, IsPlain(request) ? CountOf(request) : 0, needs);
  if (request.admin_access) return 0;
  switch (KindOfClass(its_class)) {
    case DeviceKind::kGpuPart: AddPart(PartOf(request), needs); return 0;
    case DeviceKind::kWholeGpu: return CountOf(request);
    case DeviceKind::kOther: return 0;
  }
  return 0;
}

std::int64_t PodDevices::AddMost(const kube::DeviceRequest& request, DeviceNeeds& needs) const {
  const kube::DeviceSubRequest* most = nullptr;
  std::int64_t most_milli = 0;
  for (const kube::DeviceSubRequest& sub : request.first_available) {
    const kube::ExactDeviceRequest exact = AsExact(sub);
    const DeviceKind kind = KindOfClass(sub.device_class_name.view());
    const std::int64_t milli = kind == DeviceKind::kOther     ? 0
                               : kind == DeviceKind::kGpuPart ? PartOf(exact).milli * CountOf(exact)
                                                              : kWholeGpuMilli * CountOf(exact);
    if (milli <= most_milli) continue;
    most = &sub;
    most_milli = milli;
  }
  if (most == nullptr) return 0;
  if (KindOfClass(most->device_class_name.view()) == DeviceKind::kWholeGpu) return CountOf(AsExact(*most));
  AddPart(PartOf(AsExact(*most)), needs);
  return 0;
}

void PodDevices::AddRequested(const kube::ResourceClaimSpec& claim, DeviceNeeds& needs) const {
  DeviceNeeds own{.devices = {}, .parts = needs.parts, .problem = needs.problem};
  std::int64_t whole = 0;
  for (const kube::DeviceRequest& request : claim.devices.requests) {
    whole += request.exactly ? AddExact(*request.exactly, own) : AddMost(request, own);
  }
  RaiseGpus(whole, own.devices);
  own.devices += needs.devices;
  needs = std::move(own);
}

void PodDevices::AddClaim(const kube::ResourceClaim& claim, const kube::CompactString* node, DeviceNeeds& needs) const {
  if (!claim.status.allocation) return AddRequested(claim.spec, needs);
  DeviceNeeds allocated{.devices = {}, .parts = needs.parts, .problem = {}};
  std::int64_t whole = 0;
  for (const kube::DeviceAllocation& result : claim.status.allocation->devices.results) {
    if (result.admin_access) continue;
    if (result.driver.view() == kGpuClaimDriver) {
      const auto gpu = FindDevice(result);
      ClaimedPart part = PartGivenBy(result, gpu ? MemoryOf(*gpu) : 0);
      if (node != nullptr && *node != result.pool) part.device.clear();
      AddPart(part, allocated);
    } else if (result.share_id.empty()) {
      const std::string_view its_class = ClassOf(result, claim.spec);
      AddOf(its_class, 1, allocated);
      if (IsWhole(result, its_class)) ++whole;
    }
  }
  RaiseGpus(whole, allocated.devices);
  needs.devices += allocated.devices;  // Once devices are allocated, a problem of their class does not matter.
  needs.parts = allocated.parts;
}

std::shared_ptr<const kube::Device> PodDevices::FindDevice(const kube::DeviceAllocation& allocation) const {
  const std::string pool = allocation.driver.str() + "/" + allocation.pool.str();
  for (const auto& slice : caches_.slices.ByIndex<kube::ResourceSlice>(slices_by_pool_, pool)) {
    const auto device = std::ranges::find(slice->spec.devices, allocation.device, &kube::Device::name);
    if (device != slice->spec.devices.end()) return {slice, &*device};
  }
  return nullptr;
}

bool PodDevices::IsWhole(const kube::DeviceAllocation& allocation, std::string_view device_class) const {
  if (allocation.driver.view() != kNvidiaGpuDriver) return false;
  if (const auto device = FindDevice(allocation)) return IsWholeGpu(kNvidiaGpuDriver, *device);
  return KindOfClass(device_class) == DeviceKind::kWholeGpu;
}

void PodDevices::AddGpusOf(const kube::ResourceSlice& slice, std::int64_t& whole, Resources& devices) const {
  const std::string_view driver = slice.spec.driver.view();
  for (const kube::Device& device : slice.spec.devices) {
    if (!IsUsable(device)) continue;
    if (IsWholeGpu(driver, device)) ++whole;
    if (driver == kGpuClaimDriver) AddClaimableGpu(device.name.view(), MilliOf(device), MemoryOf(device), devices);
  }
}

}  // namespace grus
