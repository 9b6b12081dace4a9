// SPDX-License-Identifier: Apache-2.0
#include "tests/nodeagent/cuda/fake/fake_world.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace grus::cuda::fake {

FakeWorld::FakeWorld(std::string path, const WorldSetup& setup)
    : path_(std::move(path)), file_(WorldFile::Make(path_)) {
  if (file_ == nullptr || setup.gpus.size() > kMostGpus) throw std::runtime_error("cannot make a world in " + path_);
  WorldState& state = file_->state();
  state.driver_version = setup.driver_version;
  state.gpu_count = static_cast<std::uint32_t>(setup.gpus.size());
  state.context_bytes = setup.context_bytes;
  state.reuses_addresses = setup.reuses_addresses ? 1 : 0;
  state.can_move_managed = setup.can_move_managed ? 1 : 0;
  state.granularity = setup.granularity;
  state.rounding = setup.rounding;
  state.pool_chunk = setup.pool_chunk;
  state.is_virtual = setup.is_virtual ? 1 : 0;
  state.virtual_now = 1'000'000'000;
  state.next_id = 1;
  for (std::size_t i = 0; i < setup.gpus.size(); ++i) {
    state.gpus[i].total = setup.gpus[i];
    const std::array<unsigned char, 16> uuid = Uuid(static_cast<int>(i));
    std::memcpy(state.gpus[i].uuid, uuid.data(), uuid.size());
    std::snprintf(state.gpus[i].name, sizeof(state.gpus[i].name), "Fake GPU %zu", i);
  }
}

FakeWorld::~FakeWorld() { unlink(path_.c_str()); }

std::array<unsigned char, 16> FakeWorld::Uuid(int gpu) {
  std::array<unsigned char, 16> uuid = {0xfa, 0xce, 0x6f, 0x0d, 0x11, 0x22, 0x43, 0x44,
                                        0x85, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb};
  uuid.back() = static_cast<unsigned char>(gpu);
  return uuid;
}

std::string FakeWorld::UuidText(int gpu) {
  std::string text = "GPU";
  const std::array<unsigned char, 16> uuid = Uuid(gpu);
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", uuid[i]);
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += "-";
    text += digits;
  }
  return text;
}

std::uint64_t FakeWorld::Used(int gpu) {
  const std::scoped_lock held(*file_);
  file_->Sweep();
  return file_->state().gpus[gpu].used + file_->state().gpus[gpu].resident;
}

std::uint64_t FakeWorld::Managed(int gpu) {
  const std::scoped_lock held(*file_);
  file_->Sweep();
  return file_->state().gpus[gpu].resident;
}

std::uint64_t FakeWorld::InHost(int gpu) {
  const std::scoped_lock held(*file_);
  file_->Sweep();
  std::uint64_t bytes = 0;
  for (const FakeProcess& process : file_->state().processes) bytes += process.managed[gpu] - process.resident[gpu];
  return bytes;
}

std::uint64_t FakeWorld::Free(int gpu) { return file_->state().gpus[gpu].total - Used(gpu); }

std::uint64_t FakeWorld::UsedBy(std::int32_t pid, int gpu) {
  const std::scoped_lock held(*file_);
  file_->Sweep();
  std::uint64_t used = 0;
  for (const FakeProcess& process : file_->state().processes)
    used += process.pid == pid ? process.used[gpu] + process.resident[gpu] : 0;
  return used;
}

std::vector<std::int32_t> FakeWorld::Processes() {
  const std::scoped_lock held(*file_);
  file_->Sweep();
  std::vector<std::int32_t> pids;
  for (const FakeProcess& process : file_->state().processes) {
    if (process.pid != 0) pids.push_back(process.pid);
  }
  return pids;
}

std::uint64_t FakeWorld::BusyNs(std::int32_t pid, int gpu) {
  const std::scoped_lock held(*file_);
  file_->Sweep();
  std::uint64_t busy = 0;
  for (std::int32_t place = 0; place < static_cast<std::int32_t>(kMostProcesses); ++place) {
    if (file_->state().processes[place].pid == pid) busy += file_->BusyOf(place, gpu);
  }
  return busy;
}

std::uint64_t FakeWorld::BusyNs(int gpu) {
  const std::scoped_lock held(*file_);
  file_->Sweep();
  return file_->BusyOfAll(gpu);
}

std::uint64_t FakeWorld::Now() { return file_->Now(); }

void FakeWorld::Advance(std::uint64_t nanoseconds) { file_->state().virtual_now += nanoseconds; }

void FakeWorld::Fail(const std::string& function, std::uint32_t nth, int code) {
  AddFault(function, 0, nth, code);
  ++file_->state().fault_count;
}

void FakeWorld::Lack(const std::string& function) {
  AddFault(function, 1, 0, 0);
  ++file_->state().fault_count;
}

void FakeWorld::HoldBefore(const std::string& function) {
  hold_ = &AddFault(function, 0, 0, 0);
  hold_->is_hold_before = 1;
  ++file_->state().fault_count;
}

void FakeWorld::HoldAfter(const std::string& function) {
  hold_ = &AddFault(function, 0, 0, 0);
  hold_->is_hold_after = 1;
  ++file_->state().fault_count;
}

void FakeWorld::AwaitHeld() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!IsHeld()) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("nobody called what is held");
    std::this_thread::yield();
  }
}

bool FakeWorld::IsHeld() const { return hold_->is_held != 0; }

void FakeWorld::LetGo() { hold_->is_let_go = 1; }

FakeFault& FakeWorld::AddFault(const std::string& function, std::uint32_t is_missing, std::uint32_t nth, int code) {
  const std::scoped_lock held(*file_);
  WorldState& state = file_->state();
  const std::uint32_t count = state.fault_count;
  if (count == kMostFaults || function.size() >= sizeof(FakeFault::name)) throw std::runtime_error("too many faults");
  FakeFault& fault = state.faults[count];
  std::strcpy(fault.name, function.c_str());
  fault.is_missing = is_missing;
  fault.nth = nth;
  fault.code = code;
  fault.calls = 0;
  fault.is_hold_before = fault.is_hold_after = 0;
  fault.is_held = fault.is_let_go = 0;
  return fault;
}

void FakeWorld::ForgetFaults() { file_->state().fault_count = 0; }

}  // namespace grus::cuda::fake
