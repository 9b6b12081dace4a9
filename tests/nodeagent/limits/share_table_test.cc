// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/share_table.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nodeagent/cuda/account.h"
#include "tests/nodeagent/limits/cuda_setup.h"
#include "tests/nodeagent/limits/lease_holder.h"

namespace grus {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::IdsOf;
using ::testing::IsEmpty;
using testing::kGpu0;
using testing::kGpu1;
using ::testing::Not;

constexpr PartResource kMilli = PartResource::kMilli;
constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

// This thread has the agent's rights: those of the owner of its files, without capabilities that go past their modes.
class WithoutOverride {
 public:
  WithoutOverride() {
    syscall(SYS_capget, &header_, before_);
    __user_cap_data_struct now[2] = {before_[0], before_[1]};
    now[0].effective &= ~((1U << CAP_DAC_OVERRIDE) | (1U << CAP_DAC_READ_SEARCH));
    syscall(SYS_capset, &header_, now);
  }
  ~WithoutOverride() { syscall(SYS_capset, &header_, before_); }
  WithoutOverride(const WithoutOverride&) = delete;
  WithoutOverride& operator=(const WithoutOverride&) = delete;

 private:
  __user_cap_header_struct header_ = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2] = {};
};

// As CudaSharing leads it.
class ShareTableTest : public testing::CudaSetup {
 protected:
  void SetUp() override { BeginWanted(); }
  bool HasFolder(const HeldParts& part) const { return std::filesystem::exists(PathOf(part)); }
  bool HasAccount(const HeldParts& part) const { return std::filesystem::exists(PathOf(part, cuda::kAccountFile)); }
  // What is logged in so many seconds.
  std::string Logged(int seconds) {
    ::testing::internal::CaptureStderr();
    Play(seconds);
    return ::testing::internal::GetCapturedStderr();
  }
  std::string Metrics() const {
    kube::Registry metrics;
    sharing_->AddMetrics(metrics);
    return metrics.Text();
  }
};

TEST_F(ShareTableTest, EachTurnSaysThatTheAgentIsThere) {
  const HeldParts part = Run("p", kGpu0, 0, 300);
  for (int i = 0; i < 3; ++i) {
    Turn();
    EXPECT_EQ(LimitsOf(part)->beat, static_cast<std::uint64_t>(clock_.Now().time_since_epoch().count()));
  }
}

TEST_F(ShareTableTest, WhatAContainerHasBesideItsAccountCountsAgainstItsPart) {
  const HeldParts part = Run("p", kGpu0, 0, 300), other = Run("q", kGpu0, 300, 300), there = Run("r", kGpu1, 0, 300);
  WriteProcess(part, 0, 7, kGiB);
  SeeProcess(part, 0, 7, kGiB + 400 * kMiB);
  Play(4);
  EXPECT_EQ(LimitsOf(part)->gpus[0].beside, 400 * kMiB);
  EXPECT_EQ(LimitsOf(other)->gpus[0].beside, 0);
  EXPECT_EQ(LimitsOf(there)->gpus[0].beside, 0);

  SeeNoProcesses();
  Play(1);
  EXPECT_EQ(LimitsOf(part)->gpus[0].beside, 0);
}

TEST_F(ShareTableTest, WhatMayBePagedIsThatOfEachStartAndIsTold) {
  HeldParts part = Run("p", kGpu0, 0, 300);
  EXPECT_THAT(Metrics(), Not(HasSubstr("grus_cuda_paged_bytes{")));
  part.paged_mib = 500;
  kit::Must(Start(part));
  EXPECT_EQ(LimitsOf(part)->gpus[1].memory, 500 * kMiB);
  Write(part, offsetof(cuda::Account, memory) + sizeof(std::uint64_t), 300 * kMiB);
  Write(part, offsetof(cuda::Account, refused), std::uint64_t{2});
  Write(part, offsetof(cuda::Account, refused) + sizeof(std::uint64_t), std::uint64_t{3});
  Turn();
  const std::string labels = "{gpu=\"0\",uuid=\"" + std::string(kGpu0) + R"(",namespace="a",pod="p",container="c"} )";
  EXPECT_THAT(Metrics(), HasSubstr("grus_cuda_paged_bytes" + labels + "314572800"));
  EXPECT_THAT(Metrics(), HasSubstr("grus_cuda_paged_limit_bytes" + labels + "524288000"));
  EXPECT_THAT(Metrics(), HasSubstr("grus_cuda_refusals_total" + labels + "5"));
  EXPECT_THAT(Metrics(), HasSubstr("grus_cuda_memory_bytes" + labels + "0"));

  Begin();  // An agent that knows it by the files alone.
  Play(1);
  EXPECT_THAT(Metrics(), HasSubstr("grus_cuda_paged_bytes" + labels + "314572800"));
  EXPECT_EQ(LimitsOf(part)->gpus[1].memory, 500 * kMiB);
  EXPECT_EQ(LimitsOf(part)->beat, static_cast<std::uint64_t>(clock_.Now().time_since_epoch().count()));
  part.paged_mib = 0;
  kit::Must(Start(part));
  EXPECT_EQ(LimitsOf(part)->gpu_count, 1);
  Turn();
  EXPECT_THAT(Metrics(), Not(HasSubstr("grus_cuda_paged_bytes{")));
}

