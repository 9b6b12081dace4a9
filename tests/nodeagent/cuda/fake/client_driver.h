// SPDX-License-Identifier: Apache-2.0
// How a program gets at the driver's functions: in each of the ways that real ones do.
#pragma once

#include <cstdint>
#include <string>

#include "tests/nodeagent/cuda/fake/driver_calls.h"

namespace grus::cuda::fake {

struct Way {
  // "linked" (if compiled with GRUS_LINKED), "find" (cuGetProcAddress_v2), "find-v1" (cuGetProcAddress), "default"
  // (dlsym(RTLD_DEFAULT, …) after dlopen() for all), "program" (dlopen(NULL), and no driver is opened), else what is
  // given to dlopen().
  std::string name = "libcuda.so.1";
  int version = 0;                       // Asked for by "find"; 0: that of each function.
  bool is_per_thread = false;            // The functions for a stream of each thread, where there are such.
  std::string library = "libcuda.so.1";  // What "find" and "default" open.
};

// Chooses it for the whole process. An error in words, or "".
std::string OpenDriver(const Way& way);

// By its exported name. Null, and the process goes on, if the driver has none.
void* FindFunction(const std::string& symbol);

// The function, called: `Call<decltype(cuMemFree_v2)>("cuMemFree_v2", pointer)`; not found if there is none.
template <typename Function, typename... Arguments>
CUresult Call(const char* symbol, Arguments... arguments) {
  auto* const function = reinterpret_cast<Function*>(FindFunction(symbol));
  return function == nullptr ? kNotFound : function(arguments...);
}

}  // namespace grus::cuda::fake
