// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/gpu_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/kit/temp_dir.h"

namespace grus {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class GpuFaultsTest : public ::testing::Test {
 protected:
  GpuFaultsTest() { Boot("boot-1"); }
  void Boot(const std::string& id) { folder_.Write("proc/sys/kernel/random/boot_id", id + "\n"); }
  // Another inode, as the one before is still there.
  void LoadDriver() {
    fs::create_directories(folder_.path("module-" + std::to_string(++loads_)));
    fs::remove(folder_.path("module"));
    fs::create_directory_symlink(folder_.path("module-" + std::to_string(loads_)), folder_.path("module"));
  }
  std::string File() const { return folder_.path("state/faults"); }
  // As a new process has it.
  GpuFaults Agent() const { return GpuFaults({File(), folder_.path("proc"), folder_.path("module")}, log_); }

  const kube::testing::TempDir folder_;
  const kube::Log log_;
  int loads_ = 0;
};

TEST_F(GpuFaultsTest, TheNextAgentKnowsWhichGpusAreSick) {
  GpuFaults agent = Agent();
  agent.Put("GPU-a", 79);
  agent.Put("GPU-b", 48);
  agent.Put("GPU-b", 63);
  agent.Put("GPU-c", 48);
  agent.Forget("GPU-c");
  EXPECT_EQ(Agent().Of("GPU-a"), 79u);
  EXPECT_EQ(Agent().Of("GPU-b"), 63u);
  EXPECT_EQ(Agent().Of("GPU-c"), std::nullopt);
}

TEST_F(GpuFaultsTest, ARebootMakesThemWell) {
  Agent().Put("GPU-a", 79);
  Boot("boot-2");
  EXPECT_EQ(Agent().Of("GPU-a"), std::nullopt);
  Agent().Put("GPU-b", 48);
  EXPECT_EQ(Agent().Of("GPU-a"), std::nullopt) << "nor does it come back with another one";
}

TEST_F(GpuFaultsTest, ADriverThatIsLoadedAnewMakesThemWell) {
  LoadDriver();
  Agent().Put("GPU-a", 79);
  EXPECT_EQ(Agent().Of("GPU-a"), 79u);
  LoadDriver();
  EXPECT_EQ(Agent().Of("GPU-a"), std::nullopt);
}

TEST_F(GpuFaultsTest, ADriverMayBeLoadedAnewBesideARunningAgent) {
  LoadDriver();
  GpuFaults agent = Agent();
  agent.Put("GPU-a", 79);
  EXPECT_FALSE(agent.ForgetIfDriverIsNew());
  EXPECT_EQ(agent.Of("GPU-a"), 79u);
  LoadDriver();
  EXPECT_TRUE(agent.ForgetIfDriverIsNew());
  EXPECT_EQ(agent.Of("GPU-a"), std::nullopt);
  agent.Put("GPU-b", 48);
  EXPECT_EQ(Agent().Of("GPU-b"), 48u);
}

TEST_F(GpuFaultsTest, AFileThatMakesNoSenseCountsAsNone) {
  Agent().Put("GPU-a", 79);
  const std::string first = "grus-gpu-faults-1 boot-1 0\n";
  for (const std::string& text : {std::string(), std::string("\0\xff\n\n", 4), first + "GPU-a\n", first + "GPU-a x\n",
                                  first + "GPU-a 79\n 48\n", first + "GPU-a 99999999999999999999999\n",
                                  std::string("grus-gpu-faults-2 boot-1 0\nGPU-a 79\n"), std::string(1 << 20, 'a')}) {
    folder_.Write("state/faults", text);
    EXPECT_EQ(Agent().Of("GPU-a"), std::nullopt) << text.substr(0, 80);
  }
  fs::remove(File());
  fs::create_directories(File());
  EXPECT_EQ(Agent().Of("GPU-a"), std::nullopt) << "a folder";
}

TEST_F(GpuFaultsTest, WithoutABootIdNothingOutlivesTheAgent) {
  fs::remove_all(folder_.path("proc"));
  GpuFaults agent = Agent();
  agent.Put("GPU-a", 79);
  EXPECT_EQ(agent.Of("GPU-a"), 79u);
  EXPECT_EQ(Agent().Of("GPU-a"), std::nullopt);
  EXPECT_FALSE(fs::exists(File()));
}

TEST_F(GpuFaultsTest, AFileThatCannotBeWrittenIsToldOnceAndWrittenWithTheNext) {
  folder_.Write("state", "no folder");
  GpuFaults agent = Agent();
  ::testing::internal::CaptureStderr();
  agent.Put("GPU-a", 79);
  agent.Put("GPU-b", 48);
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(logged, HasSubstr("cannot be written"));
  EXPECT_EQ(logged.find('\n'), logged.size() - 1) << logged;
  EXPECT_EQ(agent.Of("GPU-a"), 79u);

  fs::remove(folder_.path("state"));
  agent.Put("GPU-c", 48);
  EXPECT_EQ(Agent().Of("GPU-a"), 79u);
  EXPECT_EQ(Agent().Of("GPU-c"), 48u);
}

}  // namespace
}  // namespace grus
