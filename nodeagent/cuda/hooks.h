// SPDX-License-Identifier: Apache-2.0
// The functions of the driver, and of its management library, that this library stands in for, and how each is found.
//
// A program comes to them linked, by dlopen() and dlsym() under any name, or by cuGetProcAddress. In each of these ways
// it gets ours (find.cc), which calls the real one. Thread-safe.
#pragma once

#include <cstdint>

#include "nodeagent/cuda/driver_abi.h"

// Ours are the only symbols of the library that others see.
#define GRUS_EXPORT extern "C" __attribute__((visibility("default")))

namespace grus::cuda {

// The generated table (table/driver_functions.txt), sorted by the name that cuGetProcAddress is asked for.
enum class Call : int {
#define GRUS_HOOK(name, asked, since, is_per_thread, group) name,
#include "nodeagent/cuda/nvml_functions.inc"
#include "nodeagent/cuda/table/hooked_functions.inc"
#undef GRUS_HOOK
  kCount
};

// The driver's own function of that name. Null: it has none, or there is no driver in this process.
void* RealOf(Call call);
// The same with its type; `name` is declared, as ours is defined.
#define GRUS_REAL(name) reinterpret_cast<decltype(&::grus::cuda::name)>(::grus::cuda::RealOf(::grus::cuda::Call::name))

// 13050 for 13.5: the driver of that version has no functions that the table lacks.
int NewestKnownVersion();

// Any other function of the driver that this library uses.
void* RealNamed(const char* name);

// Ours, for an exported name. Null: we stand in for no such function.
void* HookNamed(const char* name);
// Ours, for a name that cuGetProcAddress was asked for, made for `version`; `answer` is its answer, and is called from
// now on if we had none. Null: likewise, or it is newer than all that we know.
void* HookAsked(const char* name, int version, bool is_per_thread, void* answer);

}  // namespace grus::cuda
