// SPDX-License-Identifier: Apache-2.0
// The account over fork, exec and death of the processes that share it.
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "tests/nodeagent/cuda/shared_account.h"

extern char** environ;

namespace grus::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

int HasNothingOfTheOneBeforeTheExec(SharedAccount& account) {
  if (account.Used(0) != 300) return 1;  // Of the parent.
  if (!account.Reserve(0, 700)) return 2;
  account.GiveBack(0, 650);
  return account.Used(0) == 350 ? 0 : 3;
}

int CountsBesideItsParent(SharedAccount& account) {
  if (account.Used(0) != 300) return 1;
  return !account.Reserve(0, 701) && account.Reserve(0, 700) ? 0 : 2;
}

// Another program that opens the account of a folder: this one again, which then plays a part and runs no test.
class OtherProgram : public ::testing::Environment {
 public:
  void SetUp() override {
    const char* const folder = std::getenv(kFolder);
    if (folder == nullptr) return;
    SharedAccount& account = MustOpen(folder);
    const std::string part = std::getenv(kPart);
    if (part == "after exec") _exit(HasNothingOfTheOneBeforeTheExec(account));
    if (part == "beside its parent") _exit(CountsBesideItsParent(account));
    _exit(100);
  }

  // What this program starts from now on is that one.
  static void Announce(const std::string& folder, const char* part) {
    setenv(kFolder, folder.c_str(), 1);
    setenv(kPart, part, 1);
  }
  static void Withdraw() { unsetenv(kFolder); }

  // Returns only if it fails.
  static int Become(const std::string& folder, const char* part) {
    Announce(folder, part);
    execl("/proc/self/exe", "other-program", nullptr);
    return 101;
  }

 private:
  static constexpr char kFolder[] = "GRUS_TEST_FOLDER";
  static constexpr char kPart[] = "GRUS_TEST_PART";
};
[[maybe_unused]] ::testing::Environment* const other_program = ::testing::AddGlobalTestEnvironment(new OtherProgram);

class AccountProcessesTest : public AccountTest {};

TEST_F(AccountProcessesTest, AfterExecAProcessHasNothingAndKeepsOnePlace) {
  SharedAccount& account = MustOpen(folder());
  ASSERT_TRUE(account.Reserve(0, 300));
  const pid_t child = Start([&] {
    if (!account.Reserve(0, 200)) return 1;
    return OtherProgram::Become(folder(), "after exec");
  });
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_THAT(Places(), SizeIs(2));  // None was swept: the one before the exec was found again.
  EXPECT_EQ(raw_->memory[0], 350u);
  EXPECT_EQ(ExitOf(child), 0);
  EXPECT_EQ(account.Used(0), 300u);
}

TEST_F(AccountProcessesTest, ASpawnedProgramCountsBesideItsParent) {
  SharedAccount& account = MustOpen(folder());
  ASSERT_TRUE(account.Reserve(0, 300));
  const char* const words[] = {"other-program", nullptr};
  pid_t child = 0;
  OtherProgram::Announce(folder(), "beside its parent");
  // By vfork, in glibc.
  ASSERT_EQ(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, const_cast<char* const*>(words), environ), 0);
  OtherProgram::Withdraw();
  EXPECT_EQ(ExitOf(child), 0);
  EXPECT_EQ(account.Used(0), 300u);
}

int HasNothingOfItsParents(SharedAccount& account) {
  account.GiveBack(0, 300);  // Not the child's.
  if (account.Used(0) != 300) return 1;
  if (!account.Reserve(0, 700) || account.Reserve(0, 1)) return 2;
  account.GiveBack(0, 1000);
  return account.Used(0) == 300 ? 0 : 3;
}

TEST_F(AccountProcessesTest, AForkedChildHasNothingOfItsParents) {
  SharedAccount& account = MustOpen(folder());
  ASSERT_TRUE(account.Reserve(0, 300));
  EXPECT_EQ(InChild([&] { return HasNothingOfItsParents(account); }), 0);
  account.GiveBack(0, 100);
  EXPECT_EQ(account.Used(0), 200u);
}

TEST_F(AccountProcessesTest, AChildOfARawCloneHasNothingOfItsParents) {
  SharedAccount& account = MustOpen(folder());
  ASSERT_TRUE(account.Reserve(0, 300));
  const pid_t child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) _exit(HasNothingOfItsParents(account));
  EXPECT_EQ(ExitOf(child), 0);
  account.GiveBack(0, 100);
  EXPECT_EQ(account.Used(0), 200u);
}

