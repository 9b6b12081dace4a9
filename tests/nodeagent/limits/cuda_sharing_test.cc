// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/cuda_sharing.h"

#include "tests/nodeagent/limits/cuda_setup.h"

namespace grus {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IdsOf;
using ::testing::IsEmpty;
using testing::kGpu0;
using testing::kGpu1;
using ::testing::Not;

constexpr PartResource kMilli = PartResource::kMilli, kMemory = PartResource::kMemory,
                       kCompute = PartResource::kCompute;
constexpr Enforcement kNone = Enforcement::kNone, kCooperative = Enforcement::kCooperative;
constexpr std::uint64_t kMiB = 1 << 20;

class CudaSharingTest : public testing::CudaSetup {
 protected:
  Enforcement WayOf(const std::vector<PartId>& ids) const { return sharing_->WayOf({.ids = {{kMilli, ids}}}); }
  std::string Metrics() const {
    kube::Registry metrics;
    sharing_->AddMetrics(metrics);
    return metrics.Text();
  }
};

TEST_F(CudaSharingTest, WithoutTheLabelContainersGetNothingOfItAndNothingIsPutOnTheNode) {
  Begin();
  Turn(100);
  EXPECT_TRUE(sharing_->MayGive(kGpu0));
  const ContainerSetup setup = Give(kMilli, IdsOf(kGpu0, 0, 300), 1000);

  EXPECT_THAT(setup.mounts, IsEmpty());
  EXPECT_THAT(setup.environment, IsEmpty());
  EXPECT_EQ(WayOf(IdsOf(kGpu0, 0, 300)), kNone);
  EXPECT_TRUE(sharing_->MayStart(kMilli, IdsOf(kGpu0, 0, 300), nullptr));
  EXPECT_EQ(holders_.lists, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("cuda")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("shares")));
}

TEST_F(CudaSharingTest, AContainerGetsTheLibraryAndItsLimitsAndAnEmptyAccount) {
  context_mib_ = 300;
  BeginWanted();
  EXPECT_TRUE(sharing_->MayGive(kGpu0));
  const HeldParts part{.ids = {{kMilli, IdsOf(kGpu1, 0, 300)}}};
  const ContainerSetup setup = Give(kMilli, IdsOf(kGpu1, 0, 300), 2461);

  EXPECT_THAT(setup.environment, IsEmpty());
  EXPECT_THAT(setup.mounts,
              ElementsAre(PluginMount{folder_.path("cuda/libgrus-cuda.so"), "/run/grus/cuda/libgrus-cuda.so", true},
                          PluginMount{PathOf(part, "ld.so.preload"), "/etc/ld.so.preload", true},
                          PluginMount{PathOf(part, "limits"), "/run/grus/cuda/limits", true},
                          PluginMount{PathOf(part, "account"), "/run/grus/cuda/account", false}));
  for (const PluginMount& mount : setup.mounts) EXPECT_TRUE(std::filesystem::exists(mount.host_path));
  const auto limits = LimitsOf(part);
  EXPECT_EQ(limits->gpu_count, 1);
  EXPECT_EQ(limits->gpus[0].uuid[15], 1);
  EXPECT_EQ(limits->gpus[0].memory, 2461 * kMiB);
  EXPECT_EQ(limits->gpus[0].context, 300 * kMiB);
  EXPECT_EQ(limits->gpus[0].milli, 300);
  EXPECT_EQ(limits->gpus[0].rate, 300);
  EXPECT_EQ(WayOf(IdsOf(kGpu1, 0, 300)), kCooperative);
  EXPECT_EQ(WayOf(IdsOf(kGpu1, 0, 301)), kNone);
}

TEST_F(CudaSharingTest, WhoGetsWholeGpusIsAloneOnThemAndNotHeldToThem) {
  BeginWanted();
  Give(kMilli, IdsOf(kGpu0, 0, 300), 1000);
  std::vector<PartId> ids = IdsOf(kGpu0, 0, 1000);
  for (const PartId& id : IdsOf(kGpu1, 0, 1000)) ids.push_back(id);
  const ContainerSetup setup = Give(kMilli, ids, 16'000);

  EXPECT_THAT(setup.mounts, IsEmpty());
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(WayOf(IdsOf(kGpu0, 0, 300)), kNone) << "who had these before has ended";
    EXPECT_EQ(WayOf(ids), kNone);
    EXPECT_TRUE(sharing_->MayStart(kMilli, ids, nullptr));
    BeginWanted();  // The next agent reads it.
  }
}

