// SPDX-License-Identifier: Apache-2.0
#include "tests/nodeagent/cuda/fake/world_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <sstream>

namespace grus::cuda::fake {

namespace {

std::uint64_t MonotonicNow() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

struct flock LockOf(std::int32_t place) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = place;
  lock.l_len = 1;
  return lock;
}

WorldState* Map(int file) {
  void* const memory = mmap(nullptr, sizeof(WorldState), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<WorldState*>(memory);
}

}  // namespace

std::uint64_t StartOf(std::int32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  return std::stoull(field);
}

std::unique_ptr<WorldFile> WorldFile::Open(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status = {};
  if (file < 0 || fstat(file, &status) != 0) return nullptr;
  WorldState* const state = status.st_size < static_cast<off_t>(sizeof(WorldState)) ? nullptr : Map(file);
  if (state != nullptr && state->magic == kMagic) return std::unique_ptr<WorldFile>(new WorldFile(file, state));
  close(file);
  return nullptr;
}

std::unique_ptr<WorldFile> WorldFile::Make(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0 || ftruncate(file, sizeof(WorldState)) != 0) return nullptr;
  WorldState* const state = Map(file);
  if (state == nullptr) return nullptr;
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&state->mutex, &kind);
  state->magic = kMagic;
  return std::unique_ptr<WorldFile>(new WorldFile(file, state));
}

WorldFile::~WorldFile() {
  munmap(state_, sizeof(WorldState));
  close(file_);
}

void WorldFile::lock() {
  if (pthread_mutex_lock(&state_->mutex) != EOWNERDEAD) return;
  pthread_mutex_consistent(&state_->mutex);
  Repair();
}

void WorldFile::unlock() { pthread_mutex_unlock(&state_->mutex); }

// Whoever died may have been between two writes.
void WorldFile::Repair() {
  for (std::size_t gpu = 0; gpu < kMostGpus; ++gpu) {
    state_->gpus[gpu].used = state_->gpus[gpu].resident = 0;
    for (const FakeProcess& process : state_->processes) {
      state_->gpus[gpu].used += process.used[gpu];
      state_->gpus[gpu].resident += process.resident[gpu];
    }
  }
}

