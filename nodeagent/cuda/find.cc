// SPDX-License-Identifier: Apache-2.0
// How programs find functions of the driver: each way leads to ours.
//
// dlsym() with RTLD_NEXT answers by the address of its caller, so it is jumped to, never called, for whatever is not
// ours: another library that is preloaded finds what comes after itself. The file is compiled with optimisation always,
// which makes the jump.
#include "nodeagent/cuda/find.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "nodeagent/cuda/hooks.h"
#include "nodeagent/cuda/old_glibc.h"

namespace grus::cuda {
namespace {

#if defined(__x86_64__)
constexpr char kFirstGlibc[] = "GLIBC_2.2.5";
#elif defined(__aarch64__)
constexpr char kFirstGlibc[] = "GLIBC_2.17";
#endif

using DlsymFunction = void*(void*, const char*);
std::atomic<DlsymFunction*> real_dlsym;
std::atomic<void*> driver, nvml;  // Handles of our own, so that neither is unloaded.

DlsymFunction* FoundDlsym() {
  DlsymFunction* found = real_dlsym.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = reinterpret_cast<DlsymFunction*>(dlvsym(RTLD_NEXT, "dlsym", kFirstGlibc));
    real_dlsym.store(found, std::memory_order_relaxed);
  }
  return found;
}

bool IsOfNvml(const char* name) { return std::strncmp(name, "nvml", 4) == 0; }
bool MayBeOurs(const char* name) { return (name[0] == 'c' && name[1] == 'u') || IsOfNvml(name); }

// The library that has the function, if it is the driver, or its management library, whatever the program calls it.
bool IsReal(void* function, bool is_of_nvml) {
  Dl_info info;
  if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return false;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  const char* const file = slash != nullptr ? slash + 1 : info.dli_fname;
  const char* const wanted = is_of_nvml ? "libnvidia-ml.so" : "libcuda.so";
  if (std::strncmp(file, wanted, std::strlen(wanted)) != 0) return false;
  std::atomic<void*>& kept = is_of_nvml ? nvml : driver;
  if (kept.load(std::memory_order_relaxed) == nullptr) {
    kept.store(dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD), std::memory_order_relaxed);
  }
  return true;
}

}  // namespace

void* RealDlsym(void* handle, const char* name) {
  DlsymFunction* const found = FoundDlsym();
  return found != nullptr ? found(handle, name) : nullptr;
}

void* RealNamed(const char* name) {
  std::atomic<void*>& kept = IsOfNvml(name) ? nvml : driver;
  void* handle = kept.load(std::memory_order_relaxed);
  if (handle == nullptr) {  // A program that is linked with it.
    handle = dlopen(IsOfNvml(name) ? "libnvidia-ml.so.1" : "libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return nullptr;
    kept.store(handle, std::memory_order_relaxed);
  }
  return RealDlsym(handle, name);
}

// Ours in place of what the driver has handed out for `symbol`, where we have one.
CUresult Handed(CUresult result, const char* symbol, void** function, int version, std::uint64_t flags) {
  if (result != kSuccess || symbol == nullptr || function == nullptr || *function == nullptr) return result;
  void* const ours = HookAsked(symbol, version, (flags & kPerThreadStream) != 0, *function);
  if (ours != nullptr) *function = ours;
  return result;
}

GRUS_EXPORT CUresult cuGetProcAddress(const char* symbol, void** function, int version, std::uint64_t flags) {
  auto* const real = GRUS_REAL(cuGetProcAddress);
  if (real == nullptr) return kNotFound;
  return Handed(real(symbol, function, version, flags), symbol, function, version, flags);
}

GRUS_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, std::uint64_t flags,
                                         CUdriverProcAddressQueryResult* status) {
  auto* const real = GRUS_REAL(cuGetProcAddress_v2);
  if (real == nullptr) return kNotFound;
  return Handed(real(symbol, function, version, flags, status), symbol, function, version, flags);
}

GRUS_EXPORT void* dlsym(void* handle, const char* name) {
  if (name == nullptr || handle == RTLD_NEXT || !MayBeOurs(name)) return FoundDlsym()(handle, name);
  void* const ours = HookNamed(name);
  if (ours == nullptr) return FoundDlsym()(handle, name);
  if (handle == RTLD_DEFAULT) return RealNamed(name) != nullptr ? ours : nullptr;
  void* const found = FoundDlsym()(handle, name);
  if (found == ours) return RealNamed(name) != nullptr ? ours : nullptr;  // Of the program: it loaded us.
  return found != nullptr && IsReal(found, IsOfNvml(name)) ? ours : found;
}

}  // namespace grus::cuda