TEST_F(CudaSharingTest, WithoutTheLibraryNothingIsGivenNorStartsAndTheLogSaysSo) {
  BeginWanted();
  const HeldParts part = Run("p", kGpu0, 0, 300);
  std::filesystem::rename(source_, source_ + ".gone");
  Begin();
  sharing_->Want(true);
  ::testing::internal::CaptureStderr();
  Turn(100);
  const std::string told = ::testing::internal::GetCapturedStderr();

  EXPECT_THAT(told, AllOf(HasSubstr("cannot be put on the node"), HasSubstr("there is no such file")));
  EXPECT_EQ(told.find("cannot be put"), told.rfind("cannot be put")) << "once a minute";
  EXPECT_FALSE(sharing_->MayGive(kGpu0));
  EXPECT_THAT(Start(part).error().message(), HasSubstr("libgrus-cuda.so holds the container to its part of GPU"));
  EXPECT_TRUE(sharing_->MayStart(kMilli, IdsOf(kGpu0, 300, 10), nullptr)) << "given before there was the label";

  std::filesystem::rename(source_ + ".gone", source_);
  Turn(11);
  EXPECT_TRUE(sharing_->MayGive(kGpu0));
  EXPECT_TRUE(Start(part));
}

TEST_F(CudaSharingTest, AnAgentThatIsNotSetUpForItGivesNothingEither) {
  source_ = "";
  BeginWanted();
  EXPECT_FALSE(sharing_->MayGive(kGpu0));
}

TEST_F(CudaSharingTest, EachStartHasNewFilesSoThatItsAccountIsEmptyAndTheOldProgramsKeepTheirs) {
  BeginWanted();
  const HeldParts part = Run("p", kGpu0, 0, 300);
  WriteProcess(part, 0, 1, 500 * kMiB);
  std::ifstream mapped(PathOf(part, cuda::kAccountFile), std::ios::binary);  // By a program of before.
  kit::Must(Start(part));

  const auto account = ShareFolder(PathOf(part)).ReadAccount(1);
  ASSERT_TRUE(account.ok()) << account.error().message();
  EXPECT_THAT(account->processes, IsEmpty());
  mapped.seekg(offsetof(cuda::Account, processes));
  std::int32_t pid = 0;
  mapped.read(reinterpret_cast<char*>(&pid), sizeof(pid));
  EXPECT_EQ(pid, 1);
}

TEST_F(CudaSharingTest, AtItsStartItHasWhatItHoldsAndItsPodSays) {
  BeginWanted();
  HeldParts part = Run("p", kGpu0, 0, 300, 1000);
  part.memory_mib = 5000;  // The API server was late to tell.
  kit::Must(Start(part));
  EXPECT_EQ(LimitsOf(part)->gpus[0].memory, 5000 * kMiB);
}

TEST_F(CudaSharingTest, WhereItIsNotKnownWhoStartsItHasWhatItWasGiven) {
  BeginWanted();
  const HeldParts part{.ids = {{kMilli, IdsOf(kGpu0, 0, 300)}}};  // An init container.
  Give(kMilli, part.ids.at(kMilli), 1234);
  for (int again = 0; again < 2; ++again) {
    EXPECT_TRUE(sharing_->MayStart(kMilli, part.ids.at(kMilli), nullptr));
    EXPECT_EQ(LimitsOf(part)->gpus[0].memory, 1234 * kMiB);
    BeginWanted();  // The next agent reads it.
  }
  std::filesystem::remove_all(folder_.path("shares"));  // The node was rebooted.
  BeginWanted();
  EXPECT_TRUE(sharing_->MayStart(kMilli, part.ids.at(kMilli), nullptr));
  EXPECT_EQ(LimitsOf(part)->gpus[0].memory, 2461 * kMiB) << "in proportion";
}

