// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/marks.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "nodeagent/cuda/busy_time.h"
#include "nodeagent/cuda/driver.h"
#include "nodeagent/cuda/lock.h"
#include "nodeagent/cuda/old_glibc.h"

namespace grus::cuda {
namespace {

constexpr int kMostContexts = 16, kMostMarks = 64;
constexpr std::uint64_t kBaseAge = 10'000'000'000;  // A float of milliseconds is exact to a microsecond so long.

struct Pending {
  MarkEvents events = {};
  GpuTimeLaw* law = nullptr;  // Null: the place is free.
  Mark mark = {};
};

struct OfContext {
  CUcontext context = nullptr;       // Null: the place is free.
  std::uint64_t number = 0;          // As addresses of contexts come again.
  Pending pending[kMostMarks] = {};  // In the order of launches.
  int count = 0;
  MarkEvents spare[kMostMarks] = {};
  int spare_count = 0;
  int made = 0;  // Pairs of events, those that launches have just now included: there is a place for each.
};

// What only those who look need, of the context with the same index.
struct Clock {
  CUevent base = nullptr;
  std::uint64_t base_at = 0;
  GpuClock gpu = {};
};

// Held by one who looks at what is pending, or lets go of it; taken before `mutex`. The driver is asked with it, but
// for nothing that waits for a stream.
pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;
const UnlockedInChild looking_unlocked(looking);
Clock clocks[kMostContexts];    // Of a place that is not taken: guarded by `mutex`.
Pending looked_at[kMostMarks];  // Of the context that is looked at.

// The driver is never asked with it: it may make a thread wait until a full queue has room, which may need the launches
// of another thread.
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // Guards what follows.
const UnlockedInChild unlocked(mutex);
OfContext contexts[kMostContexts];
std::uint64_t last_number = 0;
std::atomic<int> places = 0;  // Those from here on were never taken. For all to read.

OfContext* Find(CUcontext context) {
  for (OfContext& one : contexts) {
    if (one.context == context) return &one;
  }
  return nullptr;
}

OfContext* Find(const MarkEvents& events) {
  OfContext* const found = Find(events.context);
  return found != nullptr && found->number == events.number ? found : nullptr;
}

// With a base event, in a stream that waits for nobody else's: the launch's own. The first pair of it is the caller's
// to make.
bool AddContext(CUcontext context, CUstream stream, std::uint64_t now, MarkEvents& events) {
  CUevent base = nullptr;
  if (driver::EventCreate(&base, 0) != kSuccess) return false;
  if (driver::EventRecord(base, stream) == kSuccess) {
    const Lock lock(mutex);
    OfContext* const added = Find(context) == nullptr ? Find(nullptr) : nullptr;  // Another thread may have come first.
    if (added != nullptr) {
      const auto place = static_cast<int>(added - contexts);
      *added = {};
      added->context = context;
      added->number = ++last_number;
      added->made = 1;
      clocks[place] = {.base = base, .base_at = now};
      if (place >= places) places = place + 1;
      events = {.context = context, .number = added->number};
      return true;
    }
  }
  driver::EventDestroy(base);
  return false;
}

bool TakePair(CUcontext context, CUstream stream, std::uint64_t now, MarkEvents& events) {
  bool is_known = false;
  {
    const Lock lock(mutex);
    OfContext* const of = Find(context);
    is_known = of != nullptr;
    if (is_known && of->spare_count > 0) {
      events = of->spare[--of->spare_count];
      return true;
    }
    if (is_known ? of->made == kMostMarks : Find(nullptr) == nullptr) return false;
    if (is_known) {
      ++of->made;
      events = {.context = context, .number = of->number};
    }
  }
  if (!is_known && !AddContext(context, stream, now, events)) return false;
  if (driver::EventCreate(&events.before, 0) == kSuccess) {
    if (driver::EventCreate(&events.after, 0) == kSuccess) return true;
    driver::EventDestroy(events.before);
  }
  const Lock lock(mutex);
  if (OfContext* const of = Find(events)) --of->made;
  return false;
}

void PutBack(const MarkEvents& events) {
  const Lock lock(mutex);
  if (OfContext* const of = Find(events)) of->spare[of->spare_count++] = events;
}

std::int64_t Nanoseconds(float milliseconds) {
  return static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
}

// The event that was complete last is the base from now on.
void Rebase(Clock& clock, MarkEvents& events, std::uint64_t now) {
  float later = 0;
  if (now - clock.base_at < kBaseAge || driver::EventElapsedTime(&later, clock.base, events.before) != kSuccess) return;
  clock.gpu.Rebase(Nanoseconds(later));
  const CUevent old = clock.base;
  clock.base = events.before;
  events.before = old;
  clock.base_at = now;
}

// False: it is not complete yet.
bool LookAt(Clock& clock, Pending& one, std::uint64_t now) {
  const CUresult state = driver::EventQuery(one.events.after);
  if (state == kNotReady) return false;
  float from = 0, until = 0;
  if (state == kSuccess && driver::EventElapsedTime(&from, clock.base, one.events.before) == kSuccess &&
      driver::EventElapsedTime(&until, clock.base, one.events.after) == kSuccess) {
    clock.gpu.Saw(one.mark.launched, Nanoseconds(from), Nanoseconds(until), now);
    one.law->Completed(now, one.mark, clock.gpu.ToCpu(Nanoseconds(from)), clock.gpu.ToCpu(Nanoseconds(until)));
    Rebase(clock, one.events, now);
  } else {
    one.law->Dropped(one.mark);
  }
  return true;
}

// Other threads may add to what is pending meanwhile. REQUIRES: `looking` is held.
void Look(OfContext& of, Clock& clock, std::uint64_t now) {
  int count = 0;
  {
    const Lock lock(mutex);
    if (of.context == nullptr || of.count == 0) return;
    count = of.count;
    of.count = 0;
    std::copy(of.pending, of.pending + count, looked_at);
  }
  bool is_complete[kMostMarks];
  for (int i = 0; i < count; ++i) is_complete[i] = LookAt(clock, looked_at[i], now);
  const auto left = static_cast<int>(std::count(is_complete, is_complete + count, false));
  const Lock lock(mutex);
  std::copy_backward(of.pending, of.pending + of.count, of.pending + of.count + left);
  of.count += left;
  for (int i = 0, at = 0; i < count; ++i) {
    if (is_complete[i]) of.spare[of.spare_count++] = looked_at[i].events;
    else of.pending[at++] = looked_at[i];
  }
}

// Returns how many pairs it had. REQUIRES: `looking` is held.
int Detach(CUcontext context, CUevent& base, MarkEvents (&pairs)[kMostMarks]) {
  int count = 0;
  const Lock lock(mutex);
  OfContext* const of = Find(context);
  if (context == nullptr || of == nullptr) return 0;
  for (int i = 0; i < of->count; ++i) {
    of->pending[i].law->Dropped(of->pending[i].mark);
    pairs[count++] = of->pending[i].events;
  }
  for (int i = 0; i < of->spare_count; ++i) pairs[count++] = of->spare[i];
  base = clocks[of - contexts].base;
  of->context = nullptr;
  return count;
}

}  // namespace

bool BeginMark(CUstream stream, std::uint64_t now, MarkEvents& events) {
  CUcontext context = nullptr;
  if (driver::CtxGetCurrent(&context) != kSuccess || context == nullptr) return false;
  if (!TakePair(context, stream, now, events)) return false;
  if (driver::EventRecord(events.before, stream) == kSuccess) return true;
  PutBack(events);
  return false;
}

void EndMark(CUstream stream, const MarkEvents& events, GpuTimeLaw& law, const Mark& mark, bool is_launched) {
  if (is_launched && driver::EventRecord(events.after, stream) == kSuccess) {
    const Lock lock(mutex);
    OfContext* const of = Find(events);
    if (of == nullptr) law.Dropped(mark);
    else of->pending[of->count++] = {.events = events, .law = &law, .mark = mark};
    return;
  }
  if (is_launched) law.Dropped(mark);
  PutBack(events);
}

void LookAtMarks(std::uint64_t now) {
  if (pthread_mutex_trylock(&looking) != 0) return;  // Another thread looks.
  for (int i = 0; i < places; ++i) Look(contexts[i], clocks[i], now);
  pthread_mutex_unlock(&looking);
}

void LetGoOfMarks(CUcontext context) {
  const Lock alone(looking);
  MarkEvents pairs[kMostMarks];
  CUevent base = nullptr;
  const int count = Detach(context, base, pairs);
  if (base != nullptr) driver::EventDestroy(base);
  for (int i = 0; i < count; ++i) {
    driver::EventDestroy(pairs[i].before);
    driver::EventDestroy(pairs[i].after);
  }
}

void ForgetMarksOf(CUcontext context) {
  const Lock alone(looking);
  MarkEvents pairs[kMostMarks];
  CUevent base = nullptr;
  Detach(context, base, pairs);
}

}  // namespace grus::cuda
