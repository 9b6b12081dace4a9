// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/account.h"

#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/nodeagent/cuda/shared_account.h"

namespace grus::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::uint64_t kMost = ~std::uint64_t{0};

TEST_F(AccountTest, GpusAreFoundByUuidInTheOrderOfTheLimits) {
  const SharedAccount& account = MustOpen(folder());
  const unsigned char first[16] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                   0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
  unsigned char second[16], other[16] = {};
  std::ranges::reverse_copy(first, second);

  EXPECT_EQ(account.gpu_count(), 2);
  EXPECT_EQ(account.IndexOf(first), 0);
  EXPECT_EQ(account.IndexOf(second), 1);
  EXPECT_EQ(account.IndexOf(other), -1);
  EXPECT_EQ(account.Limit(0), kLimit);
  EXPECT_EQ(account.Limit(1), 0u);
}

TEST_F(AccountTest, WhatIsPagedCountsInAnEntryOfItsOwnBehindAllGpus) {
  parts_[1].paged_bytes = 50;
  kit::Must(share_->Make(parts_, std::chrono::nanoseconds(1)));
  const std::unique_ptr<Account, void (*)(Account*)> raw(Map(), [](Account* map) { munmap(map, sizeof(Account)); });
  SharedAccount& account = MustOpen(folder());
  unsigned char second[16];
  std::ranges::copy(account.limits(1).uuid, second);

  EXPECT_EQ(account.gpu_count(), 3);
  EXPECT_EQ(account.PagedOf(0), -1);
  EXPECT_EQ(account.PagedOf(1), 2);
  EXPECT_EQ(account.PagedOf(2), -1);
  EXPECT_EQ(account.IndexOf(second), 1);
  EXPECT_EQ(account.Limit(2), 50u);
  EXPECT_TRUE(account.Reserve(2, 50));
  EXPECT_FALSE(account.Reserve(2, 1));
  EXPECT_EQ(raw->refused[2], 1u);
  EXPECT_FALSE(account.Reserve(2, 1, false)) << "there is another place to ask";
  EXPECT_EQ(raw->refused[2], 1u);
  EXPECT_EQ(account.Used(1), 0u);
  account.ForgetMine();
  EXPECT_EQ(account.Used(2), 0u);
}

TEST_F(AccountTest, AnEntryThatIsNotThereOrHasNoLimitIsNotPagedTo) {
  const std::string file = folder() + "/" + kLimitsFile;
  for (const std::uint32_t paged : {1U, 2U, 3U, 17U, ~0U}) {  // Itself, one without a limit, none.
    std::fstream limits(file, std::ios::in | std::ios::out | std::ios::binary);
    limits.seekp(offsetof(Limits, gpus) + offsetof(GpuLimits, paged));
    limits.write(reinterpret_cast<const char*>(&paged), sizeof(paged));
    limits.close();
    EXPECT_EQ(MustOpen(folder()).PagedOf(0), -1) << paged;
  }
}

TEST_F(AccountTest, ReservesToTheByteAndNotBeyond) {
  SharedAccount& account = MustOpen(folder());

  EXPECT_TRUE(account.Reserve(0, 600));
  EXPECT_FALSE(account.Reserve(0, 401));
  EXPECT_EQ(account.Used(0), 600u);
  EXPECT_TRUE(account.Reserve(0, 400));
  EXPECT_FALSE(account.Reserve(0, 1));
  EXPECT_TRUE(account.Reserve(0, 0));
  EXPECT_EQ(account.Used(0), kLimit);
  EXPECT_EQ(raw_->refused[0], 2u);
  EXPECT_EQ(raw_->most_memory[0], kLimit);
  account.GiveBack(0, 1000);
  EXPECT_EQ(account.Used(0), 0u);
  EXPECT_EQ(raw_->most_memory[0], kLimit);
}

TEST_F(AccountTest, CountsAlsoWithoutALimit) {
  SharedAccount& account = MustOpen(folder());
  EXPECT_TRUE(account.Reserve(1, std::uint64_t{1} << 60));
  EXPECT_EQ(account.Used(1), std::uint64_t{1} << 60);
  EXPECT_EQ(account.Used(0), 0u);
}

