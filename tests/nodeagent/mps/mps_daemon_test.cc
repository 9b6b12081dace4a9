// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/mps/mps_daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nodeagent/mps/mps_setup.h"

namespace grus {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

class MpsDaemonTest : public ::testing::Test {
 protected:
  void Begin() { daemon_.emplace(mps_.program(), mps_.folder("GPU-0"), "GPU-0", clock_, log_); }
  void Keep() { daemon_->Keep(8000); }
  bool ComesUp() {
    return mps_.Until([&] { return daemon_->is_up(); }, [&] { Keep(); });
  }
  bool Goes() {  // Its process.
    const ProcessMark mark = mps_.Mark("GPU-0");
    return mps_.Until([&] { return !IsRunning(mark); }, [] {});
  }
  void Kill() {
    SignalGroup(mps_.Mark("GPU-0"), SIGKILL);
    ASSERT_TRUE(Goes());
  }
  // So many steps of End(), as far apart as they have to be.
  void End(int steps) {
    for (int i = 0; i < steps; ++i) {
      daemon_->End();
      clock_.Advance(seconds(10));
    }
  }

  kube::testing::ManualClock clock_;
  const kube::Log log_;
  testing::MpsSetup mps_;
  std::optional<MpsDaemon> daemon_;
};

TEST_F(MpsDaemonTest, RunsForItsGpuAndKeepsClientsFromWhatIsKeptBack) {
  Begin();
  ASSERT_TRUE(ComesUp());

  EXPECT_TRUE(IsRunning(mps_.Mark("GPU-0")));
  EXPECT_THAT(mps_.ControlLog("GPU-0"), HasSubstr("CUDA_VISIBLE_DEVICES=GPU-0\n"));
  ASSERT_TRUE(mps_.Until([&] { return mps_.ControlLog("GPU-0").find("pinned") != std::string::npos; }, [] {}));
  EXPECT_THAT(mps_.ControlLog("GPU-0"), HasSubstr("] set_default_device_pinned_mem_limit 0 8000M\n"));
}

TEST_F(MpsDaemonTest, GoesOnWithoutTheAgentAndTheNextOneKeepsIt) {
  Begin();
  ASSERT_TRUE(ComesUp());
  const ProcessMark before = mps_.Mark("GPU-0");
  daemon_.reset();
  EXPECT_TRUE(IsRunning(before));

  Begin();
  EXPECT_TRUE(daemon_->is_running());
  EXPECT_FALSE(daemon_->is_up());  // It has not answered yet.
  ASSERT_TRUE(ComesUp());
  EXPECT_EQ(mps_.Mark("GPU-0"), before);
}

TEST_F(MpsDaemonTest, OneOfAnEarlierAgentIsNotEndedBecauseItCannotBeAsked) {
  Begin();
  ASSERT_TRUE(ComesUp());
  const ProcessMark before = mps_.Mark("GPU-0");
  daemon_.emplace("/nowhere/nvidia-cuda-mps-control", mps_.folder("GPU-0"), "GPU-0", clock_, log_);
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(seconds(31));
    Keep();
  }
  EXPECT_FALSE(daemon_->is_up());
  EXPECT_TRUE(IsRunning(before)) << "programs may go on with it";

  Begin();  // With the program.
  EXPECT_TRUE(ComesUp());
  EXPECT_EQ(mps_.Mark("GPU-0"), before);
}

TEST_F(MpsDaemonTest, AnotherProcessWithItsPidIsNotTakenForIt) {
  Begin();
  ASSERT_TRUE(ComesUp());
  ProcessMark mark = mps_.Mark("GPU-0");
  daemon_.reset();
  std::ofstream(mps_.folder("GPU-0/daemon")) << mark.pid << ' ' << mark.started + 1;

  Begin();
  EXPECT_FALSE(daemon_->is_running());
  SignalGroup({mark.pid, mark.started + 1}, SIGKILL);  // It is not signalled either.
  EXPECT_TRUE(IsRunning(mark));
  SignalGroup(mark, SIGKILL);
}

TEST_F(MpsDaemonTest, OneThatDiesIsStartedAgainLaterEachTime) {
  Begin();
  ASSERT_TRUE(ComesUp());
  for (const kube::Duration wait : {seconds(1), seconds(2), seconds(4)}) {
    Kill();
    Keep();
    EXPECT_FALSE(daemon_->is_up());
    clock_.Advance(wait - std::chrono::milliseconds(1));
    Keep();
    EXPECT_FALSE(daemon_->is_running()) << wait.count();
    clock_.Advance(std::chrono::milliseconds(1));
    ASSERT_TRUE(ComesUp()) << wait.count();
  }
  clock_.Advance(minutes(1));  // It ran for a while.
  Keep();
  Kill();
  Keep();
  clock_.Advance(seconds(1));
  EXPECT_TRUE(ComesUp());
}

