// SPDX-License-Identifier: Apache-2.0
// Streams, and waiting for all of a context.
#include <algorithm>
#include <map>
#include <thread>

#include "tests/nodeagent/cuda/fake/graphs.h"

namespace grus::cuda::fake {

namespace {

constexpr unsigned kNonBlocking = 1;
const auto kLegacyHandle = reinterpret_cast<CUstream>(std::uintptr_t{1});
const auto kPerThreadHandle = reinterpret_cast<CUstream>(std::uintptr_t{2});

struct Streams {
  std::unordered_set<Stream*> all;
  std::map<Context*, Stream*> legacy;
  std::map<std::pair<Context*, std::thread::id>, Stream*> of_threads;
};
Streams& streams() {
  static auto* const instance = new Streams;
  return *instance;
}

Stream* NewStream(Context* context) {
  auto* const stream = new Stream{.context = context};
  streams().all.insert(stream);
  return stream;
}

Stream* OwnStream(Context* context) {
  Stream*& own = streams().of_threads[{context, std::this_thread::get_id()}];
  if (own == nullptr) own = NewStream(context);
  return own;
}

Stream* LegacyStream(Context* context) {
  Stream*& legacy = streams().legacy[context];
  if (legacy == nullptr) {
    legacy = NewStream(context);
    legacy->is_legacy = true;
  }
  return legacy;
}

CUresult Create(const char* function, CUstream* out, unsigned flags) {
  return EnterInContext(function, [&](Driver&, Context& context) -> CUresult {
    if (flags > kNonBlocking) return kInvalidValue;
    Stream* const stream = NewStream(&context);
    stream->waits_for_legacy = flags != kNonBlocking;
    *out = reinterpret_cast<CUstream>(stream);
    return kSuccess;
  });
}

// What is in it is still done.
CUresult Destroy(const char* function, CUstream handle) {
  return Enter(function, [&](Driver&) -> CUresult {
    auto* const stream = reinterpret_cast<Stream*>(handle);
    if (streams().all.erase(stream) == 0) return kInvalidHandle;
    delete stream;
    return kSuccess;
  });
}

CUresult Query(const char* function, CUstream handle, bool has_own) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    Stream* stream = nullptr;
    if (const CUresult refused = CheckCaptures(); refused != kSuccess) return refused;
    if (const CUresult found = FindStream(driver, handle, has_own, &stream); found != kSuccess) return found;
    if (stream->capture != nullptr) return kCaptureUnsupported;
    return EndOf(*stream) <= driver.world()->Now() ? kSuccess : kNotReady;
  });
}

CUresult Synchronize(const char* function, CUstream handle, bool has_own) {
  return EnterAndWait(function, [&](Driver& driver, std::uint64_t* until) -> CUresult {
    Stream* stream = nullptr;
    if (const CUresult refused = CheckCaptures(); refused != kSuccess) return refused;
    if (const CUresult found = FindStream(driver, handle, has_own, &stream); found != kSuccess) return found;
    if (stream->capture != nullptr) return kCaptureUnsupported;
    if (EndOf(*stream) > driver.world()->Now()) *until = EndOf(*stream);
    if (*until == 0) ShrinkPools(driver, stream->context->gpu, false);
    return kSuccess;
  });
}

CUresult WaitForContext(const char* function, CUcontext handle) {
  return EnterAndWait(function, [&](Driver& driver, std::uint64_t* until) -> CUresult {
    Context* context = nullptr;
    if (const CUresult refused = CheckCaptures(); refused != kSuccess) return refused;
    const CUresult found = handle == nullptr ? driver.Current(&context) : driver.Check(handle, &context);
    if (found != kSuccess) return found;
    std::uint64_t end = 0;
    for (const Stream* stream : streams().all) {
      if (stream->context == context) end = std::max(end, stream->end);
    }
    if (end > driver.world()->Now()) *until = end;
    if (*until == 0) ShrinkPools(driver, context->gpu, false);
    return kSuccess;
  });
}