TEST_F(AccountTest, NumbersThatOverflowAreRefused) {
  SharedAccount& account = MustOpen(folder());
  for (const int gpu : {0, 1}) {
    EXPECT_TRUE(account.Reserve(gpu, 10));
    for (const std::uint64_t bytes : {kMost, kMost - 9, kMost - 10}) EXPECT_FALSE(account.Reserve(gpu, bytes)) << bytes;
    EXPECT_EQ(account.Used(gpu), 10u);
  }
}

TEST_F(AccountTest, GivesBackNoMoreThanThisProcessHas) {
  SharedAccount& account = MustOpen(folder());
  SetPlace(5, {getppid(), 0}, 300);
  EXPECT_TRUE(account.Reserve(0, 100));
  account.GiveBack(0, 250);
  EXPECT_EQ(account.Used(0), 300u);
  account.GiveBack(0, kMost);
  EXPECT_EQ(account.Used(0), 300u);
}

TEST_F(AccountTest, WhatWasTakenInTheEndCountsAlsoPastTheLimit) {
  SharedAccount& account = MustOpen(folder());
  EXPECT_TRUE(account.Reserve(0, 900));
  account.Settle(0, 900, 1100);
  EXPECT_EQ(account.Used(0), 1100u);
  EXPECT_FALSE(account.Reserve(0, 1));
  account.Settle(0, 1100, 50);
  EXPECT_EQ(account.Used(0), 50u);
  account.Settle(0, 0, 25);  // Taken without being asked for.
  EXPECT_EQ(account.Used(0), 75u);
}

TEST_F(AccountTest, WhatTheDriverSaysBesideCounts) {
  SharedAccount& account = MustOpen(folder());
  parts_[0].beside_bytes = 700;
  kit::Must(share_->WriteLimits(parts_, std::chrono::nanoseconds(2)));
  EXPECT_EQ(account.Used(0), 700u);
  EXPECT_FALSE(account.Reserve(0, 301));
  EXPECT_TRUE(account.Reserve(0, 300));
  parts_[0].beside_bytes = kMost;
  kit::Must(share_->WriteLimits(parts_, std::chrono::nanoseconds(3)));
  EXPECT_EQ(account.Used(0), kMost);
  EXPECT_FALSE(account.Reserve(0, 1));
}

TEST_F(AccountTest, ALimitThatTheAgentChangesHoldsAtOnce) {
  SharedAccount& account = MustOpen(folder());
  EXPECT_TRUE(account.Reserve(0, 800));
  parts_[0].memory_bytes = 500;
  kit::Must(share_->WriteLimits(parts_, std::chrono::nanoseconds(2)));
  EXPECT_FALSE(account.Reserve(0, 1));
  parts_[0].memory_bytes = 801;
  kit::Must(share_->WriteLimits(parts_, std::chrono::nanoseconds(3)));
  EXPECT_TRUE(account.Reserve(0, 1));
}

TEST_F(AccountTest, ForgetsAllOfThisProcessAndFreesItsPlace) {
  SharedAccount& account = MustOpen(folder());
  SetPlace(5, {getppid(), 0}, 300);
  EXPECT_TRUE(account.Reserve(0, 100));
  EXPECT_TRUE(account.Reserve(1, 70));
  EXPECT_THAT(Places(), SizeIs(2));
  account.ForgetMine();
  EXPECT_EQ(account.Used(0), 300u);
  EXPECT_EQ(account.Used(1), 0u);
  EXPECT_THAT(Places(), SizeIs(1));
  EXPECT_TRUE(account.Reserve(0, 10));
  EXPECT_EQ(account.Used(0), 310u);
}

TEST_F(AccountTest, ThreadsOfAProcessShareItsPlace) {
  SharedAccount& account = MustOpen(folder());
  std::array<std::uint64_t, 4> held = {};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t& mine : held) {
      threads.emplace_back([&] {
        for (std::uint64_t i = 0; i < 5000; ++i) {
          if (account.Reserve(0, i % 300)) mine += i % 300;
          if (i % 3 == 0) account.GiveBack(0, std::exchange(mine, 0));
        }
      });
    }
  }
  EXPECT_EQ(account.Used(0), held[0] + held[1] + held[2] + held[3]);
  EXPECT_THAT(Places(), SizeIs(1));
  EXPECT_LE(raw_->most_memory[0], kLimit);
}

