// SPDX-License-Identifier: Apache-2.0
// Contexts: each takes memory of its own, before its program asks for any, and what was allocated in it goes with it.
//
// How much it takes only the driver's figures show: the agent writes what it has seen into `limits`, and corrects what
// was counted so (GpuLimits.beside).
#include <pthread.h>

#include "nodeagent/cuda/driver.h"
#include "nodeagent/cuda/hooks.h"
#include "nodeagent/cuda/lock.h"
#include "nodeagent/cuda/marks.h"
#include "nodeagent/cuda/pools.h"
#include "nodeagent/cuda/share.h"

namespace grus::cuda {
namespace {

constexpr int kMostDevices = 64;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // Guards what follows, and the calls about primary contexts.
const UnlockedInChild unlocked(mutex);
CUcontext primaries[kMostDevices];  // Those that count.
std::uint64_t uses[kMostDevices];   // Of these, as far as they were seen.

// The agent may change it at any time.
std::uint64_t CostOf(int gpu) { return gpu == kNoGpu ? 0 : TheAccount()->limits(gpu).context; }

template <typename F>
CUresult Create(CUcontext* context, CUdevice device, F&& call) {
  if (!IsLimited()) return call();
  const int gpu = GpuOf(device);
  const std::uint64_t cost = CostOf(gpu);
  const CUresult result = Counted(gpu, cost, call);
  // The context itself is among what goes with it.
  if (result == kSuccess && gpu != kNoGpu) Remember(KeyOf(*context), cost, gpu, LiveKind::kContext, *context);
  return result;
}

// What may end the context. Its memory is set apart before: the next context may get its handle at once.
template <typename F>
CUresult EndingWith(CUcontext context, F&& call) {
  LetGoOfMarks(context);
  const void* const apart = SetApartAllOf(context);
  const CUresult result = call();
  if (result == kSuccess) GiveBackAllOf(apart);
  else ReturnAllOf(apart, context);
  return result;
}

CUresult Destroy(CUresult (*real)(CUcontext), CUcontext context) {
  if (real == nullptr) return kNotSupported;
  if (!IsLimited() || context == nullptr) return real(context);
  return EndingWith(context, [&] { return real(context); });
}

CUresult CreatePlain(CUresult (*real)(CUcontext*, unsigned, CUdevice), CUcontext* context, unsigned flags,
                     CUdevice device) {
  return real == nullptr ? kNotSupported : Create(context, device, [&] { return real(context, flags, device); });
}

bool IsActive(CUdevice device) {
  unsigned flags = 0;
  int is_active = 0;
  return driver::DevicePrimaryCtxGetState(device, &flags, &is_active) == kSuccess && is_active != 0;
}

CUresult End(CUresult (*real)(CUdevice), CUdevice device, bool is_reset) {
  if (real == nullptr) return kNotSupported;
  if (!IsLimited() || device < 0 || device >= kMostDevices) return real(device);
  const Lock lock(mutex);
  CUcontext& primary = primaries[device];
  if (primary == nullptr) return real(device);
  if (is_reset || uses[device] <= 1) LetGoOfMarks(primary);
  const CUresult result = real(device);
  if (result == kSuccess && uses[device] > 0) --uses[device];
  if (result != kSuccess || IsActive(device)) return result;
  ForgetMarksOf(primary);
  GiveBackAllOf(primary);
  primary = nullptr;
  uses[device] = 0;
  ForgetPooledOf(GpuOf(device));
  SettlePools();
  return result;
}

}  // namespace

GRUS_EXPORT CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  return CreatePlain(GRUS_REAL(cuCtxCreate), context, flags, device);
}
GRUS_EXPORT CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return CreatePlain(GRUS_REAL(cuCtxCreate_v2), context, flags, device);
}
GRUS_EXPORT CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* parameters, int count, unsigned flags,
                                    CUdevice device) {
  auto* const real = GRUS_REAL(cuCtxCreate_v3);
  if (real == nullptr) return kNotSupported;
  return Create(context, device, [&] { return real(context, parameters, count, flags, device); });
}
GRUS_EXPORT CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned flags,
                                    CUdevice device) {
  auto* const real = GRUS_REAL(cuCtxCreate_v4);
  if (real == nullptr) return kNotSupported;
  return Create(context, device, [&] { return real(context, parameters, flags, device); });
}
GRUS_EXPORT CUresult cuGLCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  return CreatePlain(GRUS_REAL(cuGLCtxCreate), context, flags, device);
}
GRUS_EXPORT CUresult cuGLCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return CreatePlain(GRUS_REAL(cuGLCtxCreate_v2), context, flags, device);
}
GRUS_EXPORT CUresult cuVDPAUCtxCreate(CUcontext* context, unsigned flags, CUdevice device, unsigned vdpau,
                                      void* get_address) {
  auto* const real = GRUS_REAL(cuVDPAUCtxCreate);
  if (real == nullptr) return kNotSupported;
  return Create(context, device, [&] { return real(context, flags, device, vdpau, get_address); });
}
GRUS_EXPORT CUresult cuVDPAUCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device, unsigned vdpau,
                                         void* get_address) {
  auto* const real = GRUS_REAL(cuVDPAUCtxCreate_v2);
  if (real == nullptr) return kNotSupported;
  return Create(context, device, [&] { return real(context, flags, device, vdpau, get_address); });
}
GRUS_EXPORT CUresult cuCtxDestroy(CUcontext context) { return Destroy(GRUS_REAL(cuCtxDestroy), context); }
GRUS_EXPORT CUresult cuCtxDestroy_v2(CUcontext context) { return Destroy(GRUS_REAL(cuCtxDestroy_v2), context); }

// It may end the context, and does not say so.
GRUS_EXPORT CUresult cuCtxDetach(CUcontext context) {
  auto* const real = GRUS_REAL(cuCtxDetach);
  if (real == nullptr) return kNotSupported;
  LetGoOfMarks(context);
  return real(context);
}
GRUS_EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx green) {
  auto* const real = GRUS_REAL(cuGreenCtxDestroy);
  if (real == nullptr) return kNotSupported;
  CUcontext context = nullptr;
  if (IsLimited() && driver::CtxFromGreenCtx(&context, green) == kSuccess) LetGoOfMarks(context);
  return real(green);
}

GRUS_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  auto* const real = GRUS_REAL(cuDevicePrimaryCtxRetain);
  if (real == nullptr) return kNotSupported;
  if (!IsLimited() || device < 0 || device >= kMostDevices) return real(context, device);
  const Lock lock(mutex);
  const auto call = [&] { return real(context, device); };
  const CUresult result = primaries[device] != nullptr ? call() : Create(context, device, call);
  if (result != kSuccess || GpuOf(device) == kNoGpu) return result;
  primaries[device] = *context;
  ++uses[device];
  return result;
}
GRUS_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return End(GRUS_REAL(cuDevicePrimaryCtxRelease), device, false);
}
GRUS_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return End(GRUS_REAL(cuDevicePrimaryCtxRelease_v2), device, false);
}
GRUS_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return End(GRUS_REAL(cuDevicePrimaryCtxReset), device, true);
}
GRUS_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return End(GRUS_REAL(cuDevicePrimaryCtxReset_v2), device, true);
}

}  // namespace grus::cuda
