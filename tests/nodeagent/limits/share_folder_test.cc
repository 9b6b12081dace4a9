// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/share_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "nodeagent/cuda/share_files.h"
#include "tests/kit/must.h"
#include "tests/kit/temp_dir.h"
#include "tests/nodeagent/limits/lease_holder.h"
#include "tests/nodeagent/limits/own_mount.h"

namespace grus {
namespace {

namespace fs = std::filesystem;
using cuda::Account;
using cuda::Limits;
using kit::Must;
using std::chrono::nanoseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr char kGpu0[] = "GPU-00112233-4455-6677-8899-aabbccddeeff";
constexpr char kGpu1[] = "MIG-FFEEDDCC-bbaa-9988-7766-554433221100";
constexpr std::uint64_t kMost = ~std::uint64_t{0};

class ShareFolderTest : public ::testing::Test {
 protected:
  ShareFolderTest() {
    parts_[0] = {
        .gpu = kGpu0, .memory_bytes = 1000, .context_bytes = 50, .beside_bytes = 7, .milli = 300, .rate_milli = 400};
    parts_[1] = {.gpu = kGpu1};
  }
  std::string account_file() const { return share_.path() + "/" + cuda::kAccountFile; }
  std::string limits_file() const { return share_.path() + "/" + cuda::kLimitsFile; }
  template <typename Content>
  static std::unique_ptr<Content> ReadFile(const std::string& path) {
    auto content = std::make_unique<Content>();
    std::ifstream file(path, std::ios::binary);
    file.read(reinterpret_cast<char*>(content.get()), sizeof(Content));
    EXPECT_TRUE(file) << path;
    return content;
  }
  // As a program in the container may.
  template <typename Change>
  void ChangeAccount(const Change& change) {
    const int file = open(account_file().c_str(), O_RDWR | O_CLOEXEC);
    void* const start = mmap(nullptr, sizeof(Account), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    ASSERT_NE(start, MAP_FAILED);
    change(*static_cast<Account*>(start));
    munmap(start, sizeof(Account));
  }
  static std::string MessageOf(const kube::Status& done) { return done ? "" : kube::Status(done).error().message(); }
  std::string ReadError() { return share_.ReadAccount(2).error().message(); }

  const kube::testing::TempDir dir_;
  const ShareFolder share_{dir_.path("a/share")};
  std::vector<ShareLimits> parts_{2};
};

TEST_F(ShareFolderTest, MakesAllFilesWhole) {
  Must(share_.Make(parts_, nanoseconds(123)));

  const auto limits = ReadFile<Limits>(limits_file());
  EXPECT_EQ(limits->magic, cuda::kLimitsMagic);
  EXPECT_EQ(limits->version, cuda::kVersion);
  EXPECT_EQ(limits->gpu_count, 2u);
  EXPECT_EQ(limits->beat, 123u);
  const cuda::GpuLimits& gpu = limits->gpus[0];
  EXPECT_THAT(gpu.uuid, ElementsAre(0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd,
                                    0xee, 0xff));
  EXPECT_EQ(gpu.memory, 1000u);
  EXPECT_EQ(gpu.context, 50u);
  EXPECT_EQ(gpu.beside, 7u);
  EXPECT_EQ(gpu.milli, 300u);
  EXPECT_EQ(gpu.rate, 400u);
  std::ifstream preload(share_.path() + "/ld.so.preload");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(preload), {}), "/run/grus/cuda/libgrus-cuda.so\n");
  EXPECT_EQ(limits->gpus[1].uuid[0], 0xff);
  EXPECT_EQ(limits->gpus[1].memory, 0u);

