// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/mps/mps_sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nodeagent/mps/mps_share.h"
#include "tests/kit/must.h"
#include "tests/nodeagent/mps/mps_setup.h"
#include "tests/nodeagent/sharing/part_fakes.h"

namespace grus {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr PartResource kMilli = PartResource::kMilli;

std::vector<PartId> Ids(const std::string& gpu, int from, int count) {
  std::vector<PartId> ids;
  for (int i = 0; i < count; ++i) ids.push_back({gpu, from + i});
  return ids;
}

class MpsSharingTest : public ::testing::Test {
 protected:
  void Begin() {
    sharing_.reset();
    sharing_.emplace(MpsOptions{.program = program_,
                                .folder = mps_.folder(),
                                .on_fault =
                                    [this](const kube::ObjectKey& pod, const std::string& note) {
                                      told_.push_back(pod.name);
                                      note_ = note;
                                    }},
                     holders_, clock_, log_);
    sharing_->See(testing::GpusOf(2, 8));
  }
  void Look() { sharing_->LookOnce(); }
  bool Until(const std::function<bool()>& is_true) {
    return mps_.Until(is_true, [&] { Look(); });
  }
  bool ComesUp() {
    return Until([&] { return sharing_->MayGive("GPU-0") && sharing_->MayGive("GPU-1"); });
  }
  // Begins, asks for MPS, and waits for the daemons.
  void BeginUp() {
    Begin();
    sharing_->Want(true);
    ASSERT_TRUE(ComesUp());
  }
  ContainerSetup Give(const std::string& gpu, int from, int count) {
    ContainerSetup setup;
    kit::Must(sharing_->Give({kMilli, Ids(gpu, from, count), 1000}, setup));
    return setup;
  }
  void Hold(const std::string& pod, const std::string& gpu, int from, int count) {
    std::vector<std::string> ids;
    for (const PartId& id : Ids(gpu, from, count)) ids.push_back(ToText(id));
    holders_.held.push_back({"a", pod, "c", {{std::string(NameOf(kMilli)), ids}}});
  }
  bool HasGiven(const std::string& gpu, int from, int count) const {
    return sharing_->WayOf({.ids = {{kMilli, Ids(gpu, from, count)}}}) == Enforcement::kMps;
  }
  bool Runs(const std::string& gpu) const { return IsRunning(mps_.Mark(gpu)); }
  // Looks for so long.
  void Play(kube::Duration time) {
    for (kube::Duration passed = {}; passed < time; passed += seconds(1)) {
      clock_.Advance(seconds(1));
      Look();
    }
  }

