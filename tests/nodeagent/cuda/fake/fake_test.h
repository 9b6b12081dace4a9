// SPDX-License-Identifier: Apache-2.0
// A folder of its own for each test of the fake driver.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/nodeagent/cuda/fake/client_process.h"
#include "tests/nodeagent/cuda/fake/fake_world.h"

namespace grus::cuda::fake {

class FakeTest : public ::testing::Test {
 protected:
  FakeTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "grus-fake-cuda-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~FakeTest() override { std::filesystem::remove_all(folder_); }

  std::string Path() const { return folder_ / "world"; }

 private:
  std::filesystem::path folder_;
};

}  // namespace grus::cuda::fake