TEST_F(ShareTableTest, WhatIsSaidToBePagedHidesNothingThatTheDriverSees) {
  HeldParts part = Run("p", kGpu0, 0, 300);
  part.paged_mib = 9000;
  kit::Must(Start(part));
  WriteProcess(part, 0, 7, kGiB);
  Write(part, offsetof(cuda::Account, memory) + sizeof(std::uint64_t), 500 * kGiB);
  Write(part, offsetof(cuda::Account, processes) + offsetof(cuda::ProcessAccount, memory) + sizeof(std::uint64_t),
        500 * kGiB);
  SeeProcess(part, 0, 7, 20 * kGiB);
  EXPECT_THAT(Logged(30), HasSubstr("programs in it go round their limits"));
  EXPECT_EQ(LimitsOf(part)->gpus[0].beside, 19 * kGiB);
  EXPECT_EQ(LimitsOf(part)->gpus[1].beside, 0);
  EXPECT_THAT(Metrics(), HasSubstr(R"(pod="p",container="c"} 9437184000)")) << "no more than it may have";
}

TEST_F(ShareTableTest, WhatIsNotKnownOfOneProcessChangesNothing) {
  const HeldParts part = Run("p", kGpu0, 0, 300);
  SeeProcess(part, 0, 7, 400 * kMiB);
  Play(4);
  SeeProcess(part, 0, 8, std::nullopt);
  Play(4);
  EXPECT_EQ(LimitsOf(part)->gpus[0].beside, 400 * kMiB);
}

TEST_F(ShareTableTest, ANewStartHasNothingBeside) {
  const HeldParts part = Run("p", kGpu0, 0, 300);
  SeeProcess(part, 0, 7, 400 * kMiB);
  Play(4);
  SeeNoProcesses();
  kit::Must(Start(part));
  EXPECT_EQ(LimitsOf(part)->gpus[0].beside, 0);
  Turn();
  EXPECT_EQ(LimitsOf(part)->gpus[0].beside, 0);
}

TEST_F(ShareTableTest, AProgramThatGoesRoundItsLimitsIsToldOnceAndShownAsLongAsItDoes) {
  const HeldParts part = Run("p", kGpu0, 0, 300);
  WriteProcess(part, 0, 7, kGiB);
  SeeProcess(part, 0, 7, kGiB + 400 * kMiB);
  EXPECT_THAT(Logged(30), IsEmpty());
  SeeProcess(part, 0, 8, 100 * kMiB);
  EXPECT_THAT(Logged(10), IsEmpty());
  const std::string told = Logged(30);
  EXPECT_THAT(told, HasSubstr("programs in it go round their limits"));
  EXPECT_THAT(told, HasSubstr("pod=a/p"));
  EXPECT_EQ(told.find("go round"), told.rfind("go round"));
  EXPECT_THAT(Metrics(), HasSubstr(R"(pod="p",container="c"} 104857600)"));

  SeeNoProcesses();
  Play(1);
  EXPECT_THAT(Metrics(), Not(HasSubstr("104857600")));
}