TEST_F(MpsDaemonTest, OneThatDiesAtOnceIsToldWithWhereToLook) {
  mps_.Behave("GPU-0", "dies");
  Begin();
  Keep();
  ASSERT_TRUE(Goes());
  ::testing::internal::CaptureStderr();
  Keep();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("GPU-0/log"));
  EXPECT_FALSE(daemon_->is_up());
}

TEST_F(MpsDaemonTest, OneThatNeverTakesClientsIsEndedAndStartedAgain) {
  mps_.Behave("GPU-0", "silent");
  Begin();
  Keep();
  const ProcessMark first = mps_.Mark("GPU-0");
  clock_.Advance(seconds(29));
  Keep();
  EXPECT_TRUE(IsRunning(first));
  clock_.Advance(seconds(1));
  Keep();
  ASSERT_TRUE(Goes());
  mps_.Behave("GPU-0", "");
  Keep();
  clock_.Advance(seconds(1));
  EXPECT_TRUE(ComesUp());
}

TEST_F(MpsDaemonTest, WithoutTheProgramNothingRunsAndItIsTriedAgain) {
  daemon_.emplace("/nothing/nvidia-cuda-mps-control", mps_.folder("GPU-0"), "GPU-0", clock_, log_);
  ::testing::internal::CaptureStderr();
  Keep();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("start /nothing/nvidia-cuda-mps-control: No such"));
  EXPECT_FALSE(daemon_->is_running());
}

TEST_F(MpsDaemonTest, TheFolderThatContainersHaveStaysWhereItIs) {
  Begin();
  ASSERT_TRUE(ComesUp());
  struct stat before = {}, after = {};
  ASSERT_EQ(stat(mps_.folder("GPU-0/pipe").c_str(), &before), 0);
  Kill();
  Keep();
  clock_.Advance(seconds(1));
  ASSERT_TRUE(ComesUp());
  ASSERT_EQ(stat(mps_.folder("GPU-0/pipe").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST_F(MpsDaemonTest, ServersThatRunAsOtherUsersCanHaveFilesInItsFoldersAndRemoveOnlyTheirs) {
  Begin();
  ASSERT_TRUE(ComesUp());
  for (const char* name : {"GPU-0/pipe", "GPU-0/log"}) {
    struct stat folder = {};
    ASSERT_EQ(stat(mps_.folder(name).c_str(), &folder), 0);
    EXPECT_EQ(folder.st_mode & 07777, 01777) << name;
  }
}

TEST_F(MpsDaemonTest, ALogThatHasGrownLongIsRemovedBeforeTheNextStart) {
  Begin();
  ASSERT_TRUE(ComesUp());
  Kill();
  std::filesystem::resize_file(mps_.folder("GPU-0/log/control.log"), (8 << 20) + 1);
  Keep();
  clock_.Advance(seconds(1));
  ASSERT_TRUE(ComesUp());
  EXPECT_LT(std::filesystem::file_size(mps_.folder("GPU-0/log/control.log")), 1U << 20);
}

TEST_F(MpsDaemonTest, IsAskedToQuitFirst) {
  Begin();
  ASSERT_TRUE(ComesUp());
  End(1);
  ASSERT_TRUE(Goes());
  EXPECT_THAT(mps_.ControlLog("GPU-0"), HasSubstr("] Exit\n"));
  End(1);
  EXPECT_FALSE(daemon_->is_running());
}

TEST_F(MpsDaemonTest, IsThenTerminatedAndThenKilled) {
  mps_.Behave("GPU-0", "ignores-quit");
  Begin();
  ASSERT_TRUE(ComesUp());
  End(1);
  EXPECT_TRUE(IsRunning(mps_.Mark("GPU-0")));
  End(1);
  ASSERT_TRUE(Goes());

  mps_.Behave("GPU-0", "ignores-quit ignores-term");
  End(1);
  ASSERT_TRUE(ComesUp());
  End(2);
  EXPECT_TRUE(IsRunning(mps_.Mark("GPU-0")));
  End(1);
  EXPECT_TRUE(Goes());
}

TEST_F(MpsDaemonTest, OneThatIsEndingIsReplacedAndNotUsed) {
  mps_.Behave("GPU-0", "ignores-quit");
  Begin();
  ASSERT_TRUE(ComesUp());
  const ProcessMark first = mps_.Mark("GPU-0");
  End(1);
  EXPECT_FALSE(daemon_->is_up());
  Keep();
  ASSERT_TRUE(mps_.Until([&] { return !IsRunning(first); }, [] {}));
  EXPECT_TRUE(ComesUp());
  EXPECT_NE(mps_.Mark("GPU-0"), first);
}

}  // namespace
}  // namespace grus
