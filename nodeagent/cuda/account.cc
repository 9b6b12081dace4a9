// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/account.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <span>

#include "nodeagent/cuda/old_glibc.h"
#include "nodeagent/cuda/wiped_memory.h"

namespace grus::cuda {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr std::int64_t kWaitNs = 2'000'000'000, kWaitNsWhenStuck = 10'000'000;
constexpr int kSpins = 100;

class ErrnoKeeper {
 public:
  ~ErrnoKeeper() { errno = kept_; }

 private:
  const int kept_ = errno;
};

// Of words that other processes write meanwhile.
template <typename Word>
Word Load(const Word& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}
template <typename Word>
void Store(Word& word, Word value) {
  __atomic_store_n(&word, value, __ATOMIC_RELAXED);
}

std::uint64_t Sum(std::uint64_t a, std::uint64_t b) { return a > kMost - b ? kMost : a + b; }
std::uint64_t Difference(std::uint64_t a, std::uint64_t b) { return a < b ? 0 : a - b; }

std::int64_t Signed(std::uint64_t bytes) {
  constexpr std::int64_t kMostSigned = std::numeric_limits<std::int64_t>::max() / 4;  // Two of them can be added.
  return bytes > kMostSigned ? kMostSigned : static_cast<std::int64_t>(bytes);
}

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

std::uint64_t CoarseNow() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// Whether the page of `word` is still there: a system call fails where a program would get SIGBUS. Wakes whoever waits
// for that word, which nobody does.
bool IsThere(const void* word) {
  return syscall(SYS_futex, word, FUTEX_WAKE, 1, nullptr, nullptr, 0) >= 0 || errno != EFAULT;
}

// Null: *why says what is wrong.
void* MapFile(const char* folder, const char* name, std::size_t bytes, bool is_writable, const char** why) {
  char path[512];
  const std::size_t length = std::strlen(folder), name_length = std::strlen(name);
  *why = "the name of the folder is too long";
  if (length + name_length + 2 > sizeof(path)) return nullptr;
  std::memcpy(path, folder, length);
  path[length] = '/';
  std::memcpy(path + length + 1, name, name_length + 1);
  *why = is_writable ? "account cannot be opened for writing" : "limits cannot be opened";
  const int file = open(path, (is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return nullptr;
  void* start = MAP_FAILED;
  const off_t size = lseek(file, 0, SEEK_END);
  *why = is_writable ? "account is too short" : "limits is too short";
  if (size >= 0 && static_cast<std::uint64_t>(size) >= bytes) {
    *why = is_writable ? "account cannot be mapped" : "limits cannot be mapped";
    start = mmap(nullptr, bytes, is_writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
  }
  close(file);
  return start == MAP_FAILED ? nullptr : start;
}

// A mutex that is robust and shared between processes. glibc cannot change layout or value: programs have them compiled
// in. Of another kind it could make this process hang or abort.
bool IsSharedAndRobust(const pthread_mutex_t& mutex) {
  constexpr int kRobust = 16, kShared = 128;
  return Load(mutex.__data.__kind) == (kRobust | kShared);
}

bool IsPlaceOf(const ProcessAccount& place, const ProcessIdentity& process) {
  return Load(place.pid) == process.pid && Load(place.started) == process.started;
}

}  // namespace

void TellRefused(const char* why) {
  char line[200] = "grus: GPU memory is refused: /run/grus/cuda: ";
  const std::size_t start = std::strlen(line), length = std::min(std::strlen(why), sizeof(line) - start - 1);
  std::memcpy(line + start, why, length);
  line[start + length] = '\n';
  // One call, so that lines of several processes do not mix. Who does not hear it cannot be helped.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, start + length + 1);
}

SharedAccount* SharedAccount::Open(const char* folder, const char** why) {
  const ErrnoKeeper keeper;
  *why = nullptr;
  const int there = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (there < 0 && errno == ENOENT) return nullptr;
  if (there >= 0) close(there);

  const auto* const limits = static_cast<const Limits*>(MapFile(folder, kLimitsFile, sizeof(Limits), false, why));
  if (limits == nullptr) return nullptr;
  auto* const account = static_cast<Account*>(MapFile(folder, kAccountFile, sizeof(Account), true, why));
  if (account == nullptr) return nullptr;
  *why = "limits is not a file of grus, or of another version";
  if (limits->magic != kLimitsMagic || limits->version != kVersion || limits->gpu_count > kMostGpus) return nullptr;
  *why = "account is not a file of grus, or of another version";
  if (Load(account->magic) != kAccountMagic || Load(account->version) != kVersion) return nullptr;
  if (!IsSharedAndRobust(account->mutex)) return nullptr;

  *why = "there is no memory";
  void* const mine = MapWipedOnFork(sizeof(Mine));
  void* const self = mmap(nullptr, sizeof(SharedAccount), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mine == nullptr || self == MAP_FAILED) return nullptr;
  auto* const made = new (self) SharedAccount();
  made->limits_ = limits;
  made->account_ = account;
  made->mine_ = static_cast<Mine*>(mine);
  made->gpu_count_ = static_cast<int>(limits->gpu_count);
  *why = nullptr;

  const ProcessIdentity me = made->mine_->identity = ThisProcess();
  made->mine_->is_known.store(true, std::memory_order_release);
  const auto is_mine = [&](const ProcessAccount& place) { return IsPlaceOf(place, me); };
  if (std::ranges::any_of(account->processes, is_mine)) made->ForgetMine();
  return made;
}

int SharedAccount::IndexOf(const unsigned char (&uuid)[16]) const {
  for (int gpu = 0; gpu < gpu_count_; ++gpu) {
    if (std::memcmp(limits_->gpus[gpu].uuid, uuid, sizeof(uuid)) == 0) return gpu;
  }
  return -1;
}

int SharedAccount::PagedOf(int gpu) const {
  const int paged = static_cast<int>(Load(limits_->gpus[gpu].paged)) - 1;
  // No memory would mean no limit.
  return paged > gpu && paged < gpu_count_ && Limit(paged) > 0 ? paged : -1;
}

std::uint64_t SharedAccount::Limit(int gpu) const { return Load(limits_->gpus[gpu].memory); }

std::uint64_t SharedAccount::Used(int gpu) {
  const ErrnoKeeper keeper;
  if (!IsWhole()) return Limit(gpu);
  if (Load(account_->memory[gpu]) != Load(mine_->memory[gpu])) Sweep();
  return Sum(Load(account_->memory[gpu]), limits_->gpus[gpu].beside.load(std::memory_order_relaxed));
}

bool SharedAccount::Reserve(int gpu, std::uint64_t bytes, bool is_last) {
  const ErrnoKeeper keeper;
  for (bool is_swept = false;; is_swept = true) {
    if (!Lock()) return false;
    const bool has_place = TakePlaceLocked();
    const std::uint64_t limit = Limit(gpu), beside = limits_->gpus[gpu].beside.load(std::memory_order_relaxed);
    const std::uint64_t mine = mine_->memory[gpu], sum = Load(account_->memory[gpu]);
    const std::uint64_t wanted = Sum(Sum(sum, beside), bytes);
    const bool has_room = has_place && wanted != kMost && (limit == 0 || wanted <= limit);
    // Without others that have any there is nothing to sweep.
    const bool is_final = is_swept || (has_place && sum == mine);
    if (has_room) SetMineLocked(gpu, mine + bytes);
    else if (is_final && is_last) Store(account_->refused[gpu], Load(account_->refused[gpu]) + 1);
    Unlock();
    if (has_room) return true;
    if (is_final) {
      if (!has_place) Tell(kFull, "1,024 processes of this container have some already; end some");
      return false;
    }
    Sweep();
  }
}

void SharedAccount::Settle(int gpu, std::uint64_t reserved, std::uint64_t taken) {
  if (reserved == taken) return;
  const ErrnoKeeper keeper;
  if (!Lock()) {
    mine_->late[gpu].fetch_add(Signed(taken) - Signed(reserved), std::memory_order_relaxed);
    mine_->has_late.store(true, std::memory_order_release);
    return;
  }
  const std::uint64_t mine = mine_->memory[gpu];
  if (taken > 0 || mine > 0) TakePlaceLocked();
  SetMineLocked(gpu, Sum(Difference(mine, reserved), taken));
  Unlock();
}

void SharedAccount::ForgetMine() {
  const ErrnoKeeper keeper;
  if (!Lock()) {
    for (auto& late : mine_->late) late.store(-Signed(kMost), std::memory_order_relaxed);
    mine_->has_late.store(true, std::memory_order_release);
    return;
  }
  for (std::uint64_t& bytes : mine_->memory) Store(bytes, std::uint64_t{0});
  for (ProcessAccount& place : account_->processes) {
    if (IsPlaceOf(place, mine_->identity)) FreeLocked(place);
  }
  mine_->place = 0;
  Unlock();
}

bool SharedAccount::IsWhole() {
  if (is_damaged_.load(std::memory_order_relaxed)) return false;
  const std::uint64_t now = CoarseNow();
  if (mine_->looked.load(std::memory_order_relaxed) == now) return true;
  mine_->looked.store(now, std::memory_order_relaxed);
  const ErrnoKeeper keeper;
  // A file is cut from its end.
  return IsThere(&account_->processes[kMostProcesses - 1]) ||
         Damaged("account was cut short; start the container again");
}

// Not pthread_mutex_timedlock: its time is of the clock that people set, and a wakeup is lost when the one who is to
// wake others is killed. The lock is held for so short a time that a second try mostly gets it.
bool SharedAccount::Lock() {
  if (!IsWhole()) return false;
  ProcessIdentity me = {};
  if (!mine_->is_known.load(std::memory_order_acquire)) me = ThisProcess();
  const bool was_stuck = mine_->was_stuck.load(std::memory_order_relaxed);
  std::int64_t left = was_stuck ? kWaitNsWhenStuck : kWaitNs, next = 20'000;
  for (int tries = 0;; ++tries) {
    if (!IsSharedAndRobust(account_->mutex))
      return Damaged("the lock in account was overwritten; start the container again");
    const int got = pthread_mutex_trylock(&account_->mutex);
    if (got == 0 || got == EOWNERDEAD) return BeginLocked(me, got == EOWNERDEAD);
    if (got != EBUSY) return Damaged("the lock in account is of no use any more; start the container again");
    if (tries < kSpins) {
      Relax();
      continue;
    }
    if (left <= 0) break;
    const timespec time = {0, next};
    nanosleep(&time, nullptr);
    left -= next;
    next = std::min<std::int64_t>(next * 2, 1'000'000);
  }
  mine_->was_stuck.store(true, std::memory_order_relaxed);
  Tell(kStuck, "another process of this container does not release the lock of account");
  return false;
}

bool SharedAccount::BeginLocked(const ProcessIdentity& me, bool has_owner_died) {
  if (has_owner_died) pthread_mutex_consistent(&account_->mutex);
  if (Load(account_->magic) != kAccountMagic) {
    Unlock();
    return Damaged("account was overwritten; start the container again");
  }
  if (has_owner_died) RecountLocked();
  if (me.pid != 0) {
    mine_->identity = me;
    mine_->is_known.store(true, std::memory_order_release);
  }
  mine_->was_stuck.store(false, std::memory_order_relaxed);
  if (mine_->has_late.exchange(false, std::memory_order_acquire)) AddLateLocked();
  return true;
}

void SharedAccount::AddLateLocked() {
  for (int gpu = 0; gpu < gpu_count_; ++gpu) {
    const std::int64_t late = mine_->late[gpu].exchange(0, std::memory_order_relaxed);
    if (late == 0) continue;
    TakePlaceLocked();
    const std::uint64_t mine = mine_->memory[gpu], bytes = static_cast<std::uint64_t>(late < 0 ? -late : late);
    SetMineLocked(gpu, late < 0 ? Difference(mine, bytes) : Sum(mine, bytes));
  }
}

ProcessAccount* SharedAccount::PlaceLocked() {
  if (mine_->place == 0) return nullptr;
  ProcessAccount& place = account_->processes[mine_->place - 1];
  return IsPlaceOf(place, mine_->identity) ? &place : nullptr;
}

bool SharedAccount::TakePlaceLocked() {
  if (PlaceLocked() != nullptr) return true;
  ProcessAccount* found = nullptr;
  for (ProcessAccount& place : account_->processes) {
    const bool is_mine = IsPlaceOf(place, mine_->identity);
    if (is_mine || (found == nullptr && Load(place.pid) == 0)) found = &place;
    if (is_mine) break;
  }
  if (found == nullptr) return false;
  if (!IsPlaceOf(*found, mine_->identity)) {
    for (std::uint64_t& bytes : found->memory) Store(bytes, std::uint64_t{0});
    Store(found->started, mine_->identity.started);
    __atomic_store_n(&found->pid, mine_->identity.pid, __ATOMIC_RELEASE);
  }
  mine_->place = static_cast<int>(found - account_->processes) + 1;
  for (int gpu = 0; gpu < gpu_count_; ++gpu) SetMineLocked(gpu, mine_->memory[gpu]);
  return true;
}

void SharedAccount::SetMineLocked(int gpu, std::uint64_t bytes) {
  Store(mine_->memory[gpu], bytes);
  ProcessAccount* const place = PlaceLocked();
  if (place == nullptr) return;
  // Whoever is killed in between leaves a sum that the next one counts again.
  const std::uint64_t before = Load(place->memory[gpu]);
  Store(place->memory[gpu], bytes);
  SetSumLocked(gpu, Sum(Difference(Load(account_->memory[gpu]), before), bytes));
}

void SharedAccount::SetSumLocked(int gpu, std::uint64_t bytes) {
  Store(account_->memory[gpu], bytes);
  if (bytes > Load(account_->most_memory[gpu])) Store(account_->most_memory[gpu], bytes);
}

void SharedAccount::FreeLocked(ProcessAccount& place) {
  for (int gpu = 0; gpu < gpu_count_; ++gpu) {
    SetSumLocked(gpu, Difference(Load(account_->memory[gpu]), Load(place.memory[gpu])));
  }
  Store(place.pid, std::int32_t{0});
}

void SharedAccount::RecountLocked() {
  std::uint64_t sums[kMostGpus] = {};
  for (const ProcessAccount& place : account_->processes) {
    if (Load(place.pid) == 0) continue;
    for (int gpu = 0; gpu < gpu_count_; ++gpu) sums[gpu] = Sum(sums[gpu], Load(place.memory[gpu]));
  }
  for (int gpu = 0; gpu < gpu_count_; ++gpu) SetSumLocked(gpu, sums[gpu]);
}

void SharedAccount::Sweep() {
  // To look at a process takes system calls: that is done without the lock, a few at a time.
  constexpr std::size_t kAtOnce = 64;
  struct Dead {
    ProcessAccount* place;
    ProcessIdentity process;
  } dead[kAtOnce];
  for (std::size_t from = 0; from < kMostProcesses; from += kAtOnce) {
    std::size_t count = 0;
    for (ProcessAccount& place : std::span(account_->processes).subspan(from, kAtOnce)) {
      const ProcessIdentity process = {Load(place.pid), Load(place.started)};
      if (process.pid != 0 && !IsAlive(process)) dead[count++] = {&place, process};
    }
    if (count == 0) continue;
    if (!Lock()) return;
    for (const Dead& one : std::span(dead, count)) {
      if (IsPlaceOf(*one.place, one.process)) FreeLocked(*one.place);
    }
    Unlock();
  }
  if (!Lock()) return;
  RecountLocked();  // Whatever was written into the sums ends here.
  Unlock();
}

bool SharedAccount::Damaged(const char* why) {
  is_damaged_.store(true, std::memory_order_relaxed);
  Tell(kDamaged, why);
  return false;
}

void SharedAccount::Tell(Trouble trouble, const char* why) {
  if ((told_.fetch_or(trouble, std::memory_order_relaxed) & trouble) == 0) TellRefused(why);
}

}  // namespace grus::cuda
