// SPDX-License-Identifier: Apache-2.0
// What claims take of GPUs (Dynamic Resource Allocation), by grus' own driver, among amounts of resources. Pure
// functions.
//
// As with other parts (gpu_parts.h), a node offers a sum (kClaimedMilli) and beside it the same of each GPU, and MiB of
// each. What a pod asks for has the sum, and of each size of part how many it wants, since each lies on one GPU, and
// not all on the same. What a pod holds names its GPUs, too, once the scheduler has chosen them. The plan takes them in
// the order of their names, as the scheduler does, but only for the account: where members go is all that it decides.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/resource_claims.h"
#include "controllers/policy/resources.h"

namespace grus {

// Thousandths. No resource of Kubernetes can have this name, so that no pod asks for it itself.
inline constexpr char kClaimedMilli[] = "ai.centauruscloud.io/gpu-milli by claims";
// Whole GPUs of NVIDIA's driver for claims. Not nvidia.com/gpu: a pod that asks for that has none of them.
inline constexpr char kGpusByClaims[] = "nvidia.com/gpu by claims";
inline constexpr std::int64_t kWholeGpuMilli = 1000;
inline constexpr std::int64_t kWholeGpuMemory = 100'000'000;  // MiB: more than any GPU has stands for all of it.
// Of one pod, claims as well as parts. More would slow down every plan: such a pod fits nowhere, and counts as a rack.
inline constexpr std::size_t kMostClaimedParts = 256;

struct ClaimedPart {
  std::int64_t milli = kWholeGpuMilli, memory_mib = kWholeGpuMemory;
  std::int64_t count = 1;
  // If the scheduler has chosen: the device, and how many MiB it gives.
  std::string device = {};
  std::int64_t given_mib = 0;
  friend bool operator==(const ClaimedPart&, const ClaimedPart&) = default;
};

// What one device of such a request has at least; adminAccess and counts are the caller's.
ClaimedPart PartAskedBy(const kube::ResourceList* capacity);
// What an allocated device of the driver is. Users could write any number: none is more than a whole GPU.
ClaimedPart PartGivenBy(const kube::DeviceAllocation& allocation, std::int64_t memory_of_gpu);

void AddClaimedPart(const ClaimedPart& part, Resources& request);  // REQUIRES: one of kMostClaimedParts at most.
void AddTooManyClaims(Resources& request);
// What a node offers of one GPU.
void AddClaimableGpu(std::string_view device, std::int64_t milli, std::int64_t memory_mib, Resources& allocatable);

std::int64_t ClaimedMilliOf(const Resources& request);  // Not negative; sums of a few do not overflow.
bool AsksForClaimedGpus(const Resources& request);
// One size of part: no sum limits it.
bool IsClaimedPart(std::string_view resource);

// As CopiesOnGpus(), ChooseGpu() and OnGpu() of gpu_parts.h. Several GPUs are one text, and only OnClaimedGpus() reads
// it. REQUIRES of all: AsksForClaimedGpus(request).
int CopiesOnClaimedGpus(const Resources& allocatable, const Resources& taken, const Resources& request, int at_most);
std::string ChooseClaimedGpus(const Resources& allocatable, const Resources& taken, const Resources& request);
Resources OnClaimedGpus(Resources request, std::string_view gpus);

}  // namespace grus
