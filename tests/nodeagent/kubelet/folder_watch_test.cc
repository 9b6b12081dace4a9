// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/kubelet/folder_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/kit/temp_dir.h"

namespace grus {
namespace {

namespace fs = std::filesystem;

class FolderWatchTest : public ::testing::Test {
 protected:
  bool AwaitTold(int count) {
    for (int i = 0; i < 2000 && told_ < count; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return told_ >= count;
  }

  kube::testing::TempDir root_;
  const std::string folder_ = root_.path("watched");
  kube::SystemClock clock_;
  std::atomic<int> told_ = 0;
  FolderWatch watch_{folder_, {"mine"}, [this] { ++told_; }, clock_};
};

TEST_F(FolderWatchTest, TellsWhenAFileOfTheNameComesAndGoes) {
  fs::create_directory(folder_);
  ASSERT_TRUE(watch_.Watch());
  root_.Write("watched/other", "");
  root_.Write("watched/mine", "");
  ASSERT_TRUE(AwaitTold(1));
  EXPECT_EQ(told_, 1) << "the other file is not of interest";
  fs::rename(folder_ + "/mine", folder_ + "/other");
  ASSERT_TRUE(AwaitTold(2));
  fs::rename(folder_ + "/other", folder_ + "/mine");
  ASSERT_TRUE(AwaitTold(3));
  fs::remove(folder_ + "/mine");
  ASSERT_TRUE(AwaitTold(4));
}

TEST_F(FolderWatchTest, WatchesAFolderThatIsMadeAgain) {
  EXPECT_EQ(watch_.Watch().error().code(), kube::ErrorCode::kNotFound);
  fs::create_directory(folder_);
  ASSERT_TRUE(watch_.Watch());
  fs::remove(folder_);
  ASSERT_TRUE(AwaitTold(1)) << "its end is told";
  fs::create_directory(folder_);
  ASSERT_TRUE(watch_.Watch());
  const int before = told_;
  root_.Write("watched/mine", "");
  EXPECT_TRUE(AwaitTold(before + 1));
}

TEST_F(FolderWatchTest, WatchingAgainChangesNothing) {
  fs::create_directory(folder_);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(watch_.Watch());
  root_.Write("watched/mine", "");
  ASSERT_TRUE(AwaitTold(1));
  fs::remove(folder_ + "/mine");
  ASSERT_TRUE(AwaitTold(2));
  EXPECT_EQ(told_, 2);
}

}  // namespace
}  // namespace grus