  const auto account = ReadFile<Account>(account_file());
  EXPECT_EQ(account->magic, cuda::kAccountMagic);
  EXPECT_EQ(account->version, cuda::kVersion);
  EXPECT_EQ(account->time[1].filled, 123u);
  EXPECT_EQ(fs::file_size(account_file()), sizeof(Account));
  struct stat status = {};
  ASSERT_EQ(stat(account_file().c_str(), &status), 0);
  EXPECT_GE(static_cast<std::size_t>(status.st_blocks) * 512,
            sizeof(Account));  // Nothing is left to be found on the disk.
}

TEST_F(ShareFolderTest, ProgramsOfAnyUserMayWriteTheAccountAloneWhichOnlyTheirContainerReaches) {
  const mode_t before = umask(0077);
  Must(share_.Make(parts_, nanoseconds(1)));
  umask(before);
  const auto mode = [](const std::string& path) { return static_cast<unsigned>(fs::status(path).permissions()); };
  EXPECT_EQ(mode(share_.path()), 0700u);
  EXPECT_EQ(mode(share_.path() + "/ld.so.preload"), 0644u);
  EXPECT_EQ(mode(account_file()), 0666u);
  EXPECT_EQ(mode(limits_file()), 0644u);
}

TEST_F(ShareFolderTest, MadeAgainNobodyHasAnythingAndWhoRunsKeepsTheOldFiles) {
  Must(share_.Make(parts_, nanoseconds(1)));
  const int old = open(account_file().c_str(), O_RDONLY | O_CLOEXEC);
  ChangeAccount([](Account& account) { account.processes[3] = {.pid = 5, .unused = 0, .started = 6, .memory = {77}}; });
  dir_.Write("a/share/account.new", "left by an agent that was killed");
  Must(share_.Make(parts_, nanoseconds(2)));

  EXPECT_THAT(Must(share_.ReadAccount(2)).processes, IsEmpty());
  Account kept;
  EXPECT_EQ(pread(old, &kept, sizeof(kept), 0), static_cast<ssize_t>(sizeof(kept)));
  close(old);
  EXPECT_EQ(kept.processes[3].memory[0], 77u);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(share_.path())) names.push_back(entry.path().filename());
  EXPECT_THAT(names, UnorderedElementsAre(cuda::kAccountFile, cuda::kLimitsFile, kPreloadFile));
}

TEST_F(ShareFolderTest, WhatCannotBeMadeIsToldAndLeavesTheFilesAsTheyWere) {
  EXPECT_THAT(MessageOf(share_.Make(std::vector<ShareLimits>(17, parts_[0]), nanoseconds(1))), HasSubstr("17 GPUs"));
  for (const char* uuid : {"", "GPU-", "00112233445566778899aabbccddeeff", "GPU-0011223344556677-8899-aabbccddeef",
                           "GPU-00112233-4455-6677-8899-aabbccddeeff0", "GPU-0011223g-4455-6677-8899-aabbccddeeff"}) {
    parts_[1].gpu = uuid;
    EXPECT_THAT(MessageOf(share_.Make(parts_, nanoseconds(1))), HasSubstr("is not the UUID of a GPU")) << uuid;
  }
  EXPECT_FALSE(fs::exists(share_.path()));
  parts_[1].gpu = kGpu1;
  EXPECT_THAT(MessageOf(ShareFolder(dir_.Write("file", "") + "/share").Make(parts_, nanoseconds(1))),
              HasSubstr("make "));
}

TEST_F(ShareFolderTest, AFullDiskIsToldAtOnce) {
  const auto is_told = [&] {
    const std::string told = MessageOf(share_.Make(parts_, nanoseconds(1)));
    return told.find("No space left") != std::string::npos && fs::is_empty(share_.path());
  };
  const testing::OwnMount result = testing::HoldsWithMount(dir_.path(), 0, "size=100k", is_told);
  if (result == testing::OwnMount::kMayNot) GTEST_SKIP() << "this user may not mount";
  EXPECT_EQ(result, testing::OwnMount::kHolds);
}

TEST_F(ShareFolderTest, WritesLimitsInPlace) {
  Must(share_.Make(parts_, nanoseconds(1)));
  const int file = open(limits_file().c_str(), O_RDONLY | O_CLOEXEC);
  const auto* const limits = static_cast<const Limits*>(
      mmap(nullptr, sizeof(Limits), PROT_READ, MAP_SHARED, file, 0));  // As a program has it.
  close(file);
  parts_[0] = {
      .gpu = kGpu0, .memory_bytes = 2000, .context_bytes = 60, .beside_bytes = 8, .milli = 500, .rate_milli = 900};
  parts_[1].rate_milli = 1;
  Must(share_.WriteLimits(parts_, nanoseconds(5)));

  EXPECT_EQ(limits->beat, 5u);
  EXPECT_EQ(limits->gpus[0].memory, 2000u);
  EXPECT_EQ(limits->gpus[0].context, 60u);
  EXPECT_EQ(limits->gpus[0].beside, 8u);
  EXPECT_EQ(limits->gpus[0].milli, 500u);
  EXPECT_EQ(limits->gpus[0].rate, 900u);
  EXPECT_EQ(limits->gpus[1].rate, 1u);
  munmap(const_cast<Limits*>(limits), sizeof(Limits));
}

