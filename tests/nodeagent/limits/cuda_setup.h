// SPDX-License-Identifier: Apache-2.0
// A CudaSharing on a node of two GPUs, and containers that it holds to their parts, made up.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nodeagent/cuda/share_files.h"
#include "nodeagent/limits/cuda_share.h"
#include "nodeagent/limits/cuda_sharing.h"
#include "tests/kit/manual_clock.h"
#include "tests/kit/must.h"
#include "tests/kit/temp_dir.h"
#include "tests/nodeagent/sharing/part_fakes.h"
#include "tests/nodeagent/sharing/part_looks.h"

namespace grus::testing {

inline constexpr char kGpu0[] = "GPU-00000000-0000-0000-0000-000000000000";
inline constexpr char kGpu1[] = "GPU-00000000-0000-0000-0000-000000000001";

inline std::vector<PartId> IdsOf(const std::string& gpu, int from, int count) {
  std::vector<PartId> ids;
  for (int i = 0; i < count; ++i) ids.push_back({gpu, from + i});
  return ids;
}

class CudaSetup : public ::testing::Test {
 protected:
  // A new agent.
  void Begin() {
    turns_ = 0;
    sharing_.reset();
    sharing_.emplace(
        CudaOptions{.library = source_,
                    .folder = folder_.path("cuda"),
                    .shares = folder_.path("shares"),
                    .context_mib = context_mib_,
                    .proc = folder_.path("proc")},
        holders_, [this] { return look_; }, clock_, log_);
  }
  void BeginWanted() {
    Begin();
    sharing_->Want(true);
    sharing_->LookOnce();
    sharing_->AskOnce();
  }
  // So many turns, each a tenth of a second; the other threads take theirs in between.
  void Turn(int times = 1) {
    for (int i = 0; i < times; ++i) {
      clock_.Advance(std::chrono::milliseconds(100));
      if (turns_ % 50 == 0) sharing_->AskOnce();
      sharing_->LookOnce();
      if (++turns_ % 10 == 0) sharing_->CutOnce();
    }
  }
  // The probe looks once a second, in between.
  void Play(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      auto look = std::make_shared<NodeSample>(*look_);
      look->at = clock_.Now();
      look_ = std::move(look);
      Turn(10);
    }
  }

  ContainerSetup Give(PartResource resource, const std::vector<PartId>& ids, std::int64_t memory_mib) {
    ContainerSetup setup;
    kit::Must(sharing_->Give({resource, ids, memory_mib}, setup));
    return setup;
  }
  kube::Status Start(const HeldParts& part) {
    for (const auto& [resource, ids] : part.ids) {
      if (kube::Status may_start = sharing_->MayStart(resource, ids, &part); !may_start) return may_start;
    }
    return {};
  }
  // The kubelet says so, too.
  void Hold(const HeldParts& part) {
    HeldDevices held{part.pod.ns, part.pod.name, part.container, {}};
    for (const auto& [resource, ids] : part.ids) {
      for (const PartId& id : ids) held.ids[std::string(NameOf(resource))].push_back(ToText(id));
    }
    holders_.held.push_back(std::move(held));
  }
  // Given, held and started.
  HeldParts Run(const std::string& pod, const std::string& gpu, int from, int milli, std::int64_t memory_mib = 1000) {
    HeldParts part{.pod = {"a", pod},
                   .container = "c",
                   .ids = {{PartResource::kMilli, IdsOf(gpu, from, milli)}},
                   .memory_mib = memory_mib};
    Give(PartResource::kMilli, part.ids[PartResource::kMilli], memory_mib);
    Hold(part);
    kit::Must(Start(part));
    return part;
  }

  static std::string NameOfShare(const HeldParts& part) {
    const auto& [resource, ids] = *part.ids.begin();
    return ShareName(resource, ids);
  }
  std::string PathOf(const HeldParts& part, const std::string& file = {}) const {
    return folder_.path("shares/" + NameOfShare(part) + "/" + file);
  }
  // As programs in the container see them.
  std::unique_ptr<cuda::Limits> LimitsOf(const HeldParts& part) const {
    auto limits = std::make_unique<cuda::Limits>();
    std::ifstream file(PathOf(part, cuda::kLimitsFile), std::ios::binary);
    if (!file.read(reinterpret_cast<char*>(limits.get()), sizeof(cuda::Limits))) ADD_FAILURE() << "no limits";
    return limits;
  }
  std::uint32_t RateOf(const HeldParts& part) const { return LimitsOf(part)->gpus[0].rate; }
  // A program writes a number of `account`.
  template <typename Number>
  void Write(const HeldParts& part, std::size_t at, Number number) const {
    std::fstream file(PathOf(part, cuda::kAccountFile), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.write(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  // The only one of the container.
  void WriteProcess(const HeldParts& part, std::size_t place, std::int32_t pid, std::uint64_t bytes) const {
    Write(part, offsetof(cuda::Account, memory), bytes);
    const std::size_t at = offsetof(cuda::Account, processes) + place * sizeof(cuda::ProcessAccount);
    Write(part, at + offsetof(cuda::ProcessAccount, pid), pid);
    Write(part, at + offsetof(cuda::ProcessAccount, started), std::uint64_t{7});
    Write(part, at + offsetof(cuda::ProcessAccount, memory), bytes);
  }
  void WriteTime(const HeldParts& part, kube::Duration charged, kube::Duration waited = {}) const {
    const auto count = [](kube::Duration time) {
      return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
    };
    Write(part, offsetof(cuda::Account, time) + offsetof(cuda::GpuTime, charged), count(charged));
    Write(part, offsetof(cuda::Account, time) + offsetof(cuda::GpuTime, waited), count(waited));
  }
  // The driver sees a process of the container, which has this number in it.
  void SeeProcess(const HeldParts& part, std::size_t gpu, int pid, std::optional<std::uint64_t> bytes) {
    auto look = std::make_shared<NodeSample>(*look_);
    AddProcess(*look, gpu, {part.pod.ns, part.pod.name, part.container}, bytes);
    const int host_pid = look->gpus[gpu].processes.back().usage.pid;
    folder_.Write("proc/" + std::to_string(host_pid) + "/status",
                  "NSpid:\t" + std::to_string(host_pid) + "\t" + std::to_string(pid) + "\n");
    look_ = std::move(look);
  }
  void SeeNoProcesses() {
    auto look = std::make_shared<NodeSample>(*look_);
    for (GpuState& gpu : look->gpus) gpu.processes.clear();
    look_ = std::move(look);
  }

  static std::shared_ptr<const NodeSample> TwoGpus() {
    auto look = std::make_shared<NodeSample>(GpusOf(2, 8));
    look->gpus[0].gpu.uuid = kGpu0;
    look->gpus[1].gpu.uuid = kGpu1;
    return look;
  }

  kube::testing::ManualClock clock_;
  const kube::Log log_;
  const kube::testing::TempDir folder_;
  std::string source_ = folder_.Write("image/libgrus-cuda.so", "a library");
  std::int64_t context_mib_ = 0;
  std::shared_ptr<const NodeSample> look_ = TwoGpus();
  FakeHolders holders_;
  std::optional<CudaSharing> sharing_;
  int turns_ = 0;  // Of this agent.
};

}  // namespace grus::testing
