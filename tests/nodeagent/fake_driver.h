// SPDX-License-Identifier: Apache-2.0
// The fake libnvidia-ml.so.1 (fake_nvml.cc), held and driven by a test in the same process.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace grus::testing {

// Beside the test's own binary.
inline std::string FakeNvmlPath(const std::string& folder = "fake-nvml") {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / folder / "libnvidia-ml.so.1";
}

class FakeDriver {
 public:
  explicit FakeDriver(std::string path = FakeNvmlPath())
      : path_(std::move(path)), library_(dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) throw std::runtime_error(dlerror());
    play_ = reinterpret_cast<void (*)(const char*)>(dlsym(library_, "fakeNvmlPlay"));
  }
  ~FakeDriver() { dlclose(library_); }
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  const std::string& path() const { return path_; }
  void Play(const std::string& text) { play_(text.c_str()); }  // See fake_nvml.cc.

 private:
  const std::string path_;
  void* const library_;
  void (*play_)(const char*) = nullptr;
};

}  // namespace grus::testing