TEST_F(ShareFolderTest, WhatMayBePagedIsAnEntryBehindAllGpusThatTheGpuNames) {
  parts_[0].paged_bytes = 5000;
  Must(share_.Make(parts_, nanoseconds(1)));
  auto limits = ReadFile<Limits>(limits_file());
  EXPECT_EQ(EntriesOf(parts_), 3u);
  EXPECT_EQ(limits->gpu_count, 3u);
  EXPECT_EQ(limits->gpus[0].memory, 1000u);
  EXPECT_EQ(limits->gpus[0].paged, 3u);
  EXPECT_EQ(limits->gpus[1].paged, 0u);
  EXPECT_TRUE(std::ranges::equal(limits->gpus[2].uuid, limits->gpus[0].uuid));
  EXPECT_EQ(limits->gpus[2].memory, 5000u);
  EXPECT_EQ(limits->gpus[2].milli, 0u);
  EXPECT_EQ(limits->gpus[2].beside, 0u);

  parts_[0].paged_bytes = 4000;
  Must(share_.WriteLimits(parts_, nanoseconds(2)));
  EXPECT_EQ(ReadFile<Limits>(limits_file())->gpus[2].memory, 4000u);
  parts_[0].paged_bytes = 0;
  EXPECT_THAT(MessageOf(share_.WriteLimits(parts_, nanoseconds(3))), HasSubstr("for other GPUs")) << "no limit at all";
  parts_[1].paged_bytes = 4000;
  EXPECT_THAT(MessageOf(share_.WriteLimits(parts_, nanoseconds(3))), HasSubstr("for other GPUs"));
  EXPECT_EQ(ReadFile<Limits>(limits_file())->gpus[2].memory, 4000u);
  Must(share_.Make(parts_, nanoseconds(4)));
  EXPECT_EQ(ReadFile<Limits>(limits_file())->gpus[1].paged, 3u) << "a new start";

  parts_[1].paged_bytes = 1;
  parts_.resize(16, parts_[0]);
  EXPECT_THAT(MessageOf(share_.Make(parts_, nanoseconds(5))), HasSubstr("paged memory counted once more; 16 are"));
}

TEST_F(ShareFolderTest, LimitsOfOtherGpusOrDamagedOnesAreNotWritten) {
  EXPECT_THAT(MessageOf(share_.WriteLimits(parts_, nanoseconds(5))), HasSubstr("No such file"));
  Must(share_.Make(parts_, nanoseconds(1)));
  std::vector<ShareLimits> other = parts_;
  std::swap(other[0], other[1]);
  EXPECT_THAT(MessageOf(share_.WriteLimits(other, nanoseconds(5))), HasSubstr("for other GPUs"));
  other.pop_back();
  EXPECT_THAT(MessageOf(share_.WriteLimits(other, nanoseconds(5))), HasSubstr("for other GPUs"));
  EXPECT_EQ(ReadFile<Limits>(limits_file())->beat, 1u);
  fs::resize_file(limits_file(), 100);
  EXPECT_THAT(MessageOf(share_.WriteLimits(parts_, nanoseconds(5))), HasSubstr("too short"));
  EXPECT_EQ(fs::file_size(limits_file()), 100u);
}

