// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/dra/claim_parts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "clientlib/base/lower_case.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;

constexpr std::size_t kLongestName = 63;  // Of a device.
constexpr char kResults[] = ": status.allocation.devices.results";

Error Bad(const ClaimName& claim, const std::string& what, ErrorCode code = ErrorCode::kInvalidArgument) {
  return Error(code, TextOf(claim) + what);
}

// Of a part; nullopt: it is not said, and then the whole.
std::optional<std::int64_t> Consumed(const kube::DeviceAllocation& allocation, std::string_view capacity) {
  const kube::Quantity* const amount = kube::FindResource(allocation.consumed_capacity, capacity);
  return amount ? std::optional(amount->Value()) : std::nullopt;
}

// Of "REQUEST/SUBREQUEST", what containers call it by.
std::string RequestOf(const kube::DeviceAllocation& allocation) {
  const std::string_view request = allocation.request.view();
  return std::string(request.substr(0, request.find('/')));
}

}  // namespace

std::string DeviceNameOf(std::string_view uuid) {
  const std::string name = kube::LowerCase(uuid);
  for (const char c : name) {
    if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-') return "";
  }
  const bool is_name = !name.empty() && name.size() <= kLongestName && name.front() != '-' && name.back() != '-';
  return is_name ? name : std::string();
}

std::string TextOf(const ClaimName& claim) { return "ResourceClaim " + claim.ns + "/" + claim.name; }

kube::Result<AllocatedClaim> PartsOf(const kube::ResourceClaim& found, const ClaimName& asked, std::string_view pool,
                                     std::span<const SharedGpu> gpus) {
  if (found.metadata.uid != asked.uid) {
    return Bad(asked, ": metadata.uid is " + found.metadata.uid + ", and the pod was made for " + asked.uid +
                          ": delete the pod, so that it is made again for the new claim");
  }
  if (!found.status.allocation) {
    return Bad(asked,
               ": status.allocation is empty: nothing is allocated (any more); delete the pod, so that the "
               "scheduler allocates again");
  }
  AllocatedClaim claim{.claim = asked};
  for (const kube::DeviceAllocation& result : found.status.allocation->devices.results) {
    if (result.driver.view() != kGpuDriver) continue;
    const std::string device = result.device.str();
    if (result.pool.view() != pool) {
      return Bad(asked, std::string(kResults) + ": device " + device + " is of pool " + result.pool.str() +
                            ", and this node has pool " + std::string(pool) + "; delete the pod");
    }
    const auto gpu = std::ranges::find_if(gpus, [&](const SharedGpu& one) { return DeviceNameOf(one.uuid) == device; });
    if (gpu == gpus.end()) {
      return Bad(asked,
                 std::string(kResults) + ": this node has no GPU " + device +
                     " (any more); delete pod and claim, so that it gets another one",
                 ErrorCode::kNotFound);
    }
    if (!gpu->is_healthy) {
      return Bad(asked,
                 std::string(kResults) + ": " + gpu->uuid +
                     " is sick (the node's Events say how); wait until it is well, or delete pod and claim, so that it "
                     "gets another one",
                 ErrorCode::kUnavailable);
    }
    const std::optional<std::int64_t> bytes = Consumed(result, kMemoryCapacity);
    claim.parts.push_back({.request = RequestOf(result),
                           .device = device,
                           .share_id = result.share_id.str(),
                           .gpu = gpu->uuid,
                           .milli = result.admin_access ? 0 : Consumed(result, kMilliCapacity).value_or(kMilliOfGpu),
                           .memory_mib = result.admin_access ? 0
                                         : bytes             ? *bytes >> 20
                                                             : gpu->memory_mib});
  }
  if (claim.parts.empty()) {
    return Bad(asked, std::string(kResults) + ": no device is of driver " + kGpuDriver + "; delete the pod");
  }
  return claim;
}

kube::Status CheckRoom(const AllocatedClaim& claim, std::span<const AllocatedClaim> others,
                       std::span<const SharedGpu> gpus) {
  for (const SharedGpu& gpu : gpus) {
    std::int64_t milli = 0, memory_mib = 0;
    const auto add = [&](const AllocatedClaim& one) {
      bool is_there = false;
      for (const AllocatedPart& part : one.parts) {
        if (part.gpu != gpu.uuid) continue;
        is_there = true;
        milli += part.milli;
        memory_mib += part.memory_mib;
      }
      return is_there;
    };
    if (!add(claim)) continue;
    std::string holders;
    for (const AllocatedClaim& other : others) {
      if (other.claim.uid == claim.claim.uid || !add(other)) continue;
      holders.append(holders.empty() ? "" : ", ").append(other.claim.ns + "/" + other.claim.name);
    }
    if (milli <= kMilliOfGpu && memory_mib <= gpu.memory_mib) continue;
    return Error(ErrorCode::kUnavailable, TextOf(claim.claim) + kResults + ": with it, " + gpu.uuid + " would give " +
                                              std::to_string(milli) + " of 1000 thousandths and " +
                                              std::to_string(memory_mib) + " of " + std::to_string(gpu.memory_mib) +
                                              " MiB; wait until others have ended that have parts of it (" +
                                              (holders.empty() ? "none" : holders) + ")");
  }
  return {};
}

}  // namespace grus