TEST_F(CudaSharingTest, AnInitContainerHasWhatItWasGivenAndNotWhatTheContainerHasThatGetsItsIdsNext) {
  BeginWanted();
  const HeldParts init{.ids = {{kMilli, IdsOf(kGpu0, 0, 500)}}};
  Give(kMilli, init.ids.at(kMilli), 4000);
  const HeldParts main{
      .pod = {"a", "p"}, .container = "main", .ids = {{kMilli, IdsOf(kGpu0, 100, 200)}}, .memory_mib = 1000};
  Give(kMilli, main.ids.at(kMilli), 1000);
  Hold(main);
  for (int again = 0; again < 2; ++again) {
    Turn(5990);  // It takes as long as that until its image is there.
    ASSERT_TRUE(sharing_->MayStart(kMilli, init.ids.at(kMilli), &main));
    EXPECT_EQ(LimitsOf(init)->gpus[0].memory, 4000 * kMiB);
    EXPECT_EQ(LimitsOf(init)->gpus[0].milli, 500);
    ::testing::internal::CaptureStderr();
    Turn(100);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
    EXPECT_THAT(Metrics(), Not(HasSubstr("grus_cuda_rate_milli{"))) << "the kubelet does not say whose it is";

    ASSERT_TRUE(sharing_->MayStart(kMilli, main.ids.at(kMilli), &main));
    Turn(50);
    EXPECT_EQ(LimitsOf(main)->gpus[0].memory, 1000 * kMiB);
    EXPECT_EQ(LimitsOf(main)->gpus[0].milli, 200);
    EXPECT_THAT(Metrics(), HasSubstr(R"(pod="p",container="main"} 200)"));
    BeginWanted();  // And with the next agent, when the pod's sandbox is made anew.
  }
}

TEST_F(CudaSharingTest, OfMemoryThatIsHandedOnTheTimeIsKeptToo) {
  BeginWanted();
  const HeldParts init{.ids = {{kMemory, IdsOf(kGpu0, 0, 2)}}};
  Give(kMemory, IdsOf(kGpu0, 0, 2), 2048);
  Give(kCompute, IdsOf(kGpu0, 0, 30), 0);
  Give(kMemory, IdsOf(kGpu0, 0, 1), 1024);
  Give(kCompute, IdsOf(kGpu0, 0, 10), 0);
  ASSERT_TRUE(sharing_->MayStart(kMemory, init.ids.at(kMemory), nullptr));
  EXPECT_EQ(LimitsOf(init)->gpus[0].milli, 300);
}

TEST_F(CudaSharingTest, APodThatIsMadeAnewOnOtherIdsIsInTheMetricsOnce) {
  BeginWanted();
  Run("p", kGpu0, 0, 300);
  Turn(60);
  holders_.held.clear();
  Run("p", kGpu0, 300, 200);
  for (int i = 0; i < 2; ++i) {
    const std::string metrics = Metrics();
    EXPECT_THAT(metrics, HasSubstr(R"(pod="p",container="c"} 200)"));
    EXPECT_THAT(metrics, Not(HasSubstr(R"(pod="p",container="c"} 300)")));
    Turn(60);
  }
}

TEST_F(CudaSharingTest, TheKubeletIsNotAskedByTheThreadThatLends) {
  BeginWanted();
  const int before = holders_.lists;
  for (int i = 0; i < 1000; ++i) {
    clock_.Advance(milliseconds(100));
    sharing_->LookOnce();
  }
  EXPECT_EQ(holders_.lists, before);
}

TEST_F(CudaSharingTest, ItsThreadsLookAndAskAndEndWithIt) {
  BeginWanted();
  Run("p", kGpu0, 0, 300);
  const int before = holders_.lists;
  const kube::SystemClock system;
  CudaSharing next(
      {.library = source_, .folder = folder_.path("cuda"), .shares = folder_.path("shares")}, holders_,
      [this] { return look_; }, system, log_);
  next.Want(true);
  std::stop_source stop;
  stop.request_stop();
  next.Run(stop.get_token());
  EXPECT_EQ(holders_.lists, before + 1);
  EXPECT_TRUE(next.MayGive(kGpu0));
}