TEST_F(ShareTableTest, FoldersOfThoseThatHaveEndedGoAfterAWhile) {
  const HeldParts part = Run("p", kGpu0, 0, 300), stays = Run("q", kGpu0, 300, 300);
  holders_.held.erase(holders_.held.begin());
  Play(590);
  EXPECT_TRUE(HasFolder(part));
  Play(20);
  EXPECT_FALSE(HasFolder(part));
  EXPECT_TRUE(HasFolder(stays));
}

TEST_F(ShareTableTest, WhileTheKubeletDoesNotSayWhoHoldsWhatNoFolderGoes) {
  const HeldParts part = Run("p", kGpu0, 0, 300);
  holders_.is_available = false;
  Play(3600);
  EXPECT_TRUE(HasFolder(part));
}

TEST_F(ShareTableTest, WhoseIdsAreGivenAnewHasEndedAtOnce) {
  const HeldParts part = Run("p", kGpu0, 0, 300), stays = Run("q", kGpu0, 300, 300);
  holders_.held.erase(holders_.held.begin());
  const HeldParts next = Run("r", kGpu0, 299, 1);
  EXPECT_FALSE(HasAccount(part));
  EXPECT_TRUE(HasAccount(stays));
  EXPECT_TRUE(HasAccount(next));
  Play(590);
  EXPECT_TRUE(HasFolder(part)) << "it may be an init container that is yet to start";
  Play(20);
  EXPECT_FALSE(HasFolder(part));

  sharing_->Want(false);
  holders_.held.clear();
  Give(kMilli, IdsOf(kGpu0, 400, 100), 100);
  EXPECT_FALSE(HasAccount(stays));
  Play(610);
  EXPECT_FALSE(HasFolder(stays));
}

TEST_F(ShareTableTest, TheNextAgentTakesOverWhatRuns) {
  const HeldParts part = Run("p", kGpu0, 0, 300, 1234);
  WriteProcess(part, 0, 7, 77 * kMiB);
  SeeProcess(part, 0, 7, 127 * kMiB);
  Play(4);
  Begin();
  sharing_->Want(true);
  SeeNoProcesses();
  SeeProcess(part, 0, 7, 177 * kMiB);
  EXPECT_EQ(LimitsOf(part)->gpus[0].beside, 50 * kMiB) << "until it has looked three times";
  Play(2);
  EXPECT_EQ(LimitsOf(part)->gpus[0].beside, 50 * kMiB);
  Play(2);
  const auto limits = LimitsOf(part);
  EXPECT_EQ(limits->beat, static_cast<std::uint64_t>(clock_.Now().time_since_epoch().count()));
  EXPECT_EQ(limits->gpus[0].memory, 1234 * kMiB) << "also what its pod had said";
  EXPECT_EQ(limits->gpus[0].beside, 100 * kMiB);
  EXPECT_THAT(Metrics(), HasSubstr(R"(pod="p",container="c"} 80740352)"));

  holders_.held.clear();
  Play(620);
  EXPECT_FALSE(HasFolder(part));
}

TEST_F(ShareTableTest, AnAccountThatIsNoneIsToldOnceAndItsContainerHasWhatItIsGuaranteed) {
  const HeldParts part = Run("p", kGpu0, 0, 300);
  std::filesystem::resize_file(PathOf(part, cuda::kAccountFile), 10);
  const std::string told = Logged(3);
  EXPECT_THAT(told, HasSubstr("account of its part of a GPU cannot be read"));
  EXPECT_EQ(told.find("cannot be read"), told.rfind("cannot be read"));
  EXPECT_EQ(RateOf(part), 300);
  EXPECT_EQ(LimitsOf(part)->beat, static_cast<std::uint64_t>(clock_.Now().time_since_epoch().count()));
  EXPECT_THAT(Metrics(), Not(HasSubstr("grus_cuda_memory_bytes{")));
}

TEST_F(ShareTableTest, AnAccountThatAContainerMakesLongerIsCut) {
  const HeldParts part = Run("p", kGpu0, 0, 300);
  std::filesystem::resize_file(PathOf(part, cuda::kAccountFile), 100 * kMiB);
  EXPECT_THAT(Logged(2), HasSubstr("longer than it is, it is cut"));
  EXPECT_EQ(std::filesystem::file_size(PathOf(part, cuda::kAccountFile)), sizeof(cuda::Account));
}

