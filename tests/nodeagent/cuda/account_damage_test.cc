// SPDX-License-Identifier: Apache-2.0
// What other programs of a container can do to its account: it may cost refusals, and neither a crash nor a hang.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "tests/nodeagent/cuda/shared_account.h"

namespace {
// Set in children of tests alone: then the clock stands still, but for what is added here, and no sleep takes time.
bool is_time_virtual = false;
long long virtual_ns = 1'000'000'000'000;
long long slept_ns = 0;
}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (!is_time_virtual) return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  *time = {static_cast<time_t>(virtual_ns / 1'000'000'000), static_cast<long>(virtual_ns % 1'000'000'000)};
  return 0;
}

extern "C" int nanosleep(const timespec* time, timespec* rest) {
  if (!is_time_virtual) return static_cast<int>(syscall(SYS_nanosleep, time, rest));
  slept_ns += time->tv_sec * 1'000'000'000LL + time->tv_nsec;
  return 0;
}

namespace grus::cuda {
namespace {

using ::testing::HasSubstr;

class AccountDamageTest : public AccountTest {
 protected:
  // Runs `part` where time is virtual. What it returns, or 128 + the signal that killed it.
  int InVirtualTime(const std::function<int(SharedAccount&)>& part) {
    return InChild([&] {
      is_time_virtual = true;
      return part(MustOpen(folder()));
    });
  }
  static void Tick() { virtual_ns += 10'000'000; }
  void Cut(std::uintmax_t bytes) const { std::filesystem::resize_file(account_file(), bytes); }
};

// A line for each check, so that the exit status tells which one failed.
#define CHECK_OR_RETURN(what) \
  if (!(what)) return __LINE__ % 120 + 1

TEST_F(AccountDamageTest, AFileThatIsCutShortIsFoundOutAndAllIsRefused) {
  const std::uintmax_t all = sizeof(Account);
  for (const std::uintmax_t left : {std::uintmax_t{0}, std::uintmax_t{4096}, all / 2, all - 8192}) {
    kit::Must(share_->Make(parts_, std::chrono::nanoseconds(1)));
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(InVirtualTime([&](SharedAccount& account) {
                CHECK_OR_RETURN(account.IsWhole() && account.Reserve(0, 100));
                Cut(left);
                Tick();
                CHECK_OR_RETURN(!account.Reserve(0, 1));
                CHECK_OR_RETURN(!account.IsWhole());
                CHECK_OR_RETURN(account.Used(0) == account.Limit(0));
                account.Settle(0, 100, 200);
                account.GiveBack(0, 200);
                account.ForgetMine();
                Cut(all);  // Zeros: it stays damaged.
                Tick();
                CHECK_OR_RETURN(!account.IsWhole() && !account.Reserve(0, 1));
                return 0;
              }),
              0)
        << left << " bytes left";
    const std::string told = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(
        told,
        HasSubstr("grus: GPU memory is refused: /run/grus/cuda: account was cut short; start the container again\n"));
    EXPECT_EQ(std::ranges::count(told, '\n'), 1);
  }
}

TEST_F(AccountDamageTest, AFileThatWasCutAndGrownAgainIsFoundOut) {
  EXPECT_EQ(InVirtualTime([&](SharedAccount& account) {
              CHECK_OR_RETURN(account.Reserve(0, 100));
              Cut(0);
              Cut(sizeof(Account));
              CHECK_OR_RETURN(!account.Reserve(0, 1) && !account.IsWhole());
              return 0;
            }),
            0);
}

TEST_F(AccountDamageTest, AnAccountThatIsNoneAnyMoreIsFoundOutByTheNextCall) {
  EXPECT_EQ(InVirtualTime([&](SharedAccount& account) {
              CHECK_OR_RETURN(account.Reserve(0, 100));
              raw_->magic = 0;
              CHECK_OR_RETURN(!account.Reserve(0, 1) && !account.IsWhole());
              CHECK_OR_RETURN(pthread_mutex_trylock(&raw_->mutex) == 0);  // Nobody holds it.
              return 0;
            }),
            0);
}

TEST_F(AccountDamageTest, ALockThatIsNeverReleasedIsWaitedForTwoSecondsOnceAndThenShortly) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(InVirtualTime([&](SharedAccount& account) {
              CHECK_OR_RETURN(account.Reserve(0, 500));
              raw_->mutex.__data.__lock = getppid();  // Alive, and does not know.
              CHECK_OR_RETURN(!account.Reserve(0, 1));
              CHECK_OR_RETURN(slept_ns >= 2'000'000'000 && slept_ns < 2'100'000'000);
              slept_ns = 0;
              account.GiveBack(0, 200);
              account.Settle(0, 0, 30);
              CHECK_OR_RETURN(!account.Reserve(0, 1));
              CHECK_OR_RETURN(slept_ns < 40'000'000);
              raw_->mutex.__data.__lock = 0;
              // What could not be written then is written now.
              CHECK_OR_RETURN(account.Reserve(0, 1));
              CHECK_OR_RETURN(raw_->memory[0] == 331 && account.Used(0) == 331);
              return 0;
            }),
            0);
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("does not release the lock"));
  EXPECT_EQ(std::ranges::count(told, '\n'), 1);
}

