// SPDX-License-Identifier: Apache-2.0
// A device plugin whose devices and refusals a test decides. It prefers the last ids, by their names. Thread-safe.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nodeagent/kubelet/device_plugin.h"

namespace grus::testing {

class ScriptedPlugin final : public DevicePlugin {
 public:
  using Ids = std::vector<std::string>;

  // Devices "PREFIX_0000" and so on, all healthy.
  ScriptedPlugin(std::string resource, int count, const std::string& prefix = "GPU-1")
      : resource_(std::move(resource)) {
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      devices_.push_back({prefix + "_" + std::string(4 - std::min<std::size_t>(4, number.size()), '0') + number});
    }
  }

  void SetHealth(const std::string& id, bool is_healthy) {
    std::lock_guard lock(mutex_);
    for (PluginDevice& device : devices_) {
      if (device.id == id) device.is_healthy = is_healthy;
    }
  }
  void RefuseAllocate(std::optional<kube::Error> error) {
    std::lock_guard lock(mutex_);
    allocate_error_ = std::move(error);
  }
  void RefusePreStart(std::optional<kube::Error> error) {
    std::lock_guard lock(mutex_);
    start_error_ = std::move(error);
  }
  // While held, starts of containers take as long as it lasts.
  void HoldPreStart(bool is_held) {
    std::lock_guard lock(mutex_);
    is_held_ = is_held;
    released_.notify_all();
  }
  bool is_starting() const {
    std::lock_guard lock(mutex_);
    return starting_ > 0;
  }
  // The ids of each call, sorted.
  std::vector<Ids> allocated() const { return Locked(allocated_); }
  std::vector<Ids> started() const { return Locked(started_); }

  std::string resource() const override { return resource_; }
  std::vector<PluginDevice> Devices() const override {
    std::lock_guard lock(mutex_);
    return devices_;
  }
  kube::Result<Ids> Prefer(const Ids& available, const Ids& needed, int count) override {
    std::set<std::string, std::greater<>> others(available.begin(), available.end());
    Ids chosen = needed;
    for (const std::string& id : needed) others.erase(id);
    for (const std::string& id : others) {
      if (chosen.size() < static_cast<std::size_t>(count)) chosen.push_back(id);
    }
    return chosen;
  }
  kube::Result<ContainerSetup> Allocate(const Ids& ids) override {
    std::lock_guard lock(mutex_);
    if (allocate_error_) return *allocate_error_;
    allocated_.push_back(Sorted(ids));
    return ContainerSetup{.environment = {{"GRUS_TEST_IDS", Joined(Sorted(ids))}},
                          .mounts = {{"/usr/lib/grus", "/opt/grus", true}},
                          .device_paths = {"/dev/null"}};
  }
  kube::Status PreStart(const Ids& ids) override {
    std::unique_lock lock(mutex_);
    ++starting_;
    released_.wait(lock, [this] { return !is_held_; });
    --starting_;
    if (start_error_) return *start_error_;
    started_.push_back(Sorted(ids));
    return {};
  }

  static Ids Sorted(Ids ids) {
    std::ranges::sort(ids);
    return ids;
  }
  static std::string Joined(const Ids& ids) {
    std::string text;
    for (const std::string& id : ids) text += (text.empty() ? "" : ",") + id;
    return text;
  }

 private:
  std::vector<Ids> Locked(const std::vector<Ids>& calls) const {
    std::lock_guard lock(mutex_);
    return calls;
  }

  const std::string resource_;
  mutable std::mutex mutex_;  // Guards what follows.
  std::condition_variable released_;
  bool is_held_ = false;
  int starting_ = 0;
  std::vector<PluginDevice> devices_;
  std::optional<kube::Error> allocate_error_, start_error_;
  std::vector<Ids> allocated_, started_;
};

}  // namespace grus::testing
