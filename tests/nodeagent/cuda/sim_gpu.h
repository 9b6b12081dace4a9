// SPDX-License-Identifier: Apache-2.0
// A GPU in virtual time. Contexts take turns of 2 ms while more than one has work (time slicing), or run at once
// (as under MPS); the heads of a context's streams run side by side. A kernel has a width: the part of the GPU that it
// fills; kernels whose widths come to more than 1 slow each other down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace grus::cuda {

inline constexpr std::uint64_t kUs = 1000, kMs = 1000 * kUs, kSec = 1000 * kMs;

// When a kernel ran; `end` 0: it has not ended.
struct SimRun {
  std::uint64_t start = 0, end = 0;
};

struct SimKernel {
  double left = 0;  // ns of work, if alone.
  double width = 1;
  std::uint64_t ready = 0;
  SimRun* run = nullptr;  // Filled in, if given. Lives until the kernel has ended.
  bool started = false;
};

class SimGpu {
 public:
  enum class Sharing { kTimeSlices, kAtOnce };
  static constexpr std::uint64_t kSlice = 2 * kMs, kBin = 10 * kMs;

  explicit SimGpu(Sharing sharing) : sharing_(sharing) {}
  // A context of the container `owner`; returns its number.
  std::size_t AddContext(std::size_t owner, std::size_t streams);
  void Launch(std::size_t context, std::size_t stream, const SimKernel& kernel);
  std::size_t Queued(std::size_t context, std::size_t stream) const {
    return contexts_[context].streams[stream].size();
  }
  void AdvanceTo(std::uint64_t time);
  // How long the GPU worked for `owner` between two times, multiples of kBin.
  std::uint64_t Busy(std::size_t owner, std::uint64_t from, std::uint64_t to) const;

 private:
  struct Context {
    std::size_t owner;
    std::vector<std::deque<SimKernel>> streams;
  };
  bool HasWork(const Context& context) const;
  void ChooseActive();
  void Step(std::uint64_t until);
  void Worked(std::size_t owner, std::uint64_t from, std::uint64_t to, double share);

  Sharing sharing_;
  std::uint64_t now_ = 0, slice_end_ = 0;
  std::size_t active_ = 0;
  std::vector<Context> contexts_;
  std::vector<SimKernel*> running_;
  std::vector<std::vector<double>> bins_;  // Of each owner.
};

}  // namespace grus::cuda