TEST_F(ShareTableTest, AnAccountIsCutWhateverItsContainerDoesToIt) {
  const HeldParts part = Run("p", kGpu0, 0, 300);
  const std::string account = PathOf(part, cuda::kAccountFile);
  EXPECT_EQ(testing::LeaseHolder(account, F_WRLCK).error(), EAGAIN) << "no lease holds it up";
  EXPECT_EQ(testing::LeaseHolder(account, F_RDLCK).error(), EAGAIN);
  EXPECT_EQ(testing::LeaseHolder(PathOf(part, cuda::kLimitsFile), F_RDLCK).error(), EAGAIN) << "nor what it may have";
  std::filesystem::resize_file(account, 100 * kMiB);
  std::filesystem::permissions(account, std::filesystem::perms::none);
  const WithoutOverride is_agent;
  EXPECT_THAT(Logged(2), HasSubstr("longer than it is, it is cut"));
  EXPECT_EQ(std::filesystem::file_size(account), sizeof(cuda::Account));
}

TEST_F(ShareTableTest, AnAccountThatTheNextAgentCannotCutIsToldOnce) {
  const HeldParts part = Run("p", kGpu0, 0, 300);
  std::filesystem::permissions(PathOf(part, cuda::kAccountFile), static_cast<std::filesystem::perms>(0444));
  const WithoutOverride is_agent;
  BeginWanted();
  EXPECT_THAT(Logged(2), IsEmpty());
  ASSERT_EQ(truncate(PathOf(part, cuda::kAccountFile).c_str(), 10), -1);
  std::filesystem::permissions(PathOf(part, cuda::kAccountFile), static_cast<std::filesystem::perms>(0644));
  std::filesystem::resize_file(PathOf(part, cuda::kAccountFile), 100 * kMiB);
  std::filesystem::permissions(PathOf(part, cuda::kAccountFile), static_cast<std::filesystem::perms>(0444));
  const std::string told = Logged(3);
  EXPECT_THAT(told, HasSubstr("and it cannot be cut"));
  EXPECT_THAT(told, HasSubstr("Permission denied"));
  EXPECT_EQ(told.find("cannot be cut"), told.rfind("cannot be cut"));

  std::filesystem::permissions(PathOf(part, cuda::kAccountFile), static_cast<std::filesystem::perms>(0644));
  EXPECT_THAT(Logged(2), HasSubstr("longer than it is, it is cut"));
}

TEST_F(ShareTableTest, AccountsAreCutByATimerOfTheirOwnAndNotByTheThreadThatLends) {
  const HeldParts part = Run("p", kGpu0, 0, 300);
  const std::string account = PathOf(part, cuda::kAccountFile);
  std::filesystem::resize_file(account, 100 * kMiB);
  auto look = std::make_shared<NodeSample>(*look_);
  look_ = std::move(look);
  sharing_->LookOnce();
  EXPECT_EQ(std::filesystem::file_size(account), 100 * kMiB);
  sharing_->CutOnce();
  EXPECT_EQ(std::filesystem::file_size(account), sizeof(cuda::Account));
}

TEST_F(ShareTableTest, WhatIsNotAShareIsLeftAlone) {
  const std::string name = "GPU-1-9f5d2205d25e7a65", damaged = "GPU-1-9f5d2205d25e7a66";
  folder_.Write("shares/" + name + "/account", "no limits");
  folder_.Write("shares/" + damaged + "/limits", "of somebody else");
  folder_.Write("shares/mps/GPU-1/given", "");
  folder_.Write("shares/a-9f5d2205d25e7a65/limits", "");
  const HeldParts part = Run("p", kGpu0, 0, 300);
  std::filesystem::create_directories(folder_.path("shares/lost+found"));
  std::filesystem::copy(PathOf(part), folder_.path("shares/backup"));
  holders_.held.clear();
  BeginWanted();
  Play(700);
  EXPECT_FALSE(HasFolder(part));
  for (const std::string& other : {name, damaged, std::string("mps/GPU-1"), std::string("a-9f5d2205d25e7a65"),
                                   std::string("lost+found"), std::string("backup")}) {
    EXPECT_TRUE(std::filesystem::exists(folder_.path("shares/" + other))) << other;
  }
}

