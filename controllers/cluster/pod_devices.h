// SPDX-License-Identifier: Apache-2.0
// What the caches say of the devices that pods claim and nodes have (Dynamic Resource Allocation), as
// resources named "deviceclass.resource.kubernetes.io/CLASS", and who is to look again when that changes.
//
// Of a class that containers may ask for by the name of an extended resource, they count under that name, too: who
// claims a device takes one of both, so that no device is counted for two.
//
// A class counts when it is known which devices it has, and each of those is one node's and one claim's at a
// time; else, and without the API or the permission to read it, nothing is known of it: its devices are not
// asked for, and no node has any. Thread-safe; callbacks are called on the thread that brought the news.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "clientlib/base/log.h"
#include "clientlib/cache/informer.h"
#include "clientlib/model/core_v1.h"
#include "controllers/policy/device_class.h"
#include "controllers/policy/node_match.h"

namespace grus {

struct DeviceNeeds {
  Resources devices;
  // Why the scheduler takes the pod for no node: "ResourceClaim team-a/gpus does not exist". Empty: it does.
  std::string problem;
  friend bool operator==(const DeviceNeeds&, const DeviceNeeds&) = default;
};

// What a pod is found by in an index when its claims change; the same for all that claim anything when
// classes do.
std::vector<std::string> DeviceKeysOf(const kube::Object& pod);

class PodDevices {
 public:
  struct Caches {
    kube::Informer &claims, &templates, &classes, &slices;
  };
  // Registers handlers: the informers must outlive this, and be stopped and joined before it goes.
  PodDevices(Caches caches, const kube::Log& log);

  // REQUIRES of both: before the informers start.
  // Pods with this key may need something else than before.
  void OnNeeds(std::function<void(const std::string& key)> callback) { on_needs_.push_back(std::move(callback)); }
  // A node may have others than before; empty: any node.
  void OnNode(std::function<void(const std::string& node)> callback) { on_node_.push_back(std::move(callback)); }

  // Of a claim that several pods name, what was allocated counts for the first of those that it is reserved
  // for.
  DeviceNeeds NeedsOf(const kube::Pod& pod) const;
  void AddDevicesOf(const std::string& node, Resources& allocatable) const;

 private:
  struct Class {
    std::optional<DeviceFilter> filter;        // None: not understood.
    std::string extended_resource;             // Empty: none.
    std::set<std::string> uncountable_slices;  // With devices of it that are not to be counted.
    bool Counts() const { return filter && uncountable_slices.empty(); }
  };
  void OnResourceClaim(const kube::Change& change);
  void OnTemplate(const kube::Change& change);
  void OnClass(const kube::Change& change);
  void OnSlice(const kube::Change& change);
  void TellAll() const;
  // Its pool is there as a whole, and not in a newer generation: else the scheduler allocates nothing of it.
  bool IsCurrent(const kube::ResourceSlice& slice) const;
  void AddRequested(const kube::ResourceClaimSpec& claim, DeviceNeeds& needs) const;
  void AddClaim(const kube::ResourceClaim& claim, DeviceNeeds& needs) const;
  void AddOf(std::string_view name, std::int64_t count, DeviceNeeds& needs) const;
  static void NoteSlice(const std::string& name, const kube::ResourceSlice* slice, Class& its_class);

  const Caches caches_;
  const kube::Log& log_;
  const kube::Store::IndexId slices_by_node_, slices_by_pool_;
  std::vector<std::function<void(const std::string&)>> on_needs_, on_node_;

  mutable std::mutex mutex_;     // Guards what follows.
  bool has_seen_slice_ = false;  // Slices can be read, although their first list may not be complete.
  std::map<std::string, Class, std::less<>> classes_;
};

// What their own objects say, with what claims and slices add. `devices` may be null.
Resources RequestOf(const kube::Pod& pod, const PodDevices* devices);
PodShape ShapeOf(const kube::Pod& pod, const PodDevices* devices);
NodeState StateOf(const kube::Node& node, const PodDevices* devices);

}  // namespace grus
