// SPDX-License-Identifier: Apache-2.0
// The devices that pods claim and nodes have (Dynamic Resource Allocation), read from the caches as resources named
// "deviceclass.resource.kubernetes.io/CLASS". Tells who must look again when they change.
//
// If containers may also ask for devices of a class by the name of an extended resource, the devices count under that
// name, too: each claimed device takes one of both, so that no device is counted twice.
//
// Parts of GPUs by grus' own driver count in thousandths and MiB (policy/claimed_gpus.h), and whole GPUs of NVIDIA's
// driver as nvidia.com/gpu, too: of the devices of a class that is not understood, once they are allocated.
//
// Any other class counts if its selectors are understood and each of its devices belongs to one node, and to one claim
// at a time. Devices of other classes are left out, of pods and of nodes; so are all devices if the cluster lacks the
// API or grus the permission to read it. GPUs that somebody has taken out of use, as gpushare has it, are not offered.
// Thread-safe; callbacks run on the thread that brought the change.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "clientlib/base/log.h"
#include "clientlib/cache/informer.h"
#include "clientlib/model/core_v1.h"
#include "controllers/policy/claimed_gpus.h"
#include "controllers/policy/device_class.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/node_match.h"

namespace grus {

// A ConfigMap that may be one of those in policy/gpushare_gpus.h; nothing else is read of it.
struct UnhealthyGpusData {
  std::string gpus = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const UnhealthyGpusData&, const UnhealthyGpusData&) = default;
};

struct UnhealthyGpus : kube::Object {
  UnhealthyGpusData data;
  static const kube::Kind& ResourceKind();
};

// How many devices of a class each node has.
class DevicesByNode {
 public:
  void Put(const std::string& node, std::int64_t count);
  std::int64_t Most() const { return nodes_with_.empty() ? 0 : nodes_with_.rbegin()->first; }  // That a node has.

 private:
  std::map<std::string, std::int64_t> of_node_;  // Without those that have none.
  std::map<std::int64_t, int> nodes_with_;       // By count.
};

struct DeviceNeeds {
  Resources devices;
  std::size_t parts = 0;  // Of GPUs, by grus' own driver.
  // Why the scheduler finds no node for the pod: "ResourceClaim team-a/gpus does not exist". Empty: nothing.
  std::string problem;
  friend bool operator==(const DeviceNeeds&, const DeviceNeeds&) = default;
};

// Index keys of a pod: one for each claim and template that it uses, and one that all pods with claims share, for
// changes of classes.
std::vector<std::string> DeviceKeysOf(const kube::Object& pod);

class PodDevices {
 public:
  struct Caches {
    kube::Informer &claims, &templates, &classes, &slices;
    kube::Informer* unhealthy_gpus = nullptr;  // Of UnhealthyGpus. Null: nobody takes GPUs out of use in this way.
  };
  // Registers handlers: the informers must outlive this, and be stopped and joined before it goes.
  PodDevices(Caches caches, const kube::Log& log);

  // REQUIRES of both: before the informers start.
  // The pods with this key may need other devices than before.
  void OnNeeds(std::function<void(const std::string& key)> callback) { on_needs_.push_back(std::move(callback)); }
  // The node may have other devices than before; empty: any node.
  void OnNode(std::function<void(const std::string& node)> callback) { on_node_.push_back(std::move(callback)); }

  // The allocated devices of a claim that pods share count for the first pod that the claim is reserved for.
  DeviceNeeds NeedsOf(const kube::Pod& pod) const;
  void AddDevicesOf(const std::string& node, Resources& allocatable) const;
  // Takes away the GPUs of which claims have parts by grus' own driver, so that nobody is planned there by another way.
  void WithholdClaimed(const std::string& node, Resources& allocatable) const;
  void WithholdUnhealthy(const kube::Node& node, Resources& allocatable) const;

 private:
  struct Class {
    std::optional<DeviceFilter> filter;        // None: not understood.
    std::string extended_resource;             // Empty: none.
    std::set<std::string> uncountable_slices;  // Slices with devices of it that cannot be counted.
    std::string driver;                        // Of all its devices; empty: not known.
    DevicesByNode devices;                     // That a request for all of a node may get, if it is a class of GPUs.
    bool Counts() const { return filter && uncountable_slices.empty() && driver != kGpuClaimDriver; }
  };
  enum class DeviceKind { kOther, kGpuPart, kWholeGpu };
  void OnResourceClaim(const kube::Change& change);
  void OnTemplate(const kube::Change& change);
  void OnClass(const kube::Change& change);
  void OnSlice(const kube::Change& change);
  void OnUnhealthyGpus(const kube::Change& change);
  void TellAll() const;
  // Whether all slices of its pool are there and none is newer: otherwise the scheduler allocates nothing of the pool.
  bool IsCurrent(const kube::ResourceSlice& slice) const;
  void AddRequested(const kube::ResourceClaimSpec& claim, DeviceNeeds& needs) const;
  // `node`: GPUs of other nodes are not named. Null: all are.
  void AddClaim(const kube::ResourceClaim& claim, const kube::CompactString* node, DeviceNeeds& needs) const;
  void AddOf(std::string_view name, std::int64_t count, DeviceNeeds& needs) const;
  DeviceKind KindOfClass(std::string_view name) const;
  // These return whole GPUs of NVIDIA's driver.
  std::int64_t AddExact(const kube::ExactDeviceRequest& request, DeviceNeeds& needs) const;
  std::int64_t AddMost(const kube::DeviceRequest& request, DeviceNeeds& needs) const;
  std::shared_ptr<const kube::Device> FindDevice(const kube::DeviceAllocation& allocation) const;  // Null: not there.
  bool IsWhole(const kube::DeviceAllocation& allocation, std::string_view device_class) const;
  void AddGpusOf(const kube::ResourceSlice& slice, std::int64_t& whole, Resources& devices) const;
  static void NoteSlice(const std::string& name, const kube::ResourceSlice* slice, Class& its_class);
  // Before it is allocated: of mode All, as many as it gets where most are.
  std::int64_t CountOf(const kube::ExactDeviceRequest& request) const;
  ClaimedPart PartOf(const kube::ExactDeviceRequest& request) const;
  // REQUIRES: mutex_ is held. True: what CountOf() says may be another number now.
  bool CountDevicesOf(const std::string& node, Class& its_class);

  const Caches caches_;
  const kube::Log& log_;
  const kube::Store::IndexId slices_by_node_, slices_by_pool_, claims_by_node_;
  std::vector<std::function<void(const std::string&)>> on_needs_, on_node_;

  mutable std::mutex mutex_;     // Guards what follows.
  bool has_seen_slice_ = false;  // Slices can be read, although their first list may not be complete.
  std::map<std::string, Class, std::less<>> classes_;
};

// As read from the object itself, plus what claims and slices add. `devices` may be null.
Resources RequestOf(const kube::Pod& pod, const PodDevices* devices);
PodShape ShapeOf(const kube::Pod& pod, const PodDevices* devices);
NodeState StateOf(const kube::Node& node, const PodDevices* devices);

}  // namespace grus