CUresult ContextOf(const char* function, CUstream handle, bool has_own, CUcontext* out) {
  return Enter(function, [&](Driver& driver) {
    Stream* stream = nullptr;
    const CUresult found = FindStream(driver, handle, has_own, &stream);
    if (found == kSuccess) *out = reinterpret_cast<CUcontext>(stream->context);
    return found;
  });
}

}  // namespace

CUresult FindStream(Driver& driver, CUstream handle, bool has_own, Stream** stream) {
  if (handle == nullptr || handle == kLegacyHandle || handle == kPerThreadHandle) {
    Context* context = nullptr;
    if (const CUresult found = driver.Current(&context); found != kSuccess) return found;
    const bool is_own = handle == kPerThreadHandle || (handle == nullptr && has_own);
    *stream = is_own ? OwnStream(context) : LegacyStream(context);
    return kSuccess;
  }
  *stream = reinterpret_cast<Stream*>(handle);
  if (!streams().all.contains(*stream)) return kInvalidHandle;
  return (*stream)->context->is_alive ? kSuccess : kContextIsDestroyed;
}

std::uint64_t EndOf(const Stream& stream) {
  std::uint64_t end = stream.end;
  if (!stream.is_legacy) return end;
  for (const Stream* other : streams().all) {
    if (other->context == stream.context && other->waits_for_legacy) end = std::max(end, other->end);
  }
  return end;
}

void EndStreams(Context* context) {
  Streams& its = streams();
  its.legacy.erase(context);
  std::erase_if(its.of_threads, [&](const auto& entry) { return entry.first.first == context; });
  std::erase_if(its.all, [&](Stream* stream) {
    if (stream->context != context) return false;
    delete stream;
    return true;
  });
}

void ForgetCapture(const Graph* graph) {
  for (Stream* stream : streams().all) {
    if (stream->capture == graph) stream->capture = nullptr;
  }
}

int& CaptureModeOfThread() {
  thread_local int mode = kCaptureGlobal;
  return mode;
}

CUresult CheckCaptures() {
  const int mode = CaptureModeOfThread();
  CUresult result = kSuccess;
  for (const Stream* stream : streams().all) {
    Graph* const capture = stream->capture;
    if (capture == nullptr || mode == kCaptureRelaxed) continue;
    const bool is_own = capture->capture_thread == std::this_thread::get_id();
    if (is_own ? capture->capture_mode == kCaptureRelaxed
               : capture->capture_mode != kCaptureGlobal || mode != kCaptureGlobal) {
      continue;
    }
    capture->is_invalid = true;
    result = kCaptureUnsupported;
  }
  return result;
}

extern "C" {

CUresult cuStreamCreate(CUstream* out, unsigned flags) { return Create(__func__, out, flags); }
CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags, int) { return Create(__func__, out, flags); }
CUresult cuStreamDestroy(CUstream stream) { return Destroy(__func__, stream); }
CUresult cuStreamDestroy_v2(CUstream stream) { return Destroy(__func__, stream); }
CUresult cuStreamGetCtx(CUstream stream, CUcontext* out) { return ContextOf(__func__, stream, false, out); }
CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext* out) { return ContextOf(__func__, stream, true, out); }
CUresult cuStreamQuery(CUstream stream) { return Query(__func__, stream, false); }
CUresult cuStreamQuery_ptsz(CUstream stream) { return Query(__func__, stream, true); }
CUresult cuStreamSynchronize(CUstream stream) { return Synchronize(__func__, stream, false); }
CUresult cuStreamSynchronize_ptsz(CUstream stream) { return Synchronize(__func__, stream, true); }
CUresult cuCtxSynchronize() { return WaitForContext(__func__, nullptr); }
CUresult cuCtxSynchronize_v2(CUcontext context) { return WaitForContext(__func__, context); }

}  // extern "C"

}  // namespace grus::cuda::fake
