// SPDX-License-Identifier: Apache-2.0
// A container in small: the fake driver's world, a share of its GPUs as the agent makes it, and programs that load
// libgrus-cuda.so as a container's programs do. The library is the one that is installed, but for the folder of the
// share, which is named by a variable.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "nodeagent/limits/share_folder.h"
#include "tests/nodeagent/cuda/fake/client_process.h"
#include "tests/nodeagent/cuda/fake/fake_test.h"
#include "tests/nodeagent/cuda/fake/fake_world.h"

namespace grus::cuda {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20, kGiB = kMiB << 10;

class LimitedTest : public fake::FakeTest {
 protected:
  // `memory`: of each GPU of the world, in their order; a GPU beyond the list is none of the container's. `paged`: past
  // that, of each.
  void Share(const fake::WorldSetup& setup, std::vector<std::uint64_t> memory, std::uint32_t milli = 0,
             std::uint64_t paged = 0) {
    world_ = std::make_unique<fake::FakeWorld>(Path(), setup);
    folder_ = std::make_unique<ShareFolder>(Path() + ".share");
    for (std::size_t gpu = 0; gpu < memory.size(); ++gpu) {
      parts_.push_back({.gpu = fake::FakeWorld::UuidText(static_cast<int>(gpu)),
                        .memory_bytes = memory[gpu],
                        .context_bytes = setup.context_bytes,
                        .paged_bytes = paged,
                        .milli = milli,
                        .rate_milli = milli});
    }
    std::filesystem::create_directories(folder_->path());
    const kube::Status made = folder_->Make(parts_, std::chrono::nanoseconds(1));
    ASSERT_TRUE(made) << made.error().message();
  }
  void TearDownShare() {
    if (folder_ == nullptr) return;
    std::filesystem::remove_all(folder_->path());
    folder_ = nullptr;
    world_ = nullptr;
    parts_.clear();
  }
  std::vector<std::string> Environment() const { return EnvironmentOf(*folder_); }
  std::vector<std::string> EnvironmentOf(const ShareFolder& folder) const {
    return {world_->Environment(), "GRUS_CUDA_FOLDER=" + folder.path(), "LD_PRELOAD=" + Library()};
  }
  std::unique_ptr<fake::ClientProcess> Start(std::vector<std::string> options = {},
                                             const std::string& program = "fake-cuda-client") const {
    return std::make_unique<fake::ClientProcess>(Environment(), std::move(options), program);
  }
  static std::string Library() {
    const char* const named = std::getenv("GRUS_CUDA_LIBRARY");
    if (named != nullptr) return named;
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "cuda" / "libgrus-cuda-anywhere.so";
  }
  // What the container's own account says, of the GPU; after all GPUs, of what is paged of each.
  AccountCopy::Gpu Account(int entry = 0) const {
    const auto account = folder_->ReadAccount(EntriesOf(parts_));
    return account ? account->gpus[static_cast<std::size_t>(entry)]
                   : AccountCopy::Gpu{.memory_bytes = ~std::uint64_t{0}, .most_memory_bytes = ~std::uint64_t{0}};
  }
  std::uint64_t Counted(int entry = 0) const { return Account(entry).memory_bytes; }
  std::uint64_t Most(int entry = 0) const { return Account(entry).most_memory_bytes; }  // That it ever was.

  std::unique_ptr<fake::FakeWorld> world_;
  std::unique_ptr<ShareFolder> folder_;
  std::vector<ShareLimits> parts_;
};

}  // namespace grus::cuda
