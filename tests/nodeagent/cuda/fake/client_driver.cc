// SPDX-License-Identifier: Apache-2.0
#include "tests/nodeagent/cuda/fake/client_driver.h"

#include <dlfcn.h>

#include <map>

namespace grus::cuda::fake {

namespace {

struct Known {
  const char* asked;
  int since;
  std::uint64_t stream;
};

const std::map<std::string, Known>& KnownFunctions() {
  static const std::map<std::string, Known> known = {
#define GRUS_FAKE_CALL(symbol, asked, since, stream, ...) {#symbol, {asked, since, stream}},
#include "tests/nodeagent/cuda/fake/driver_calls.inc"
#undef GRUS_FAKE_CALL
  };
  return known;
}

#ifdef GRUS_LINKED
void* Linked(const std::string& name) {
  static const std::map<std::string, void*> linked = {
#define GRUS_FAKE_CALL(symbol, asked, since, stream, ...) {#symbol, reinterpret_cast<void*>(&symbol)},
#include "tests/nodeagent/cuda/fake/driver_calls.inc"
#undef GRUS_FAKE_CALL
  };
  const auto found = linked.find(name);
  return found == linked.end() ? nullptr : found->second;
}
#else
void* Linked(const std::string&) { return nullptr; }
#endif

struct {
  Way way;
  void* library = nullptr;
  void* find = nullptr;
} opened;

void* Ask(const std::string& symbol) {
  const auto found = KnownFunctions().find(symbol);
  if (found == KnownFunctions().end()) return nullptr;
  const Known& known = found->second;
  const int version = opened.way.version == 0 ? known.since : opened.way.version;
  const std::uint64_t flags = opened.way.is_per_thread ? kPerThreadStream : known.stream;
  void* function = nullptr;
  if (opened.way.name == "find-v1") {
    reinterpret_cast<decltype(cuGetProcAddress)*>(opened.find)(known.asked, &function, version, flags);
  } else {
    CUdriverProcAddressQueryResult answer = kProcNotFound;
    reinterpret_cast<decltype(cuGetProcAddress_v2)*>(opened.find)(known.asked, &function, version, flags, &answer);
  }
  return function;
}

}  // namespace

std::string OpenDriver(const Way& way) {
  opened.way = way;
  if (way.name == "linked") return Linked("cuInit") == nullptr ? "this client is not linked with the driver" : "";
  const bool is_find = way.name.starts_with("find");
  const bool is_default = way.name == "default";
  const std::string library = is_find || is_default ? way.library : way.name;
  const bool is_program = way.name == "program";
  opened.library = dlopen(is_program ? nullptr : library.c_str(), RTLD_NOW | (is_default ? RTLD_GLOBAL : RTLD_LOCAL));
  if (opened.library == nullptr) return dlerror();
  if (!is_find) return "";
  opened.find = dlsym(opened.library, way.name == "find-v1" ? "cuGetProcAddress" : "cuGetProcAddress_v2");
  return opened.find == nullptr ? "the driver has no cuGetProcAddress" : "";
}

void* FindFunction(const std::string& symbol) {
  if (opened.way.name == "linked") return Linked(symbol);
  if (opened.find != nullptr) return Ask(symbol);
  void* const from = opened.way.name == "default" ? RTLD_DEFAULT : opened.library;
  if (opened.way.is_per_thread) {
    if (void* const own = dlsym(from, (symbol + "_ptsz").c_str()); own != nullptr) return own;
  }
  return dlsym(from, symbol.c_str());
}

}  // namespace grus::cuda::fake