  kube::testing::ManualClock clock_;
  const kube::Log log_;
  testing::MpsSetup mps_;
  testing::FakeHolders holders_;
  std::string program_ = mps_.program();
  std::vector<std::string> told_;
  std::string note_;
  std::optional<MpsSharing> sharing_;
};

TEST_F(MpsSharingTest, WithoutTheLabelNoDaemonRunsAndContainersGetNothingOfIt) {
  Begin();
  Look();
  EXPECT_TRUE(sharing_->MayGive("GPU-0"));
  const ContainerSetup setup = Give("GPU-0", 0, 300);

  EXPECT_THAT(setup.environment, IsEmpty());
  EXPECT_FALSE(HasGiven("GPU-0", 0, 300));
  EXPECT_FALSE(Runs("GPU-0"));
  EXPECT_EQ(holders_.lists, 0);
}

TEST_F(MpsSharingTest, EachSharedGpuHasADaemonAndIsGivenOnceThatIsUp) {
  Begin();
  sharing_->Want(true);
  EXPECT_FALSE(sharing_->MayGive("GPU-0"));
  ASSERT_TRUE(ComesUp());
  EXPECT_FALSE(sharing_->MayGive("GPU-2"));  // There is none.

  const ContainerSetup setup = Give("GPU-1", 0, 300);
  EXPECT_EQ(setup.environment.at("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "30");
  EXPECT_THAT(setup.mounts, ElementsAre(PluginMount{mps_.folder("GPU-1/pipe"), kMpsPipesInContainer, false}));
  EXPECT_TRUE(HasGiven("GPU-1", 0, 300));
  EXPECT_FALSE(HasGiven("GPU-0", 0, 300));
}

TEST_F(MpsSharingTest, WhoGetsWholeGpusIsAloneOnThemAndNotHeldToThem) {
  BeginUp();
  Give("GPU-1", 0, 1000);
  Give("GPU-0", 0, 300);
  std::vector<PartId> ids = Ids("GPU-0", 0, 1000);
  for (const PartId& id : Ids("GPU-1", 0, 1000)) ids.push_back(id);
  ContainerSetup setup;
  kit::Must(sharing_->Give({kMilli, ids, 16'000}, setup));

  EXPECT_THAT(setup.environment, IsEmpty());
  EXPECT_THAT(setup.mounts, IsEmpty());
  for (int again = 0; again < 2; ++again) {
    EXPECT_FALSE(HasGiven("GPU-0", 0, 300)) << "who had these before has ended";
    EXPECT_FALSE(HasGiven("GPU-1", 0, 1));
    EXPECT_EQ(sharing_->WayOf({.ids = {{kMilli, ids}}}), Enforcement::kNone);
    EXPECT_TRUE(sharing_->MayStart(kMilli, ids, nullptr));
    Begin();  // The next agent reads it.
  }
}

TEST_F(MpsSharingTest, WhileADaemonIsDownItsGpuIsNotGivenAndWhatWasGivenUnderMpsDoesNotStart) {
  BeginUp();
  Give("GPU-0", 0, 300);
  Give("GPU-1", 0, 300);
  EXPECT_TRUE(sharing_->MayStart(kMilli, Ids("GPU-0", 0, 300), nullptr));
  SignalGroup(mps_.Mark("GPU-0"), SIGKILL);
  ASSERT_TRUE(Until([&] { return !sharing_->MayGive("GPU-0"); }));

  const kube::Status start = sharing_->MayStart(kMilli, Ids("GPU-0", 0, 300), nullptr);
  ASSERT_FALSE(start);
  EXPECT_THAT(start.error().message(), HasSubstr("the MPS daemon of GPU GPU-0 is not up"));
  EXPECT_TRUE(sharing_->MayStart(kMilli, Ids("GPU-1", 0, 300), nullptr));
  EXPECT_TRUE(sharing_->MayStart(kMilli, Ids("GPU-0", 300, 10), nullptr));  // Given before there was MPS.

  clock_.Advance(seconds(1));
  ASSERT_TRUE(ComesUp());
  EXPECT_TRUE(sharing_->MayStart(kMilli, Ids("GPU-0", 0, 300), nullptr));
}

TEST_F(MpsSharingTest, WithoutTheProgramNothingIsGivenAndTheLogSaysOnceWhatToDo) {
  program_ = mps_.folder("nvidia-cuda-mps-control");
  Begin();
  sharing_->Want(true);
  ::testing::internal::CaptureStderr();
  Play(seconds(30));
  const std::string told = ::testing::internal::GetCapturedStderr();

  EXPECT_THAT(told, AllOf(HasSubstr("nodeAgent.sharing.mps.enabled"), HasSubstr(program_)));
  EXPECT_EQ(told.find("no parts of GPUs are offered"), told.rfind("no parts of GPUs are offered"));
  EXPECT_FALSE(sharing_->MayGive("GPU-0"));

  std::filesystem::create_symlink(mps_.program(), program_);
  EXPECT_TRUE(ComesUp());
}

TEST_F(MpsSharingTest, AnAgentThatIsNotSetUpForItGivesNothingEither) {
  program_ = "";
  Begin();
  sharing_->Want(true);
  Look();
  EXPECT_FALSE(sharing_->MayGive("GPU-0"));
}

TEST_F(MpsSharingTest, WhenTheLabelGoesADaemonEndsOnceNobodyHoldsWhatWasGivenUnderIt) {
  BeginUp();
  Give("GPU-0", 0, 300);
  Hold("p", "GPU-0", 0, 300);
  sharing_->Want(false);
  ASSERT_TRUE(Until([&] { return !Runs("GPU-1"); }));
  Play(seconds(60));

  EXPECT_TRUE(Runs("GPU-0"));
  EXPECT_TRUE(HasGiven("GPU-0", 0, 300));
  EXPECT_TRUE(sharing_->MayStart(kMilli, Ids("GPU-0", 0, 300), nullptr));
  const ContainerSetup setup = Give("GPU-0", 300, 10);  // A new container has none of it.
  EXPECT_THAT(setup.environment, IsEmpty());
  EXPECT_FALSE(HasGiven("GPU-0", 300, 10));

  Hold("new", "GPU-0", 300, 10);
  holders_.held.erase(holders_.held.begin());
  Play(seconds(11));
  EXPECT_TRUE(Until([&] { return !Runs("GPU-0"); }));
}

TEST_F(MpsSharingTest, ADaemonThatIsStillUsedIsStartedAgainAlsoWithoutTheLabel) {
  BeginUp();
  Give("GPU-0", 0, 300);
  Hold("p", "GPU-0", 0, 300);
  sharing_->Want(false);
  Look();
  SignalGroup(mps_.Mark("GPU-0"), SIGKILL);
  ASSERT_TRUE(Until([&] { return !Runs("GPU-0"); }));
  // A start may fail, and is tried again later.
  EXPECT_TRUE(mps_.Until([&] { return Runs("GPU-0"); }, [&] { Play(seconds(11)); }));
}

TEST_F(MpsSharingTest, WhileTheKubeletDoesNotSayWhoHoldsWhatNoDaemonEnds) {
  BeginUp();
  holders_.is_available = false;
  sharing_->Want(false);
  Play(seconds(60));
  EXPECT_TRUE(Runs("GPU-0"));
  EXPECT_TRUE(Runs("GPU-1"));
  holders_.is_available = true;
  Play(seconds(11));
  EXPECT_TRUE(Until([&] { return !Runs("GPU-0") && !Runs("GPU-1"); }));
}

TEST_F(MpsSharingTest, TheNextAgentKeepsDaemonsAndKnowsWhoHasWhat) {
  BeginUp();
  Give("GPU-0", 0, 300);
  const ProcessMark before = mps_.Mark("GPU-0");
  Begin();
  EXPECT_EQ(mps_.Mark("GPU-0"), before);
  EXPECT_TRUE(HasGiven("GPU-0", 0, 300));
  sharing_->Want(true);
  ASSERT_TRUE(ComesUp());
  EXPECT_EQ(mps_.Mark("GPU-0"), before);
}

TEST_F(MpsSharingTest, MemoryUnderMpsWithComputeThatWasGivenWithoutItIsNotMps) {
  BeginUp();
  ContainerSetup setup;
  HeldParts part{.ids = {{PartResource::kMemory, Ids("GPU-0", 0, 2)}, {PartResource::kCompute, Ids("GPU-0", 0, 50)}}};
  kit::Must(sharing_->Give({PartResource::kMemory, Ids("GPU-0", 0, 2), 2048}, setup));
  sharing_->Want(false);  // In between.
  kit::Must(sharing_->Give({PartResource::kCompute, Ids("GPU-0", 0, 50), 0}, setup));
  EXPECT_EQ(sharing_->WayOf(part), Enforcement::kNone);

  sharing_->Want(true);
  kit::Must(sharing_->Give({PartResource::kCompute, Ids("GPU-0", 0, 50), 0}, setup));
  EXPECT_EQ(sharing_->WayOf(part), Enforcement::kMps);
  part.claimed = {{.gpu = "GPU-1"}};  // By a claim it is held to nothing.
  EXPECT_EQ(sharing_->WayOf(part), Enforcement::kNone);
}

TEST_F(MpsSharingTest, BeforeTheLabelIsReadNoDaemonStartsOrEnds) {
  BeginUp();
  Begin();
  Play(seconds(60));
  EXPECT_TRUE(Runs("GPU-0"));
  SignalGroup(mps_.Mark("GPU-0"), SIGKILL);
  ASSERT_TRUE(Until([&] { return !Runs("GPU-0"); }));
  Play(seconds(60));
  EXPECT_FALSE(Runs("GPU-0"));
  EXPECT_TRUE(Runs("GPU-1"));
}

TEST_F(MpsSharingTest, ASickGpuKeepsItsDaemonAndGetsNone) {
  NodeSample sick = testing::GpusOf(2, 8);
  sick.gpus[1].fault_xid = 79;
  Begin();
  sharing_->See(sick);
  sharing_->Want(true);
  ASSERT_TRUE(Until([&] { return sharing_->MayGive("GPU-0"); }));
  EXPECT_FALSE(Runs("GPU-1"));

  sick.gpus[0].fault_xid = 79;
  sharing_->See(sick);
  Play(seconds(30));
  EXPECT_TRUE(Runs("GPU-0"));
}

TEST_F(MpsSharingTest, AFaultIsToldOnceToEachPodThatHasAPartOfItsGpuUnderMps) {
  BeginUp();
  for (const int from : {0, 300}) Give("GPU-0", from, 300);
  Give("GPU-1", 0, 300);
  Hold("first", "GPU-0", 0, 300);
  Hold("second", "GPU-0", 300, 300);
  Hold("without", "GPU-0", 600, 10);
  Hold("elsewhere", "GPU-1", 0, 300);
  kit::Must(mps_.Command("GPU-0", "fault"));
  ASSERT_TRUE(Until([&] { return !told_.empty(); }));
  // The rest of its lines, in whichever look they come.
  ASSERT_TRUE(Until([&] { return mps_.ControlLog("GPU-0").find("exited with status 1") != std::string::npos; }));
  Look();

  EXPECT_THAT(told_, ElementsAre("first", "second"));
  EXPECT_THAT(note_, AllOf(HasSubstr("GPU GPU-0, of which 2 pods have parts"), HasSubstr("look for CUDA errors")));
  kube::Registry metrics;
  sharing_->AddMetrics(metrics);
  EXPECT_THAT(metrics.Text(), AllOf(HasSubstr(R"(grus_mps_faults_total{gpu="0",uuid="GPU-0"} 1)"),
                                    HasSubstr(R"(grus_mps_faults_total{gpu="1",uuid="GPU-1"} 0)"),
                                    HasSubstr(R"(grus_mps_daemon_up{gpu="0",uuid="GPU-0"} 1)")));

  clock_.Advance(seconds(5));
  told_.clear();
  kit::Must(mps_.Command("GPU-0", "fault"));
  EXPECT_TRUE(Until([&] { return told_.size() == 2; }));
}

}  // namespace
}  // namespace grus