TEST_F(CudaSharingTest, WhileTheMemoryOfTheGpuIsNotKnownItDoesNotStartAsItWouldHaveNoLimit) {
  BeginWanted();
  const HeldParts part = Run("p", kGpu0, 0, 300, 0 + 1000);
  look_ = nullptr;
  BeginWanted();
  HeldParts in_proportion = part;
  in_proportion.memory_mib = 0;
  EXPECT_THAT(Start(in_proportion).error().message(), HasSubstr("how much memory the GPU has is not known now"));
  look_ = TwoGpus();
  Turn();
  EXPECT_TRUE(Start(in_proportion));

  ContainerSetup setup;
  EXPECT_FALSE(sharing_->Give({kMilli, IdsOf(kGpu0, 400, 10), 0}, setup));
}

TEST_F(CudaSharingTest, ANodeThatWasRebootedHasFilesAgainBeforeItsContainersStart) {
  BeginWanted();
  const HeldParts part = Run("p", kGpu0, 0, 300);
  std::filesystem::remove_all(folder_.path("shares"));
  BeginWanted();
  kit::Must(Start(part));
  EXPECT_EQ(LimitsOf(part)->gpus[0].milli, 300);
  EXPECT_EQ(WayOf(part.ids.at(kMilli)), kCooperative);
}

TEST_F(CudaSharingTest, MemoryBringsTheFilesAndComputeSaysHowMuchTimeInEitherOrder) {
  BeginWanted();
  const HeldParts first{.ids = {{kMemory, IdsOf(kGpu0, 0, 2)}}}, second{.ids = {{kMemory, IdsOf(kGpu0, 2, 2)}}};
  EXPECT_THAT(Give(kMemory, IdsOf(kGpu0, 0, 2), 2048).mounts, Not(IsEmpty()));
  const ContainerSetup compute = Give(kCompute, IdsOf(kGpu0, 0, 30), 0);
  EXPECT_THAT(compute.mounts, IsEmpty());
  EXPECT_THAT(compute.environment, IsEmpty());
  Turn();
  EXPECT_EQ(LimitsOf(first)->gpus[0].milli, 300);

  Give(kCompute, IdsOf(kGpu0, 30, 50), 0);
  Give(kMemory, IdsOf(kGpu0, 2, 2), 2048);
  EXPECT_EQ(LimitsOf(second)->gpus[0].milli, 500);
  EXPECT_EQ(LimitsOf(second)->gpus[0].rate, 500);
  EXPECT_EQ(LimitsOf(second)->gpus[0].memory, 2048 * kMiB);
}

TEST_F(CudaSharingTest, ComputeOfAnotherContainerIsNotTakenForItsOwn) {
  BeginWanted();
  const HeldParts late{.ids = {{kMemory, IdsOf(kGpu0, 0, 2)}}}, elsewhere{.ids = {{kMemory, IdsOf(kGpu1, 0, 2)}}};
  Give(kCompute, IdsOf(kGpu0, 0, 30), 0);
  clock_.Advance(milliseconds(2001));
  Give(kMemory, IdsOf(kGpu0, 0, 2), 2048);
  EXPECT_EQ(LimitsOf(late)->gpus[0].milli, 0);

  Give(kMemory, IdsOf(kGpu0, 2, 2), 2048);
  Give(kCompute, IdsOf(kGpu1, 0, 30), 0);
  Give(kMemory, IdsOf(kGpu0, 4, 2), 2048);
  Give(kMemory, IdsOf(kGpu1, 0, 2), 2048);
  EXPECT_EQ(LimitsOf(elsewhere)->gpus[0].milli, 0);
}

