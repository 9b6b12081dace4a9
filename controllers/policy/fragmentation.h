// SPDX-License-Identifier: Apache-2.0
// How much of a node's free GPUs typical pods cannot use, and which GPUs a pod should take so that this grows least.
//
// Free thousandths of a GPU are fragmented for a pod that cannot have them: 300 of a device for a pod that asks for
// 500; eight free GPUs for a pod that asks for more CPU than is free beside them. A node's fragmentation is the mean of
// that over the pods that typically arrive. Placing each pod where it falls most, or grows least, keeps the cluster
// able to start what comes next. Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
// Fragmentation Gradient Descent", USENIX ATC 2023. As there, memory is left out: the caller asks only about nodes
// where the pod's memory fits.
//
// Units: "milli" is a thousandth of one GPU or of one CPU. Pure functions of their arguments.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace grus {

inline constexpr int kWholeDevice = 1000;  // Thousandths of a GPU.

// A set of GPU models: bit i is the model that the caller numbered i.
using GpuModels = std::uint64_t;
inline constexpr GpuModels kAnyModel = ~GpuModels{0};
inline constexpr int kMaxGpuModels = 64;

// What a pod asks for: no GPU, a part of one, or whole ones.
struct GpuRequest {
  std::int64_t milli_cpu = 0;
  int devices = 0;
  int device_milli = 0;          // Of each device: kWholeDevice, or 1 to 999 of one device; 0 if `devices` is 0.
  GpuModels models = kAnyModel;  // Those that will do.
  friend auto operator<=>(const GpuRequest&, const GpuRequest&) = default;
};

// What a node has free.
struct FreeGpus {
  std::int64_t milli_cpu = 0;
  std::vector<int> device_milli;  // By device: 0 to kWholeDevice.
  int model = 0;                  // Below kMaxGpuModels; all devices of a node are of one.
};

struct TypicalPod {
  GpuRequest request;
  double share = 0;  // Of all arrivals, 0 to 1.
};

// The most frequent requests of `pods` that together are at least `coverage` (0 to 1) of them; their shares sum up
// to 1.
std::vector<TypicalPod> TypicalPods(std::span<const GpuRequest> pods, double coverage);

bool Fits(const FreeGpus& node, const GpuRequest& pod);

// Thousandths of a GPU on the node that a typical pod is expected not to be able to use; 0 to all that is free. All
// that is free counts for a pod that does not fit, or needs no GPU; otherwise the devices with too little for it.
double Fragmentation(const FreeGpus& node, std::span<const TypicalPod> typical);

// The sets of devices that the pod can take, by index, where devices with as much free count as the same: for a part,
// one device for each free amount; for whole devices, the first free ones; for no GPU, the empty set. None: no room.
std::vector<std::vector<int>> DeviceChoices(const FreeGpus& node, const GpuRequest& pod);

// The node once the pod has taken these devices, one of DeviceChoices().
FreeGpus After(FreeGpus node, const GpuRequest& pod, std::span<const int> devices);

struct GpuPlacement {
  std::vector<int> devices;  // Indices in FreeGpus::device_milli.
  double score = 0;          // The higher the better: in thousandths of a GPU, to be compared between nodes.
};

// The best devices of this node for the pod: those with the largest drop of fragmentation, less a penalty for what the
// node still has free. The penalty prefers the fuller of two nodes that are as good otherwise. Without it the policy
// is good only where equal scores always go to the same node; kube-scheduler picks among them at random. Nullopt: the
// pod does not fit.
std::optional<GpuPlacement> PlacePod(const FreeGpus& node, const GpuRequest& pod, std::span<const TypicalPod> typical);

}  // namespace grus