bool WorldFile::IsAlive(std::int32_t place) const {
  // A process does not see its own locks.
  if (state_->processes[place].pid == getpid() && state_->processes[place].started == StartOf(getpid())) return true;
  struct flock lock = LockOf(place);
  return fcntl(file_, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

void WorldFile::Free(std::int32_t place) {
  FakeProcess& process = state_->processes[place];
  for (SharedMemory& shared : state_->shared) {
    if (shared.owner == place) shared = {};
    if (shared.id == 0) continue;
    bool is_imported = false;
    for (auto& import : shared.imports) {
      if (import.place == place) import.count = 0;
      is_imported = is_imported || import.count > 0;
    }
    if (shared.is_held || is_imported) continue;
    GiveBack(shared.owner, shared.gpu, shared.bytes);
    shared = {};
  }
  for (std::size_t gpu = 0; gpu < kMostGpus; ++gpu) {
    FakeGpu& its = state_->gpus[gpu];
    its.used -= process.used[gpu];
    its.resident -= process.resident[gpu];
    // What has not begun is not done any more, unless others have queued behind it: their times are known already.
    for (const std::uint64_t now = Now(); its.intervals > 0; --its.intervals) {
      Interval& last = its.queue[(its.first + its.intervals - 1) % kMostIntervals];
      if (last.place != place || last.end <= now) break;
      if (last.begin < now) last.end = now;
      if (last.begin < now) break;
    }
    for (std::uint32_t i = 0; i < its.intervals; ++i) {
      Interval& interval = its.queue[(its.first + i) % kMostIntervals];
      if (interval.place == place) interval.place = kNobody;
    }
  }
  process = {};
}

void WorldFile::Sweep() {
  for (std::int32_t place = 0; place < static_cast<std::int32_t>(kMostProcesses); ++place) {
    if (state_->processes[place].pid != 0 && !IsAlive(place)) Free(place);
  }
}

std::int32_t WorldFile::TakePlace() {
  Sweep();
  const std::int32_t pid = getpid();
  const std::uint64_t started = StartOf(pid);
  for (std::int32_t place = 0; place < static_cast<std::int32_t>(kMostProcesses); ++place) {
    FakeProcess& process = state_->processes[place];
    // The same process before its exec(), which let go of the lock.
    if (process.pid == pid && process.started == started) Free(place);
    if (process.pid != 0) continue;
    struct flock lock = LockOf(place);
    if (fcntl(file_, F_SETLK, &lock) != 0) continue;
    process.pid = pid;
    process.started = started;
    return place;
  }
  return kNobody;
}

bool WorldFile::Charge(std::int32_t place, int gpu, std::uint64_t bytes) {
  FakeGpu& its = state_->gpus[gpu];
  if (bytes > its.total - its.used - its.resident) Sweep();
  if (bytes > its.total - its.used) return false;
  Evict(gpu, bytes, kNobody);
  its.used += bytes;
  state_->processes[place].used[gpu] += bytes;
  return true;
}

void WorldFile::GiveBack(std::int32_t place, int gpu, std::uint64_t bytes) {
  state_->gpus[gpu].used -= bytes;
  state_->processes[place].used[gpu] -= bytes;
}

void WorldFile::Evict(int gpu, std::uint64_t room, std::int32_t but_place) {
  FakeGpu& its = state_->gpus[gpu];
  for (std::int32_t place = 0; place < static_cast<std::int32_t>(kMostProcesses); ++place) {
    const std::uint64_t free = its.total - its.used - its.resident;
    if (free >= room) return;
    std::uint64_t& resident = state_->processes[place].resident[gpu];
    if (place == but_place || resident == 0) continue;
    const std::uint64_t moved = std::min(resident, room - free);
    resident -= moved;
    its.resident -= moved;
  }
}

void WorldFile::BringBack(std::int32_t place, int gpu) {
  FakeGpu& its = state_->gpus[gpu];
  FakeProcess& process = state_->processes[place];
  const std::uint64_t away = process.managed[gpu] - process.resident[gpu];
  if (away == 0) return;
  Evict(gpu, away, place);
  const std::uint64_t moved = std::min(away, its.total - its.used - its.resident);
  its.resident += moved;
  process.resident[gpu] += moved;
}

void WorldFile::AddManaged(std::int32_t place, int gpu, std::uint64_t bytes) {
  FakeGpu& its = state_->gpus[gpu];
  FakeProcess& process = state_->processes[place];
  if (bytes > its.total - its.used - its.resident) Sweep();
  const std::uint64_t there = std::min(bytes, its.total - its.used - its.resident);
  process.managed[gpu] += bytes;
  its.resident += there;
  process.resident[gpu] += there;
}

void WorldFile::TakeManaged(std::int32_t place, int gpu, std::uint64_t bytes) {
  FakeProcess& process = state_->processes[place];
  process.managed[gpu] -= bytes;
  const std::uint64_t there = std::min(process.resident[gpu], process.managed[gpu]);
  state_->gpus[gpu].resident -= process.resident[gpu] - there;
  process.resident[gpu] = there;
}

std::uint64_t WorldFile::Now() const { return state_->is_virtual ? state_->virtual_now.load() : MonotonicNow(); }

void WorldFile::WaitUntil(std::uint64_t time) {
  if (state_->is_virtual) {
    std::uint64_t now = state_->virtual_now;
    while (now < time && !state_->virtual_now.compare_exchange_weak(now, time)) {
    }
    return;
  }
  const timespec until = {.tv_sec = static_cast<time_t>(time / 1'000'000'000),
                          .tv_nsec = static_cast<long>(time % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

void WorldFile::Retire(FakeGpu& gpu) {
  const std::uint64_t now = Now();
  const std::size_t index = static_cast<std::size_t>(&gpu - state_->gpus);
  for (; gpu.intervals > 0 && gpu.queue[gpu.first].end <= now; --gpu.intervals) {
    const Interval& over = gpu.queue[gpu.first];
    gpu.busy += over.end - over.begin;
    if (over.place != kNobody) state_->processes[over.place].busy[index] += over.end - over.begin;
    gpu.first = (gpu.first + 1) % kMostIntervals;
  }
}

std::uint64_t WorldFile::Queue(std::int32_t place, int gpu, std::uint64_t nanoseconds, std::uint64_t* retry) {
  FakeGpu& its = state_->gpus[gpu];
  BringBack(place, gpu);
  Retire(its);
  Interval* const last = its.intervals == 0 ? nullptr : &its.queue[(its.first + its.intervals - 1) % kMostIntervals];
  if (last != nullptr && last->place == place) return last->end += nanoseconds;
  if (its.intervals == kMostIntervals) {
    *retry = its.queue[its.first].end;
    return 0;
  }
  const std::uint64_t begin = last == nullptr ? Now() : last->end;
  its.queue[(its.first + its.intervals) % kMostIntervals] = {begin, begin + nanoseconds, place, 0};
  ++its.intervals;
  return begin + nanoseconds;
}

std::uint64_t WorldFile::BusyOf(std::int32_t place, int gpu) {
  FakeGpu& its = state_->gpus[gpu];
  Retire(its);
  std::uint64_t busy = state_->processes[place].busy[gpu];
  const std::uint64_t now = Now();
  for (std::uint32_t i = 0; i < its.intervals; ++i) {
    const Interval& interval = its.queue[(its.first + i) % kMostIntervals];
    if (interval.place == place && interval.begin < now) busy += std::min(interval.end, now) - interval.begin;
  }
  return busy;
}

std::uint64_t WorldFile::BusyOfAll(int gpu) {
  FakeGpu& its = state_->gpus[gpu];
  Retire(its);
  const std::uint64_t now = Now();
  if (its.intervals == 0 || its.queue[its.first].begin >= now) return its.busy;
  return its.busy + now - its.queue[its.first].begin;
}

}  // namespace grus::cuda::fake
