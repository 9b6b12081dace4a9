// SPDX-License-Identifier: Apache-2.0
// What PartPlugins asks, made up.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nodeagent/kubelet/held_devices.h"
#include "nodeagent/sharing/part_enforcer.h"
#include "nodeagent/sharing/pending_parts.h"
#include "tests/nodeagent/gpu_states.h"

namespace grus::testing {

class FakeHolders final : public DeviceHolders {
 public:
  kube::Result<std::vector<HeldDevices>> List() override {
    ++lists;
    if (!is_available) return kube::Error(kube::ErrorCode::kUnavailable, "the kubelet does not answer");
    return held;
  }
  std::vector<HeldDevices> held = {};
  bool is_available = true;
  std::atomic<int> lists = 0;
};

class FakePending final : public PendingParts {
 public:
  std::optional<std::vector<PartAsk>> Asks() const override { return asks; }
  void Await(const std::set<kube::ObjectKey>& pods) const override {
    if (on_await) on_await(pods);
  }
  std::function<void(const std::set<kube::ObjectKey>&)> on_await = {};
  std::optional<std::vector<PartAsk>> asks = std::vector<PartAsk>();
};

class FakeEnforcer final : public PartEnforcer {
 public:
  bool MayGive(const std::string& gpu) const override { return !down.contains(gpu); }
  kube::Status Give(const PartToGive& part, ContainerSetup& setup) override {
    if (!is_writable) return kube::Error(kube::ErrorCode::kUnavailable, "the disk is full");
    {
      const std::scoped_lock lock(mutex_);
      given.push_back(part);
    }
    if (is_on) setup.environment["HELD"] = "1";
    return {};
  }
  kube::Status MayStart(PartResource, const std::vector<PartId>& ids, const HeldParts* holder) override {
    {
      const std::scoped_lock lock(mutex_);
      starting = holder ? std::optional(*holder) : std::nullopt;
    }
    if (!ids.empty() && down.contains(ids.front().gpu)) {
      return kube::Error(kube::ErrorCode::kUnavailable, "its daemon is down");
    }
    return {};
  }
  Enforcement WayOf(const HeldParts& part) const override {
    const auto found = holders.find(part.pod.name + "/" + part.container);
    return found == holders.end() ? Enforcement::kNone : found->second;
  }
  std::set<std::string> down = {};                  // UUIDs.
  std::map<std::string, Enforcement> holders = {};  // By "pod/container".
  std::vector<PartToGive> given = {};               // Read it when no call runs, and the next.
  std::optional<HeldParts> starting;                // Who was about to start last.
  bool is_on = false, is_writable = true;

 private:
  std::mutex mutex_;  // Guards given and starting.
};

inline PartAsk AskFor(const std::string& pod, std::int64_t memory, std::int64_t compute) {
  PartAsk ask{.pod = {"a", pod}, .container = "c"};
  ask.amounts[PartResource::kMemory] = memory;
  ask.amounts[PartResource::kCompute] = compute;
  return ask;
}

// Working GPUs "GPU-0", "GPU-1", ... of that many GiB, and half a GiB for the reserve.
inline NodeSample GpusOf(int count, std::uint64_t gib) {
  std::vector<GpuState> gpus;
  for (int i = 0; i < count; ++i) {
    gpus.push_back(WorkingGpu(i));
    gpus.back().sample->memory_total_bytes = gib * kGiB + 512 * kMiB;
  }
  return LookAt(std::move(gpus));
}

}  // namespace grus::testing