TEST_F(CudaSharingTest, AtItsStartTheTimeIsThatOfTheComputeWhichItHolds) {
  BeginWanted();
  HeldParts part{.pod = {"a", "p"}, .container = "c", .ids = {{kMemory, IdsOf(kGpu0, 0, 2)}}};
  Give(kMemory, IdsOf(kGpu0, 0, 2), 2048);
  clock_.Advance(seconds(10));
  Give(kCompute, IdsOf(kGpu0, 0, 30), 0);
  part.ids[kCompute] = IdsOf(kGpu0, 0, 30);
  kit::Must(Start(part));
  EXPECT_EQ(LimitsOf(part)->gpus[0].milli, 300);
  EXPECT_EQ(sharing_->WayOf(part), kCooperative);

  sharing_->Want(false);
  Give(kCompute, IdsOf(kGpu0, 0, 30), 0);
  EXPECT_EQ(sharing_->WayOf(part), kNone) << "not all of it was given so";
}

TEST_F(CudaSharingTest, MemoryAloneHasAllTheTimeThatThereIs) {
  BeginWanted();
  const HeldParts part{.pod = {"a", "p"}, .container = "c", .ids = {{PartResource::kGpuMem, IdsOf(kGpu0, 0, 3)}}};
  Give(PartResource::kGpuMem, part.ids.at(PartResource::kGpuMem), 3072);
  kit::Must(Start(part));
  Turn();
  EXPECT_EQ(LimitsOf(part)->gpus[0].milli, 0);
  EXPECT_EQ(RateOf(part), 1000);
}

TEST_F(CudaSharingTest, WhenTheLabelGoesWhatRunsKeepsWhatItHasAndANewContainerGetsNothing) {
  BeginWanted();
  const HeldParts part = Run("p", kGpu0, 0, 300);
  sharing_->Want(false);
  Play(700);
  EXPECT_EQ(WayOf(part.ids.at(kMilli)), kCooperative);
  EXPECT_TRUE(Start(part));
  EXPECT_EQ(LimitsOf(part)->beat, static_cast<std::uint64_t>(clock_.Now().time_since_epoch().count()));
  EXPECT_THAT(Give(kMilli, IdsOf(kGpu0, 300, 10), 100).mounts, IsEmpty());
  EXPECT_EQ(WayOf(IdsOf(kGpu0, 300, 10)), kNone);
}

TEST_F(CudaSharingTest, FilesThatCannotBeMadeAreToldAndThePartIsNotGiven) {
  BeginWanted();
  std::ofstream(folder_.path("shares")) << "a file, where a folder should be";
  ContainerSetup setup;
  const kube::Status given = sharing_->Give({kMilli, IdsOf(kGpu0, 0, 300), 1000}, setup);
  ASSERT_FALSE(given);
  EXPECT_THAT(given.error().message(), HasSubstr(folder_.path("shares")));
  EXPECT_THAT(setup.mounts, IsEmpty());
  EXPECT_EQ(WayOf(IdsOf(kGpu0, 0, 300)), kNone);
}

TEST_F(CudaSharingTest, TheMetricsSayWhatEachContainerHasAndUses) {
  BeginWanted();
  const HeldParts part = Run("p", kGpu1, 0, 300);
  WriteProcess(part, 0, 7, 500 * kMiB);
  Write(part, offsetof(cuda::Account, refused), std::uint64_t{3});
  WriteTime(part, milliseconds(1500), milliseconds(250));
  SeeProcess(part, 1, 7, 800 * kMiB);
  Play(4);
  kube::Registry metrics;
  sharing_->AddMetrics(metrics);
  const std::string labels = "{gpu=\"1\",uuid=\"" + std::string(kGpu1) + R"(",namespace="a",pod="p",container="c"} )";
  for (const char* line :
       {"grus_cuda_memory_bytes|524288000", "grus_cuda_beside_bytes|314572800", "grus_cuda_refusals_total|3",
        "grus_cuda_time_seconds_total|1.5", "grus_cuda_waited_seconds_total|0.25", "grus_cuda_escaped_bytes|0"}) {
    const std::string text = line;
    const std::size_t bar = text.find('|');
    EXPECT_THAT(metrics.Text(), HasSubstr("\n" + text.substr(0, bar) + labels + text.substr(bar + 1) + "\n"));
  }
  EXPECT_THAT(metrics.Text(), HasSubstr("\ngrus_cuda_rate_milli" + labels));
}

}  // namespace
}  // namespace grus
