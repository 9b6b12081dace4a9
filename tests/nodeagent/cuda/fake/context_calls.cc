// SPDX-License-Identifier: Apache-2.0
// Contexts. Each takes the same memory, however many a process has.
#include "tests/nodeagent/cuda/fake/driver.h"

namespace grus::cuda::fake {

namespace {

CUresult Create(const char* function, CUcontext* out, CUdevice gpu) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    if (!driver.HasGpu(gpu)) return kInvalidDevice;
    auto context = std::make_unique<Context>();
    if (const CUresult made = driver.NewContext(gpu, context.get()); made != kSuccess) return made;
    ContextStack().push_back(context.get());
    *out = reinterpret_cast<CUcontext>(context.release());
    return kSuccess;
  });
}

CUresult Destroy(const char* function, CUcontext handle) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    Context* context = nullptr;
    if (const CUresult found = driver.Check(handle, &context); found != kSuccess) return found;
    if (context->is_primary) return kInvalidContext;
    driver.EndContext(context);
    std::vector<Context*>& stack = ContextStack();
    if (!stack.empty() && stack.back() == context) stack.pop_back();
    return kSuccess;
  });
}

CUresult Push(const char* function, CUcontext handle) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    Context* context = nullptr;
    if (const CUresult found = driver.Check(handle, &context); found != kSuccess) return found;
    ContextStack().push_back(context);
    return kSuccess;
  });
}

CUresult Pop(const char* function, CUcontext* out) {
  return Enter(function, [&](Driver&) -> CUresult {
    std::vector<Context*>& stack = ContextStack();
    if (stack.empty()) return kInvalidContext;
    if (out != nullptr) *out = reinterpret_cast<CUcontext>(stack.back());
    stack.pop_back();
    return kSuccess;
  });
}

// `ends_it` regardless of how many use it.
CUresult LetGoOfPrimary(const char* function, CUdevice gpu, bool ends_it) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    if (!driver.HasGpu(gpu)) return kInvalidDevice;
    Context* const context = driver.primary[static_cast<std::size_t>(gpu)];
    if (!ends_it && context->uses == 0) return kInvalidContext;
    if (!ends_it) --context->uses;
    if (context->is_alive && (ends_it || context->uses == 0)) driver.EndContext(context);
    return kSuccess;
  });
}

}  // namespace

extern "C" {

CUresult cuCtxCreate(CUcontext* out, unsigned, CUdevice gpu) { return Create(__func__, out, gpu); }
CUresult cuCtxCreate_v2(CUcontext* out, unsigned, CUdevice gpu) { return Create(__func__, out, gpu); }
CUresult cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam*, int, unsigned, CUdevice gpu) {
  return Create(__func__, out, gpu);
}
CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams*, unsigned, CUdevice gpu) {
  return Create(__func__, out, gpu);
}
// Each is attached once: that ends it.
CUresult cuCtxDetach(CUcontext context) { return Destroy(__func__, context); }
CUresult cuCtxDestroy(CUcontext context) { return Destroy(__func__, context); }
CUresult cuCtxDestroy_v2(CUcontext context) { return Destroy(__func__, context); }

// A green context is its converted one.
CUresult cuGreenCtxCreate(CUgreenCtx* out, void*, CUdevice gpu, unsigned) {
  CUcontext context = nullptr;
  const CUresult made = Create(__func__, &context, gpu);
  if (made != kSuccess) return made;
  ContextStack().pop_back();
  *out = reinterpret_cast<CUgreenCtx>(context);
  return kSuccess;
}
CUresult cuCtxFromGreenCtx(CUcontext* out, CUgreenCtx green) {
  return Enter(__func__, [&](Driver& driver) {
    Context* context = nullptr;
    *out = reinterpret_cast<CUcontext>(green);
    return driver.Check(*out, &context);
  });
}
CUresult cuGreenCtxDestroy(CUgreenCtx green) { return Destroy(__func__, reinterpret_cast<CUcontext>(green)); }

CUresult cuCtxSetCurrent(CUcontext handle) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    Context* context = nullptr;
    if (handle != nullptr) {
      if (const CUresult found = driver.Check(handle, &context); found != kSuccess) return found;
    }
    std::vector<Context*>& stack = ContextStack();
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
    return kSuccess;
  });
}
CUresult cuCtxGetCurrent(CUcontext* out) {
  return Enter(__func__, [&](Driver&) {
    const std::vector<Context*>& stack = ContextStack();
    *out = stack.empty() ? nullptr : reinterpret_cast<CUcontext>(stack.back());
    return kSuccess;
  });
}
CUresult cuCtxGetDevice(CUdevice* gpu) {
  return EnterInContext(__func__, [&](Driver&, Context& context) {
    *gpu = context.gpu;
    return kSuccess;
  });
}
CUresult cuCtxGetDevice_v2(CUdevice* gpu, CUcontext handle) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    Context* context = nullptr;
    const CUresult found = handle == nullptr ? driver.Current(&context) : driver.Check(handle, &context);
    if (found == kSuccess) *gpu = context->gpu;
    return found;
  });
}
CUresult cuCtxPushCurrent(CUcontext context) { return Push(__func__, context); }
CUresult cuCtxPushCurrent_v2(CUcontext context) { return Push(__func__, context); }
CUresult cuCtxPopCurrent(CUcontext* out) { return Pop(__func__, out); }
CUresult cuCtxPopCurrent_v2(CUcontext* out) { return Pop(__func__, out); }

CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice gpu) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    if (!driver.HasGpu(gpu)) return kInvalidDevice;
    Context* const context = driver.primary[static_cast<std::size_t>(gpu)];
    if (!context->is_alive) {
      if (const CUresult made = driver.NewContext(gpu, context); made != kSuccess) return made;
    }
    ++context->uses;
    *out = reinterpret_cast<CUcontext>(context);
    return kSuccess;
  });
}
CUresult cuDevicePrimaryCtxRelease(CUdevice gpu) { return LetGoOfPrimary(__func__, gpu, false); }
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice gpu) { return LetGoOfPrimary(__func__, gpu, false); }
CUresult cuDevicePrimaryCtxReset(CUdevice gpu) { return LetGoOfPrimary(__func__, gpu, true); }
CUresult cuDevicePrimaryCtxReset_v2(CUdevice gpu) { return LetGoOfPrimary(__func__, gpu, true); }
CUresult cuDevicePrimaryCtxGetState(CUdevice gpu, unsigned* flags, int* active) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    if (!driver.HasGpu(gpu)) return kInvalidDevice;
    *flags = 0;
    *active = driver.primary[static_cast<std::size_t>(gpu)]->is_alive ? 1 : 0;
    return kSuccess;
  });
}

}  // extern "C"

}  // namespace grus::cuda::fake
