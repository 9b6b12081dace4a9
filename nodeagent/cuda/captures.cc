// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/captures.h"

#include <atomic>

#include "nodeagent/cuda/driver.h"
#include "nodeagent/cuda/hooks.h"

namespace grus::cuda {
namespace {

// That have begun, and not ended as far as is known: too many cost a call of the driver for each launch, no more.
std::atomic<int> captures;
std::atomic<int> is_driver_known;  // 0: not looked yet; 1: all its functions are in the table; 2: not all may be.

template <typename F>
CUresult Begun(F* real, auto... arguments) {
  if (real == nullptr) return kNotSupported;
  captures.fetch_add(1);  // Before any launch can be captured.
  const CUresult result = real(arguments...);
  if (result != kSuccess) captures.fetch_sub(1);
  return result;
}

template <typename F>
CUresult Ended(F* real, auto... arguments) {
  if (real == nullptr) return kNotSupported;
  const CUresult result = real(arguments...);
  // After any other error the stream may still be captured.
  if (result != kSuccess && result != kCaptureIsInvalid) return result;
  int known = captures.load();
  while (known > 0 && !captures.compare_exchange_weak(known, known - 1)) {
  }
  return result;
}

}  // namespace

bool MayBeCapturing() {
  if (captures.load(std::memory_order_relaxed) != 0) return true;
  int known = is_driver_known.load(std::memory_order_relaxed);
  if (known == 0) {
    int version = 0;
    const bool is_old = driver::DriverGetVersion(&version) == kSuccess && version <= NewestKnownVersion();
    is_driver_known.store(known = is_old ? 1 : 2, std::memory_order_relaxed);
  }
  return known == 2;
}

GRUS_EXPORT CUresult cuStreamBeginCapture(CUstream stream) { return Begun(GRUS_REAL(cuStreamBeginCapture), stream); }
GRUS_EXPORT CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
  return Begun(GRUS_REAL(cuStreamBeginCapture_ptsz), stream);
}
GRUS_EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
  return Begun(GRUS_REAL(cuStreamBeginCapture_v2), stream, mode);
}
GRUS_EXPORT CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode) {
  return Begun(GRUS_REAL(cuStreamBeginCapture_v2_ptsz), stream, mode);
}
GRUS_EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* after,
                                                 const void* edges, std::size_t count, int mode) {
  return Begun(GRUS_REAL(cuStreamBeginCaptureToGraph), stream, graph, after, edges, count, mode);
}
GRUS_EXPORT CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* after,
                                                      const void* edges, std::size_t count, int mode) {
  return Begun(GRUS_REAL(cuStreamBeginCaptureToGraph_ptsz), stream, graph, after, edges, count, mode);
}
GRUS_EXPORT CUresult cuStreamBeginRecaptureToGraph(CUstream stream, int mode, CUgraph graph, void* callback,
                                                   void* data) {
  return Begun(GRUS_REAL(cuStreamBeginRecaptureToGraph), stream, mode, graph, callback, data);
}
GRUS_EXPORT CUresult cuStreamBeginRecaptureToGraph_ptsz(CUstream stream, int mode, CUgraph graph, void* callback,
                                                        void* data) {
  return Begun(GRUS_REAL(cuStreamBeginRecaptureToGraph_ptsz), stream, mode, graph, callback, data);
}
GRUS_EXPORT CUresult cuStreamBeginCaptureToCig(CUstream stream, void* parameters) {
  return Begun(GRUS_REAL(cuStreamBeginCaptureToCig), stream, parameters);
}
GRUS_EXPORT CUresult cuStreamBeginCaptureToCig_ptsz(CUstream stream, void* parameters) {
  return Begun(GRUS_REAL(cuStreamBeginCaptureToCig_ptsz), stream, parameters);
}

GRUS_EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return Ended(GRUS_REAL(cuStreamEndCapture), stream, graph);
}
GRUS_EXPORT CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return Ended(GRUS_REAL(cuStreamEndCapture_ptsz), stream, graph);
}
GRUS_EXPORT CUresult cuStreamEndCaptureToCig(CUstream stream) {
  return Ended(GRUS_REAL(cuStreamEndCaptureToCig), stream);
}
GRUS_EXPORT CUresult cuStreamEndCaptureToCig_ptsz(CUstream stream) {
  return Ended(GRUS_REAL(cuStreamEndCaptureToCig_ptsz), stream);
}

}  // namespace grus::cuda