TEST_F(ShareTableTest, FilesOfAnotherVersionAreLeftAloneAsLongAsTheyAreHeld) {
  const HeldParts part = Run("p", kGpu0, 0, 300);
  std::fstream file(PathOf(part, cuda::kLimitsFile), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offsetof(cuda::Limits, version));
  file.put(99);
  file.close();
  const std::uint64_t beat = LimitsOf(part)->beat;
  BeginWanted();
  EXPECT_THAT(Logged(700), IsEmpty());
  EXPECT_EQ(LimitsOf(part)->version, 99);
  EXPECT_EQ(LimitsOf(part)->beat, beat) << "their library knows by that to go on alone";
  EXPECT_THAT(Metrics(), Not(HasSubstr("pod=\"p\"")));

  kit::Must(Start(part));  // With the library of this version.
  EXPECT_EQ(LimitsOf(part)->version, cuda::kVersion);
  Turn();
  EXPECT_NE(LimitsOf(part)->beat, beat);

  file.open(PathOf(part, cuda::kLimitsFile), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offsetof(cuda::Limits, version));
  file.put(99);
  file.close();
  BeginWanted();
  holders_.held.clear();
  Play(700);
  EXPECT_FALSE(HasFolder(part));
}

TEST_F(ShareTableTest, ANewLibraryIsForTheNextStartAndWhatRunsGoesOn) {
  const HeldParts part = Run("p", kGpu0, 0, 300);
  std::ifstream mapped(folder_.path("cuda/libgrus-cuda.so"), std::ios::binary);
  std::ofstream(source_) << "a newer library";
  BeginWanted();
  const HeldParts next = Run("q", kGpu0, 300, 300);
  Play(10);
  std::string old, now;
  std::getline(mapped, old);
  std::ifstream present(folder_.path("cuda/libgrus-cuda.so"), std::ios::binary);
  std::getline(present, now);
  EXPECT_EQ(old, "a library");
  EXPECT_EQ(now, "a newer library");
  const auto beat = static_cast<std::uint64_t>(clock_.Now().time_since_epoch().count());
  EXPECT_EQ(LimitsOf(part)->beat, beat);
  EXPECT_EQ(LimitsOf(next)->beat, beat);
}

TEST_F(ShareTableTest, ProgramsAreHeldToWhatTheAgentWritesAndTheAgentSeesWhatTheyHave) {
  const HeldParts part = Run("p", kGpu0, 0, 300, 1000);
  const char* why = nullptr;
  cuda::SharedAccount* const account = cuda::SharedAccount::Open(PathOf(part).c_str(), &why);
  ASSERT_NE(account, nullptr) << (why == nullptr ? "no folder" : why);
  EXPECT_EQ(account->Limit(0), 1000 * kMiB);
  EXPECT_TRUE(account->Reserve(0, 700 * kMiB));
  EXPECT_FALSE(account->Reserve(0, 301 * kMiB));
  Turn();
  EXPECT_THAT(Metrics(), HasSubstr(R"(pod="p",container="c"} 734003200)"));

  SeeProcess(part, 0, getpid(), 900 * kMiB);
  Play(4);
  EXPECT_FALSE(account->Reserve(0, 101 * kMiB)) << "a context takes 200 MiB";
  EXPECT_TRUE(account->Reserve(0, 100 * kMiB));
  account->ForgetMine();
}

TEST_F(ShareTableTest, TheTimeOfAnIdleContainerIsLentAndComesBack) {
  const HeldParts busy = Run("p", kGpu0, 0, 300), idle = Run("q", kGpu0, 300, 700), there = Run("r", kGpu1, 0, 300);
  kube::Duration charged = {}, waited = {};
  const auto work = [&](const HeldParts& part, int turns) {
    for (int i = 0; i < turns; ++i) {
      charged += milliseconds(30);
      waited += milliseconds(70);
      WriteTime(part, charged, waited);
      Turn();
    }
  };
  work(busy, 10);
  EXPECT_GE(RateOf(busy), 950);
  EXPECT_EQ(RateOf(idle), 700);
  EXPECT_EQ(RateOf(there), 300) << "of another GPU";

  for (int i = 0; i < 3; ++i) {
    WriteTime(idle, milliseconds(70) * (i + 1), milliseconds(30) * (i + 1));
    work(busy, 1);
  }
  EXPECT_LE(RateOf(busy), 400);
}

}  // namespace
}  // namespace grus