TEST_F(AccountProcessesTest, AChildInTheMemoryOfItsParentCountsAsIt) {
  SharedAccount* account = &MustOpen(folder());
  ASSERT_TRUE(account->Reserve(0, 300));
  std::vector<std::max_align_t> stack(16384);
  const auto part = [](void* data) { return static_cast<SharedAccount*>(data)->Reserve(0, 50) ? 0 : 1; };
  const pid_t child = clone(part, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD, account);
  EXPECT_EQ(ExitOf(child), 0);
  EXPECT_THAT(Places(), SizeIs(1));
  EXPECT_EQ(account->Used(0), 350u);
}

TEST_F(AccountProcessesTest, ForksWhileThreadsReserveLeaveNoLockBehind) {
  SharedAccount& account = MustOpen(folder());
  std::atomic<bool> is_done = false;
  std::jthread busy([&] {
    while (!is_done) {
      if (account.Reserve(0, 10)) account.GiveBack(0, 10);
    }
  });
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(InChild([&] { return account.Reserve(0, 20) ? 0 : 1; }), 0) << "fork " << i;
  }
  is_done = true;
  busy.join();
  EXPECT_EQ(account.Used(0), 0u);
}

TEST_F(AccountProcessesTest, WhatTheDeadHadIsFreeForWhoAsks) {
  SharedAccount& account = MustOpen(folder());
  ASSERT_EQ(InChild([&] { return account.Reserve(0, 900) ? 0 : 1; }), 0);
  EXPECT_EQ(raw_->memory[0], 900u);
  EXPECT_TRUE(account.Reserve(0, kLimit));
  EXPECT_EQ(raw_->refused[0], 0u);
  EXPECT_THAT(Places(), SizeIs(1));
}

TEST_F(AccountProcessesTest, ADeadProcessThatNobodyWaitedForHasNothing) {
  SharedAccount& account = MustOpen(folder());
  const pid_t child = Start([&] { return account.Reserve(0, 900) ? 0 : 1; });
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(account.Reserve(0, kLimit));
  EXPECT_EQ(ExitOf(child), 0);
}

TEST_F(AccountProcessesTest, AnotherProcessWithTheNumberOfADeadOneDoesNotKeepItAlive) {
  SharedAccount& account = MustOpen(folder());
  SetPlace(9, {getppid(), 1}, 900);  // Started in the first tick of the machine: another one.
  EXPECT_TRUE(account.Reserve(0, kLimit));
}

TEST_F(AccountProcessesTest, OneThatWasTakenForDeadIsCountedAgain) {
  SharedAccount& account = MustOpen(folder());
  ASSERT_TRUE(account.Reserve(0, 300));
  for (ProcessAccount& place : raw_->processes) place.pid = 0;
  raw_->memory[0] = 0;
  EXPECT_FALSE(account.Reserve(0, 701));
  EXPECT_TRUE(account.Reserve(0, 700));
  EXPECT_EQ(raw_->memory[0], kLimit);
}

TEST_F(AccountProcessesTest, TheDeathOfWhoHoldsTheLockFreesItAndTheSumsAreCountedAgain) {
  SharedAccount& account = MustOpen(folder());
  ASSERT_TRUE(account.Reserve(0, 300));
  EXPECT_EQ(InChild([&] {
              pthread_mutex_lock(&raw_->mutex);
              raw_->memory[0] = 12345;  // Died between two writes.
              return kill(getpid(), SIGKILL);
            }),
            128 + SIGKILL);
  account.GiveBack(0, 100);
  EXPECT_EQ(raw_->memory[0], 200u);
  EXPECT_TRUE(account.Reserve(0, 800));
}

TEST_F(AccountProcessesTest, WhoWaitsForTheLockGetsItWhenItsHolderDies) {
  SharedAccount& account = MustOpen(folder());
  Signal is_held;
  const pid_t child = Start([&] {
    pthread_mutex_lock(&raw_->mutex);
    is_held.Give();
    return pause();
  });
  is_held.Await();
  std::atomic<int> got = 0;
  {
    std::vector<std::jthread> waiting;
    for (int i = 0; i < 3; ++i) waiting.emplace_back([&] { got += account.Reserve(0, 100) ? 1 : 0; });
    kill(child, SIGKILL);
  }
  ExitOf(child);
  EXPECT_EQ(got, 3);
  EXPECT_EQ(account.Used(0), 300u);
}

TEST_F(AccountProcessesTest, TheLockOutlivesAnExecByAnotherThread) {
  SharedAccount& account = MustOpen(folder());
  ASSERT_TRUE(account.Reserve(0, 300));
  EXPECT_EQ(InChild([&] {
              Signal is_held;
              std::thread([&] {
                pthread_mutex_lock(&raw_->mutex);
                is_held.Give();
                pause();
              }).detach();
              is_held.Await();
              return OtherProgram::Become(folder(), "after exec");
            }),
            0);
}