TEST_F(AccountTest, KeepsErrno) {
  SharedAccount& account = MustOpen(folder());
  SetPlace(5, DeadProcess(), 300);
  errno = 77;
  EXPECT_TRUE(account.Reserve(0, 900));
  EXPECT_FALSE(account.Reserve(0, 900));
  account.Used(0);
  account.GiveBack(0, 900);
  account.ForgetMine();
  const char* why = nullptr;
  SharedAccount::Open(dir_.path("none").c_str(), &why);
  EXPECT_EQ(errno, 77);
}

TEST_F(AccountTest, WithoutAFolderNothingIsLimited) {
  const char* why = "unset";
  EXPECT_EQ(SharedAccount::Open(dir_.path("none").c_str(), &why), nullptr);
  EXPECT_EQ(why, nullptr);
}

TEST_F(AccountTest, FilesThatAreDamagedAreToldFromNoFolder) {
  namespace fs = std::filesystem;
  const std::string account = account_file(), limits = folder() + "/" + kLimitsFile;
  const auto flip = [](const std::string& path, off_t at) {
    const int file = open(path.c_str(), O_RDWR);
    char byte = 0;
    EXPECT_EQ(pread(file, &byte, 1, at), 1);
    byte = static_cast<char>(~byte);
    EXPECT_EQ(pwrite(file, &byte, 1, at), 1);
    close(file);
  };
  const off_t kind = offsetof(Account, mutex) + offsetof(pthread_mutex_t, __data.__kind);
  struct Case {
    const char* name;
    std::function<void()> damage;
    const char* why;
  };
  const Case cases[] = {
      {"no limits", [&] { fs::remove(limits); }, "limits cannot be opened"},
      {"no account", [&] { fs::remove(account); }, "account cannot be opened"},
      {"short limits", [&] { fs::resize_file(limits, sizeof(Limits) - 1); }, "limits is too short"},
      {"short account", [&] { fs::resize_file(account, sizeof(Account) - 1); }, "account is too short"},
      {"empty account", [&] { fs::resize_file(account, 0); }, "account is too short"},
      {"other limits", [&] { flip(limits, 0); }, "limits is not a file of grus"},
      {"other version of limits", [&] { flip(limits, offsetof(Limits, version)); }, "limits is not a file of grus"},
      {"too many GPUs", [&] { flip(limits, offsetof(Limits, gpu_count)); }, "limits is not a file of grus"},
      {"other account", [&] { flip(account, 7); }, "account is not a file of grus"},
      {"other version of account", [&] { flip(account, offsetof(Account, version)); }, "account is not a file of grus"},
      {"a lock of another kind", [&] { flip(account, kind); }, "account is not a file of grus"},
      {"a link", [&] { fs::rename(account, account + "2"), fs::create_symlink(account + "2", account); }, "opened"},
      {"a FIFO", [&] { fs::remove(account), mkfifo(account.c_str(), 0666); }, "account is too short"},
      {"a folder", [&] { fs::remove(account), fs::create_directory(account); }, "account cannot be opened"},
  };
  for (const Case& c : cases) {
    fs::remove_all(folder());
    kit::Must(share_->Make(parts_, std::chrono::nanoseconds(1)));
    c.damage();
    const char* why = nullptr;
    EXPECT_EQ(SharedAccount::Open(folder().c_str(), &why), nullptr) << c.name;
    ASSERT_NE(why, nullptr) << c.name;
    EXPECT_THAT(why, HasSubstr(c.why)) << c.name;
  }
}

TEST_F(AccountTest, AFileInPlaceOfTheFolderIsDamage) {
  const char* why = nullptr;
  EXPECT_EQ(SharedAccount::Open(dir_.Write("file", "text").c_str(), &why), nullptr);
  EXPECT_NE(why, nullptr);
}

}  // namespace
}  // namespace grus::cuda
