// SPDX-License-Identifier: Apache-2.0
// Events: the time at which what was in a stream is done.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/nodeagent/cuda/fake/families.h"

namespace grus::cuda::fake {

namespace {

constexpr unsigned kWithoutTime = 2;

struct Event {
  Context* context = nullptr;  // With which it ends.
  bool has_time = true, is_recorded = false;
  int gpu = 0;
  std::uint64_t at = 0;
  Graph* capture = nullptr;  // Recorded in a stream that is being captured into it.
};
std::unordered_set<Event*>& events() {
  static auto* const instance = new std::unordered_set<Event*>;
  return *instance;
}

// Of contexts that have ended; they are kept, so that a stale handle is known. NVIDIA's driver may crash of one, later.
std::unordered_set<Event*>& dead_events() {
  static auto* const instance = new std::unordered_set<Event*>;
  return *instance;
}

CUresult Find(CUevent handle, Event** event) {
  if (dead_events().contains(reinterpret_cast<Event*>(handle))) {
    std::fputs("fake driver: an event was used after the end of its context\n", stderr);
    std::abort();
  }
  *event = reinterpret_cast<Event*>(handle);
  return events().contains(*event) ? kSuccess : kInvalidHandle;
}

CUresult Record(const char* function, CUevent handle, CUstream stream_handle, bool has_own) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    Event* event = nullptr;
    Stream* stream = nullptr;
    if (const CUresult found = Find(handle, &event); found != kSuccess) return found;
    if (const CUresult found = FindStream(driver, stream_handle, has_own, &stream); found != kSuccess) return found;
    event->is_recorded = true;
    event->gpu = stream->context->gpu;
    event->capture = stream->capture;
    event->at = std::max(driver.world()->Now(), EndOf(*stream));
    return kSuccess;
  });
}

// A stream that waits for an event of a capture is captured too.
CUresult Wait(const char* function, CUstream stream_handle, CUevent handle, bool has_own) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    Event* event = nullptr;
    Stream* stream = nullptr;
    if (const CUresult found = Find(handle, &event); found != kSuccess) return found;
    if (const CUresult found = FindStream(driver, stream_handle, has_own, &stream); found != kSuccess) return found;
    if (event->capture != nullptr) {
      stream->capture = event->capture;
    } else if (event->is_recorded && stream->capture == nullptr) {
      stream->end = std::max(stream->end, event->at);
    }
    return kSuccess;
  });
}

CUresult Destroy(const char* function, CUevent handle) {
  return Enter(function, [&](Driver&) -> CUresult {
    Event* event = nullptr;
    if (const CUresult found = Find(handle, &event); found != kSuccess) return found;
    events().erase(event);
    delete event;
    return kSuccess;
  });
}

CUresult Elapsed(const char* function, float* milliseconds, CUevent begin_handle, CUevent end_handle) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    Event *begin = nullptr, *end = nullptr;
    if (const CUresult found = Find(begin_handle, &begin); found != kSuccess) return found;
    if (const CUresult found = Find(end_handle, &end); found != kSuccess) return found;
    for (const Event* event : {begin, end}) {
      if (!event->is_recorded || !event->has_time || event->capture != nullptr) return kInvalidHandle;
    }
    if (std::max(begin->at, end->at) > driver.world()->Now()) return kNotReady;
    *milliseconds = static_cast<float>(static_cast<double>(end->at) / 1e6 - static_cast<double>(begin->at) / 1e6);
    return kSuccess;
  });
}

}  // namespace

void EndEvents(Context* context) {
  std::erase_if(events(), [&](Event* event) {
    if (event->context != context) return false;
    dead_events().insert(event);
    return true;
  });
}

extern "C" {

CUresult cuEventCreate(CUevent* out, unsigned flags) {
  return EnterInContext(__func__, [&](Driver&, Context& context) {
    auto* const event = new Event{.context = &context, .has_time = (flags & kWithoutTime) == 0};
    events().insert(event);
    *out = reinterpret_cast<CUevent>(event);
    return kSuccess;
  });
}
CUresult cuEventRecord(CUevent event, CUstream stream) { return Record(__func__, event, stream, false); }
CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) { return Record(__func__, event, stream, true); }
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned) {
  return Record(__func__, event, stream, false);
}
CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned) {
  return Record(__func__, event, stream, true);
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) { return Wait(__func__, stream, event, false); }
CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned) {
  return Wait(__func__, stream, event, true);
}

// One that was never recorded is done.
CUresult cuEventQuery(CUevent handle) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    Event* event = nullptr;
    if (const CUresult refused = CheckCaptures(); refused != kSuccess) return refused;
    if (const CUresult found = Find(handle, &event); found != kSuccess) return found;
    if (event->capture != nullptr) return kCapturedEvent;
    return event->is_recorded && event->at > driver.world()->Now() ? kNotReady : kSuccess;
  });
}
CUresult cuEventSynchronize(CUevent handle) {
  return EnterAndWait(__func__, [&](Driver& driver, std::uint64_t* until) -> CUresult {
    Event* event = nullptr;
    if (const CUresult refused = CheckCaptures(); refused != kSuccess) return refused;
    if (const CUresult found = Find(handle, &event); found != kSuccess) return found;
    if (event->capture != nullptr) return kCapturedEvent;
    if (event->is_recorded && event->at > driver.world()->Now()) *until = event->at;
    if (event->is_recorded && *until == 0) ShrinkPools(driver, event->gpu, false);
    return kSuccess;
  });
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  return Elapsed(__func__, milliseconds, begin, end);
}
CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent begin, CUevent end) {
  return Elapsed(__func__, milliseconds, begin, end);
}
CUresult cuEventDestroy(CUevent event) { return Destroy(__func__, event); }
CUresult cuEventDestroy_v2(CUevent event) { return Destroy(__func__, event); }

}  // extern "C"

}  // namespace grus::cuda::fake
