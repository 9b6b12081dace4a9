// SPDX-License-Identifier: Apache-2.0
// The device plugins for parts of this node's GPUs, one for each resource of its mode.
//
// The kubelet gives each id to one container at a time; so nothing is given twice as long as all ids of a container lie
// on one GPU, or are all ids of several. That is what these see to: Prefer() chooses the GPU (gpu_chooser.h),
// Allocate() refuses other ids, and PreStart() checks what became of it. Nothing is kept on disk: who holds what is
// read from PodResources. Without it, or without an API server, the last call decides, and PreStart() checks later.
//
// A GPU of which anybody holds devices of another resource (NVIDIA's plugin, another mode before) is given to nobody.
// Of the resources of a container only the first of the mode answers with the GPU: the kubelet merges the answers.
// Thread-safe. Time comes from `clock`.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/base/log.h"
#include "nodeagent/kubelet/device_plugin.h"
#include "nodeagent/kubelet/held_devices.h"
#include "nodeagent/sharing/gpu_chooser.h"
#include "nodeagent/sharing/paging.h"
#include "nodeagent/sharing/part_enforcer.h"
#include "nodeagent/sharing/shared_gpus.h"

namespace grus {

struct PartPluginsOptions {
  SharingMode mode = SharingMode::kNone;
  std::int64_t reserve_mib = 500;  // Of each GPU.
  // Called when the ids of a plugin, or their health, are others than before; and after a container has been let start.
  // On the thread of the caller.
  std::function<void()> on_devices_changed = {}, on_start = {};
  // Of GPUs that are held in yet another way (claims), by whom, by UUID. Null: none are. Thread-safe.
  std::function<std::map<std::string, std::string>()> holders_otherwise = {};
  PartEnforcer* enforcer = nullptr;  // Null: nothing holds containers to their parts. Must outlive the plugins.
};

class PartPlugins {
 public:
  // All must outlive it.
  PartPlugins(DeviceHolders& holders, const PendingParts& pending, PartPluginsOptions options, const kube::Clock& clock,
              const kube::Log& log);
  ~PartPlugins();

  void Look(const NodeSample& look);           // After each look of the probe.
  void SetPlacement(PartPlacement placement);  // For pods that say nothing.
  void SetPaging(PagingAllowance allowance);   // For containers that start from now on.
  std::vector<DevicePlugin*> plugins() const;
  SharingMode mode() const { return options_.mode; }
  // In which way the container is held to its part.
  Enforcement WayOf(const HeldParts& part) const {
    return options_.enforcer ? options_.enforcer->WayOf(part) : Enforcement::kNone;
  }
  std::vector<SharedGpu> gpus() const;  // By index.

 private:
  class Plugin;
  struct Answered {
    PartResource resource;
    std::vector<PartId> ids;
    kube::TimePoint at;
    bool is_open;                 // Its container may ask for the counterpart, as far as was known.
    bool is_refused = false;      // A later call was refused.
    std::int64_t memory_mib = 0;  // See HeldParts.
  };

  std::vector<PluginDevice> Devices(PartResource resource) const;
  kube::Result<std::vector<std::string>> Prefer(PartResource resource, const std::vector<std::string>& available,
                                                const std::vector<std::string>& needed, int count);
  kube::Result<ContainerSetup> Allocate(PartResource resource, const std::vector<std::string>& ids);
  kube::Status PreStart(PartResource resource, const std::vector<std::string>& ids);

  // What is known now, without the GPUs.
  ChooserView View(PartResource resource, std::int64_t amount);
  // `available`: sorted.
  std::vector<GpuRoom> Rooms(PartResource resource, const std::vector<PartId>& available) const;
  // What it holds by itself, and by what its pod and the node's NodePool say of memory beside it.
  kube::Status CheckStart(HeldParts holder) const;
  // If its GPUs have the memory beside those that have been let start.
  kube::Status LetStart(const HeldParts& starting, const std::vector<HeldParts>& held);
  // Also who is listed at all, if asked for.
  std::optional<std::vector<HeldParts>> Held(std::set<kube::ObjectKey>* listed = nullptr);
  std::string HolderOtherwise(const std::string& gpu) const;  // See HeldOtherwise(); empty: nobody.
  void NoteAnswered(Answered answered);                       // REQUIRES: mutex_ is held.

  DeviceHolders& holders_;
  const PendingParts& pending_;
  const PartPluginsOptions options_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  std::vector<std::unique_ptr<DevicePlugin>> plugins_;

  // What Prefer() chose, for the call of Allocate() that follows.
  struct Preferred {
    PartResource resource;
    std::int64_t amount;
    GpuChoice choice;
  };

  mutable std::mutex mutex_;  // Guards all below.
  PartPlacement placement_ = PartPlacement::kPack;
  PagingAllowance paging_;
  SharedGpus inventory_;
  std::vector<SharedGpu> gpus_;
  std::optional<Answered> last_;
  std::optional<Preferred> preferred_;
  std::vector<HeldParts> known_held_;                  // As PodResources last answered, and what was allocated since.
  std::map<std::string, std::string> held_otherwise_;  // See HeldOtherwise().
  std::set<std::pair<kube::ObjectKey, std::string>> let_start_;  // Pods and containers, by PreStart().
  bool is_deaf_told_ = false;                                    // In the log, that PodResources does not answer.
};

}  // namespace grus