TEST_F(AccountDamageTest, AProcessThatCouldNotForgetForgetsLater) {
  EXPECT_EQ(InVirtualTime([&](SharedAccount& account) {
              CHECK_OR_RETURN(account.Reserve(0, 500) && account.Reserve(1, 50));
              raw_->mutex.__data.__lock = getppid();
              account.ForgetMine();
              raw_->mutex.__data.__lock = 0;
              CHECK_OR_RETURN(account.Reserve(0, 1000));
              CHECK_OR_RETURN(raw_->memory[0] == 1000 && raw_->memory[1] == 0);
              return 0;
            }),
            0);
}

TEST_F(AccountDamageTest, ALockOfAnotherKindIsNotTouched) {
  // Those that inherit priority can abort a process or stop it for good; zeros are a lock of one process alone.
  for (const int kind : {0, 1, 2, 16, 32, 48, 64, 128, 160, 176, 208, -1, 0x7fffffff}) {
    kit::Must(share_->Make(parts_, std::chrono::nanoseconds(1)));
    EXPECT_EQ(InVirtualTime([&](SharedAccount& account) {
                dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
                munmap(raw_, sizeof(Account));
                raw_ = Map();
                raw_->mutex.__data.__kind = kind;
                raw_->mutex.__data.__lock = static_cast<int>(0xc0000001);
                CHECK_OR_RETURN(!account.Reserve(0, 1) && !account.IsWhole());
                return 0;
              }),
              0)
        << "kind " << kind;
  }
}

TEST_F(AccountDamageTest, ALockThatCannotBeRecoveredIsDamage) {
  EXPECT_EQ(InVirtualTime([&](SharedAccount& account) {
              raw_->mutex.__data.__owner = 0x7fffffff - 1;  // PTHREAD_MUTEX_NOTRECOVERABLE
              CHECK_OR_RETURN(!account.Reserve(0, 1) && !account.IsWhole());
              return 0;
            }),
            0);
}

TEST_F(AccountDamageTest, ASumThatSomebodyWroteIsCountedAgainOnceThereIsNoRoom) {
  SharedAccount& account = MustOpen(folder());
  ASSERT_TRUE(account.Reserve(0, 300));
  raw_->memory[0] = ~std::uint64_t{0};
  EXPECT_TRUE(account.Reserve(0, 700));
  EXPECT_EQ(raw_->memory[0], kLimit);
}

TEST_F(AccountDamageTest, PlacesOfImpossibleProcessesAreFreed) {
  SharedAccount& account = MustOpen(folder());
  SetPlace(0, {-1, 5}, 400);
  SetPlace(1, {0x7fffffff, 5}, 400);
  SetPlace(2, {static_cast<std::int32_t>(0x80000000), 0}, 400);
  raw_->processes[3].memory[0] = 999;  // Of nobody.
  EXPECT_TRUE(account.Reserve(0, kLimit));
  EXPECT_EQ(raw_->memory[0], kLimit);
}

// Random numbers in all of the account or in a part of it, while processes use it.
TEST_F(AccountDamageTest, RandomBytesCostNothingButRefusals) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 40; ++round) {
    kit::Must(share_->Make(parts_, std::chrono::nanoseconds(1)));
    const std::uint64_t round_seed = random();
    ASSERT_EQ(InVirtualTime([&](SharedAccount& account) {
                munmap(raw_, sizeof(Account));
                raw_ = Map();
                std::mt19937_64 bytes(round_seed);
                dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
                for (int i = 0; i < 20; ++i) {
                  const bool is_all = i % 5 == 4;
                  const std::size_t from = is_all ? 0 : bytes() % sizeof(Account);
                  const std::size_t count = is_all ? sizeof(Account) : bytes() % 512;
                  const pthread_mutex_t mutex = raw_->mutex;
                  auto* const memory = reinterpret_cast<unsigned char*>(raw_);
                  for (std::size_t at = from; at < std::min(from + count, sizeof(Account)); ++at) {
                    memory[at] = static_cast<unsigned char>(bytes());
                  }
                  // Most rounds get past the first look.
                  if (round % 4 != 0) raw_->magic = kAccountMagic;
                  if (round % 4 == 1) raw_->mutex.__data.__kind = mutex.__data.__kind;
                  if (round % 4 > 1) raw_->mutex = mutex;
                  account.Reserve(0, bytes() % 2000);
                  account.Used(0);
                  account.Settle(0, bytes() % 1000, bytes() % 1000);
                  account.GiveBack(1, bytes());
                  if (i == 10) account.ForgetMine();
                }
                return 0;
              }),
              0)
        << "round " << round;
  }
}

}  // namespace
}  // namespace grus::cuda