TEST_F(ShareFolderTest, ReadsTheLimitsThatTheAgentBeforeWroteForThisGpu) {
  parts_.pop_back();
  Must(share_.Make(parts_, nanoseconds(1)));
  const ShareLimits read = Must(share_.ReadLimits(kGpu0));
  EXPECT_EQ(read.gpu, kGpu0);
  EXPECT_EQ(read.memory_bytes, 1000u);
  EXPECT_EQ(read.context_bytes, 50u);
  EXPECT_EQ(read.beside_bytes, 7u);
  EXPECT_EQ(read.milli, 300u);
  EXPECT_EQ(read.rate_milli, 300u) << "nothing is lent at first";
  EXPECT_TRUE(share_.HasLimits());

  EXPECT_EQ(read.paged_bytes, 0u);
  parts_[0].paged_bytes = 5000;
  Must(share_.Make(parts_, nanoseconds(1)));
  EXPECT_EQ(Must(share_.ReadLimits(kGpu0)).memory_bytes, 1000u);
  EXPECT_EQ(Must(share_.ReadLimits(kGpu0)).paged_bytes, 5000u);

  EXPECT_FALSE(share_.ReadLimits(kGpu1));
  EXPECT_FALSE(ShareFolder(dir_.path("none")).ReadLimits(kGpu0));
  EXPECT_FALSE(ShareFolder(dir_.path("none")).HasLimits());
  std::fstream file(limits_file(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offsetof(Limits, version));
  file.put(99);
  file.close();
  EXPECT_FALSE(share_.ReadLimits(kGpu0)) << "of another version";
  EXPECT_TRUE(share_.HasLimits());
  fs::resize_file(limits_file(), 100);
  EXPECT_FALSE(share_.ReadLimits(kGpu0));
  std::ofstream(limits_file()) << "of somebody else";
  EXPECT_FALSE(share_.HasLimits());
}

TEST_F(ShareFolderTest, NothingWaitsForALeaseOfTheContainer) {
  parts_.pop_back();
  for (const char* name : {"limits", "account"}) {
    Must(share_.Make(parts_, nanoseconds(1)));
    const testing::LeaseHolder hostile(share_.path() + "/" + name, F_WRLCK);
    ASSERT_EQ(hostile.error(), 0);
    const bool is_account = std::string(name) == "account";
    EXPECT_EQ(share_.ReadAccount(1).ok(), !is_account);
    EXPECT_EQ(share_.ReadLimits(kGpu0).ok(), is_account);
    EXPECT_EQ(share_.WriteLimits(parts_, nanoseconds(2)).ok(), is_account);
    Must(share_.Make(parts_, nanoseconds(3)));  // The next start of the container.
    EXPECT_TRUE(share_.ReadAccount(1));
    EXPECT_TRUE(share_.ReadLimits(kGpu0));
  }
}

TEST_F(ShareFolderTest, AFolderInThePlaceOfAFileGoes) {
  for (const char* name : {"limits", "account", "ld.so.preload"}) {
    dir_.Write("a/share/" + std::string(name) + "/by/a/container", "");
  }
  Must(share_.Make(parts_, nanoseconds(1)));
  EXPECT_EQ(ReadFile<Limits>(limits_file())->gpu_count, 2u);
  EXPECT_TRUE(share_.ReadAccount(2));
}

TEST_F(ShareFolderTest, ReadsWhatEachProcessHas) {
  Must(share_.Make(parts_, nanoseconds(1)));
  ChangeAccount([](Account& account) {
    account.processes[0] = {.pid = 1, .unused = 0, .started = 100, .memory = {10, 20, 999}};
    account.processes[9] = {.pid = 4194304, .unused = 0, .started = 0, .memory = {5}};
    account.processes[10] = {.pid = 0, .unused = 0, .started = 7, .memory = {1000}};  // Of nobody.
    account.memory[0] = 3;                                                            // Not believed.
    account.most_memory[0] = 40;
    account.refused[0] = 6;
    account.time[1].balance = -5;
    account.time[1].filled = 11;
    account.time[1].charged = 12;
    account.time[1].waited = 13;
  });
  const AccountCopy copy = Must(share_.ReadAccount(2));
  ASSERT_THAT(copy.processes, SizeIs(2));
  EXPECT_EQ(copy.processes[0].pid, 1);
  EXPECT_EQ(copy.processes[0].started, 100u);
  EXPECT_THAT(copy.processes[0].memory_bytes, ElementsAre(10u, 20u));
  EXPECT_EQ(copy.processes[1].pid, 4194304);
  ASSERT_THAT(copy.gpus, SizeIs(2));
  EXPECT_EQ(copy.gpus[0].memory_bytes, 15u);
  EXPECT_EQ(copy.gpus[0].most_memory_bytes, 40u);
  EXPECT_EQ(copy.gpus[0].refused, 6u);
  EXPECT_EQ(copy.gpus[1].memory_bytes, 20u);
  EXPECT_EQ(copy.gpus[1].balance, nanoseconds(-5));
  EXPECT_EQ(copy.gpus[1].filled, nanoseconds(11));
  EXPECT_EQ(copy.gpus[1].charged, nanoseconds(12));
  EXPECT_EQ(copy.gpus[1].waited, nanoseconds(13));
}

TEST_F(ShareFolderTest, TheSumsAreThoseOfThePrograms) {
  Must(share_.Make(parts_, nanoseconds(1)));
  ChangeAccount([](Account& account) {
    account.processes[0] = {8, 0, 9, {5, 5}};
    account.memory[1] = 20;
    account.most_memory[1] = 21;
    account.memory[2] = 99;
    account.refused[1] = 6;
    account.time[1].charged = 12;
    account.time[1].busy[7] = 13;
  });
  const auto gpus = Must(share_.ReadSums(2));
  ASSERT_THAT(gpus, SizeIs(2));
  EXPECT_EQ(gpus[0].memory_bytes, 0u);
  EXPECT_EQ(gpus[1].memory_bytes, 20u);
  EXPECT_EQ(gpus[1].most_memory_bytes, 21u);
  EXPECT_EQ(gpus[1].refused, 6u);
  EXPECT_EQ(gpus[1].charged, nanoseconds(12));
  ASSERT_THAT(gpus[1].busy, SizeIs(cuda::kBusySlots));
  EXPECT_EQ(gpus[1].busy[7], 13u);
  EXPECT_THAT(Must(share_.ReadSums(99)), SizeIs(cuda::kMostGpus));

  ChangeAccount([](Account& account) {
    account.memory[0] = kMost;
    account.time[0].charged = kMost;
  });
  EXPECT_EQ(Must(share_.ReadSums(1))[0].memory_bytes, std::uint64_t{1} << 50);
  EXPECT_EQ(Must(share_.ReadSums(1))[0].charged, nanoseconds(std::int64_t{1} << 60));
}

TEST_F(ShareFolderTest, NumbersThatCannotBeAreHeldWithinWhatCan) {
  Must(share_.Make(parts_, nanoseconds(1)));
  ChangeAccount([](Account& account) {
    for (cuda::ProcessAccount& place : account.processes) place = {8, 0, 9, {kMost, kMost}};  // All the same.
    account.processes[1].pid = -8;
    account.processes[2].pid = 4194305;
    account.processes[3].pid = 7;
    account.most_memory[0] = account.refused[0] = kMost;
    account.time[0].balance = std::numeric_limits<std::int64_t>::min();
    account.time[0].charged = kMost;
  });
  const AccountCopy copy = Must(share_.ReadAccount(2));
  ASSERT_THAT(copy.processes, SizeIs(2));
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;
  EXPECT_THAT(copy.processes[0].memory_bytes, ElementsAre(kMostBytes, kMostBytes));
  EXPECT_EQ(copy.gpus[0].memory_bytes, 2 * kMostBytes);
  EXPECT_EQ(copy.gpus[0].most_memory_bytes, 2 * kMostBytes);
  EXPECT_EQ(copy.gpus[0].refused, std::uint64_t{1} << 53);
  EXPECT_EQ(copy.gpus[0].balance, nanoseconds(-(std::int64_t{1} << 60)));
  EXPECT_EQ(copy.gpus[0].charged, nanoseconds(std::int64_t{1} << 60));
}

TEST_F(ShareFolderTest, WhatIsNoAccountIsAnError) {
  struct Case {
    const char* name;
    std::function<void()> damage;
    const char* why;
  };
  const std::string account = account_file();
  const Case cases[] = {
      {"none", [&] { fs::remove(account); }, "No such file"},
      {"short", [&] { fs::resize_file(account, sizeof(Account) - 1); }, "too short"},
      {"empty", [&] { fs::resize_file(account, 0); }, "too short"},
      {"zeros", [&] { fs::resize_file(account, 0), fs::resize_file(account, sizeof(Account)); }, "was overwritten"},
      {"a link", [&] { fs::rename(account, account + "2"), fs::create_symlink(account + "2", account); },
       "symbolic link"},
      {"a FIFO that nobody writes", [&] { fs::remove(account), mkfifo(account.c_str(), 0666); }, "not a regular file"},
      {"a folder", [&] { fs::remove(account), fs::create_directory(account); }, "not a regular file"},
      {"a link to a device", [&] { fs::remove(account), fs::create_symlink("/dev/zero", account); }, "symbolic link"},
  };
  for (const Case& c : cases) {
    fs::remove_all(share_.path());
    Must(share_.Make(parts_, nanoseconds(1)));
    c.damage();
    const auto copy = share_.ReadAccount(2);
    ASSERT_FALSE(copy) << c.name;
    const auto sums = share_.ReadSums(1);
    ASSERT_FALSE(sums) << c.name;
    EXPECT_EQ(sums.error().message(), copy.error().message()) << c.name;
    EXPECT_THAT(copy.error().message(), HasSubstr(c.why)) << c.name;
    EXPECT_THAT(copy.error().message(), HasSubstr(account)) << c.name;
  }
}

TEST_F(ShareFolderTest, AHugeFileIsReadNoFurtherThanAnAccountGoes) {
  Must(share_.Make(parts_, nanoseconds(1)));
  fs::resize_file(account_file(), std::uintmax_t{1} << 40);
  EXPECT_TRUE(share_.ReadAccount(2));
}

TEST_F(ShareFolderTest, AnAccountIsReadWhileAProgramHoldsItsLock) {
  Must(share_.Make(parts_, nanoseconds(1)));
  ChangeAccount([&](Account& account) {
    pthread_mutex_lock(&account.mutex);
    EXPECT_TRUE(share_.ReadAccount(2));
    pthread_mutex_unlock(&account.mutex);
  });
}

TEST_F(ShareFolderTest, RandomBytesGiveAnErrorOrNumbersThatCanBe) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Must(share_.Make(parts_, nanoseconds(1)));
  int read = 0;
  for (int round = 0; round < 100; ++round) {
    ChangeAccount([&](Account& account) {
      auto* const words = reinterpret_cast<std::uint64_t*>(&account);
      for (std::size_t i = 0; i < sizeof(Account) / 8; ++i) words[i] = random() >> (random() % 64);
      if (round % 10 == 0) return;
      account.magic = cuda::kAccountMagic;
      account.version = cuda::kVersion;
    });
    const auto copy = share_.ReadAccount(round % 20);
    if (!copy) continue;
    ++read;
    EXPECT_THAT(copy->gpus, SizeIs(Le(cuda::kMostGpus)));
    EXPECT_THAT(copy->processes, SizeIs(Le(cuda::kMostProcesses)));
    for (const AccountCopy::Gpu& gpu : copy->gpus) {
      EXPECT_LE(gpu.memory_bytes, std::uint64_t{1} << 60);
      EXPECT_LE(gpu.most_memory_bytes, std::uint64_t{1} << 60);
      EXPECT_GE(gpu.charged.count(), 0);
    }
    for (const AccountCopy::Process& process : copy->processes) EXPECT_GT(process.pid, 0);
  }
  EXPECT_EQ(read, 90);
}

TEST_F(ShareFolderTest, AFileThatIsCutAndGrownWhileItIsReadGivesErrorsAlone) {
  Must(share_.Make(parts_, nanoseconds(1)));
  std::atomic<bool> is_done = false;
  std::jthread hostile([&] {
    while (!is_done) {
      fs::resize_file(account_file(), 5000);
      fs::resize_file(account_file(), sizeof(Account));
    }
  });
  for (int i = 0; i < 500; ++i) {
    const auto copy = share_.ReadAccount(2);
    if (copy) EXPECT_THAT(copy->processes, IsEmpty());
    else EXPECT_THAT(copy.error().message(), HasSubstr("too short"));
  }
  is_done = true;
}

}  // namespace
}  // namespace grus