TEST_F(AccountProcessesTest, TheProcessBeyondTheLastPlaceIsRefusedAndToldOnce) {
  SharedAccount& account = MustOpen(folder());
  for (std::size_t i = 0; i < kMostProcesses; ++i) SetPlace(i, {getppid(), 0}, 0);
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(account.Reserve(0, 1));
  EXPECT_FALSE(account.Reserve(0, 1));
  account.Settle(0, 0, 40);  // Taken nevertheless.
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("1,024 processes"));
  EXPECT_EQ(std::ranges::count(told, '\n'), 1);
  EXPECT_EQ(raw_->refused[0], 2u);

  raw_->processes[500].pid = DeadProcess().pid;
  EXPECT_TRUE(account.Reserve(0, 1));
  EXPECT_EQ(raw_->processes[500].memory[0], 41u);
}

// What the processes below know of themselves, in memory that they share.
struct Ledger {
  std::atomic<std::uint64_t> calls;
  std::atomic<bool> is_over;
  struct Worker {
    std::atomic<std::uint64_t> held[2];
    std::atomic<bool> has_stopped;
  } workers[8];
};

int Work(SharedAccount& account, Ledger& ledger, Ledger::Worker& worker, unsigned seed) {
  std::minstd_rand random(seed);
  std::uint64_t held[2] = {};
  while (!ledger.is_over) {
    const int gpu = static_cast<int>(random() % 2);
    const std::uint64_t bytes = random() % 150;
    if (random() % 3 != 0) {
      if (account.Reserve(gpu, bytes)) held[gpu] += bytes;
    } else {
      const std::uint64_t back = std::min(bytes * 4, held[gpu]);
      account.GiveBack(gpu, back);
      held[gpu] -= back;
    }
    ++ledger.calls;
  }
  for (int gpu : {0, 1}) worker.held[gpu] = held[gpu];
  worker.has_stopped = true;
  return pause();
}

TEST_F(AccountProcessesTest, IsExactAfterProcessesWereKilledAtRandom) {
  constexpr std::uint64_t kCalls = 100'000, kBetweenKills = 1500;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::minstd_rand random(seed);
  parts_[1].memory_bytes = 700;
  kit::Must(share_->WriteLimits(parts_, std::chrono::nanoseconds(2)));
  auto* const ledger =
      static_cast<Ledger*>(mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  SharedAccount& account = MustOpen(folder());
  const auto start = [&](std::size_t i) {
    const unsigned its_seed = static_cast<unsigned>(random());
    return Start([&, i, its_seed] { return Work(account, *ledger, ledger->workers[i], its_seed); });
  };
  std::array<pid_t, 8> children = {};
  for (std::size_t i = 0; i < children.size(); ++i) children[i] = start(i);

  std::uint64_t worst[2] = {};
  int kills = 0;
  for (std::uint64_t next = kBetweenKills; ledger->calls < kCalls;) {
    for (const int gpu : {0, 1})
      worst[gpu] = std::max(worst[gpu], __atomic_load_n(&raw_->memory[gpu], __ATOMIC_RELAXED));
    if (ledger->calls < next) {
      sched_yield();
      continue;
    }
    next = ledger->calls + random() % (2 * kBetweenKills);
    const std::size_t victim = random() % children.size();
    kill(children[victim], SIGKILL);
    ASSERT_EQ(ExitOf(children[victim]), 128 + SIGKILL);
    ++kills;
    children[victim] = start(victim);
  }
  ledger->is_over = true;
  for (const Ledger::Worker& worker : ledger->workers) {
    while (!worker.has_stopped) sched_yield();
  }

  for (const int gpu : {0, 1}) {
    std::uint64_t truth = 0;
    for (const Ledger::Worker& worker : ledger->workers) truth += worker.held[gpu];
    // First as the dead left it: nobody has counted again since, but for one who died with the lock.
    EXPECT_TRUE(account.Reserve(gpu, 0));
    std::uint64_t in_places = 0;
    for (const ProcessAccount& place : Places()) in_places += place.memory[gpu];
    EXPECT_EQ(raw_->memory[gpu], in_places) << "GPU " << gpu;
    EXPECT_EQ(account.Used(gpu), truth) << "GPU " << gpu;
    EXPECT_EQ(raw_->memory[gpu], truth) << "GPU " << gpu;
    EXPECT_LE(raw_->most_memory[gpu], account.Limit(gpu)) << "GPU " << gpu;
    EXPECT_LE(worst[gpu], account.Limit(gpu)) << "GPU " << gpu;
  }
  EXPECT_GT(kills, 25);
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    ExitOf(child);
  }
  EXPECT_EQ(account.Used(0), 0u);
  EXPECT_EQ(account.Used(1), 0u);
  account.ForgetMine();
  EXPECT_THAT(Places(), IsEmpty());
  munmap(ledger, sizeof(Ledger));
}

}  // namespace
}  // namespace grus::cuda
