// SPDX-License-Identifier: Apache-2.0
// What libgrus-cuda.so costs the programs that load it, in CPU time beside the fake driver's own: a launch, an
// allocation with a free, a start, and the start of a program without CUDA. The same program runs without the library,
// with it and no limit, and with it and limits that it never meets; in turns, and what is said is the median of the
// differences within each turn.
//   cuda_bench [--rounds N] [--starts N]
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "nodeagent/limits/share_folder.h"
#include "tests/nodeagent/cuda/fake/driver_calls.h"
#include "tests/nodeagent/cuda/fake/fake_world.h"

namespace grus::cuda::fake {
namespace {

namespace fs = std::filesystem;

double CpuNs() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// --- in the program that is measured

void* driver_library = nullptr;
template <typename Function>
Function* Find(const char* name) {
  auto* const found = reinterpret_cast<Function*>(dlsym(driver_library, name));
  if (found == nullptr) throw std::runtime_error(std::string("no ") + name);
  return found;
}
void Check(CUresult result) {
  if (result != kSuccess) throw std::runtime_error("the driver says " + std::to_string(result));
}

double TimeLaunches() {
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  Check(Find<decltype(cuModuleLoadData)>("cuModuleLoadData")(&module, ""));
  Check(Find<decltype(cuModuleGetFunction)>("cuModuleGetFunction")(&kernel, module, "ns1"));
  auto* const launch = Find<decltype(cuLaunchKernel)>("cuLaunchKernel");
  const auto times = [&](int count) {
    for (int i = 0; i < count; ++i) Check(launch(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  };
  constexpr int kCount = 200'000;
  times(kCount / 10);  // The library has learned what it costs.
  const double from = CpuNs();
  times(kCount);
  return (CpuNs() - from) / kCount;
}

double TimeAllocations() {
  auto* const allocate = Find<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2");
  auto* const free = Find<decltype(cuMemFree_v2)>("cuMemFree_v2");
  std::vector<CUdeviceptr> live(10'000);
  for (CUdeviceptr& one : live) Check(allocate(&one, 4096));
  std::mt19937 random(1);
  constexpr int kCount = 20'000;
  const double from = CpuNs();
  for (int i = 0; i < kCount; ++i) {
    CUdeviceptr& one = live[random() % live.size()];
    Check(free(one));
    Check(allocate(&one, 4096));
  }
  return (CpuNs() - from) / kCount;
}

void Open() {
  driver_library = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver_library == nullptr) throw std::runtime_error(dlerror());
  CUcontext context = nullptr;
  Check(Find<decltype(cuInit)>("cuInit")(0));
  Check(Find<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0));
  Check(Find<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent")(context));
}

int Measured(const std::string& what) {
  if (what == "nothing") return 0;
  Open();
  if (what == "launch") std::cout << TimeLaunches() << '\n';
  if (what == "allocation") std::cout << TimeAllocations() << '\n';
  return 0;
}

// --- beside it

struct Way {
  std::string name;
  std::vector<std::string> environment;
};

fs::path Own() { return fs::read_symlink("/proc/self/exe"); }

pid_t Start(const Way& way, const std::string& what, int output) {
  const std::string path = Own();
  std::vector<std::string> environment = way.environment;
  environment.push_back("LD_LIBRARY_PATH=" + (Own().parent_path() / "fake-cuda").string());
  std::array<const char*, 4> arguments = {path.c_str(), "--measured", what.c_str(), nullptr};
  std::vector<char*> variables;
  for (std::string& one : environment) variables.push_back(one.data());
  variables.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (output >= 0) dup2(output, STDOUT_FILENO);
    execve(path.c_str(), const_cast<char**>(arguments.data()), variables.data());
    _exit(127);
  }
  return child;
}

void WaitFor(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) < 0 || status != 0) throw std::runtime_error("the measured program failed");
}

double Ask(const Way& way, const std::string& what) {  // ns
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = Start(way, what, pipe_ends[1]);
  close(pipe_ends[1]);
  std::array<char, 64> text = {};
  const ssize_t length = read(pipe_ends[0], text.data(), text.size() - 1);
  close(pipe_ends[0]);
  WaitFor(child);
  return length > 0 ? std::strtod(text.data(), nullptr) : 0;
}

double CpuOfStarts(const Way& way, const std::string& what, int count) {  // ns of each, all at once
  const auto children_ns = [] {
    rusage usage = {};
    getrusage(RUSAGE_CHILDREN, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9 +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3;
  };
  const double from = children_ns();
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) children.push_back(Start(way, what, -1));
  for (const pid_t child : children) WaitFor(child);
  return (children_ns() - from) / count;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void Compare(const std::string& what, const std::vector<Way>& ways, int rounds,
             const std::function<double(const Way&)>& measure) {
  std::vector<std::vector<double>> more(ways.size());
  std::vector<double> alone;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> values;
    for (const Way& way : ways) values.push_back(measure(way));
    alone.push_back(values[0]);
    for (std::size_t i = 1; i < ways.size(); ++i) more[i].push_back(values[i] - values[0]);
  }
  std::printf("%-26s %12.0f", what.c_str(), Median(alone));
  for (std::size_t i = 1; i < ways.size(); ++i) std::printf(" %20.0f", Median(more[i]));
  std::printf("\n");
}

int Run(int rounds, int starts) {
  const fs::path folder = fs::temp_directory_path() / ("grus-cuda-bench-" + std::to_string(getpid()));
  fs::create_directories(folder);
  {
    FakeWorld world((folder / "world").string());
    const ShareFolder share((folder / "share").string());
    const std::vector<ShareLimits> parts = {
        {.gpu = FakeWorld::UuidText(0), .memory_bytes = std::uint64_t{12} << 30, .milli = 500, .rate_milli = 500}};
    if (const kube::Status made = share.Make(parts, std::chrono::nanoseconds(1)); !made) {
      throw std::runtime_error(made.error().message());
    }
    const std::string library = (Own().parent_path() / "cuda" / "libgrus-cuda-anywhere.so").string();
    const std::vector<std::string> preloaded = {world.Environment(), "LD_PRELOAD=" + library};
    Way limited{"with limits", preloaded}, unlimited{"without a limit", preloaded};
    limited.environment.push_back("GRUS_CUDA_FOLDER=" + share.path());
    unlimited.environment.push_back("GRUS_CUDA_FOLDER=" + (folder / "none").string());
    const std::vector<Way> ways = {{"alone", {world.Environment()}}, unlimited, limited};

    std::printf("%-26s %12s %20s %20s\n", "CPU time, ns", "the driver", "more, without limit", "more, with limits");
    Compare("a launch", ways, rounds, [](const Way& way) { return Ask(way, "launch"); });
    Compare("a free and an allocation", ways, rounds, [](const Way& way) { return Ask(way, "allocation"); });
    const auto start = [&](const char* what) {
      return [what, starts](const Way& way) { return CpuOfStarts(way, what, starts); };
    };
    Compare("a start with a context", ways, std::min(rounds, 5), start("start"));
    Compare("a start without CUDA", ways, std::min(rounds, 5), start("nothing"));
  }
  fs::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace grus::cuda::fake

int main(int argc, char** argv) {
  int rounds = 15, starts = 300;
  try {
    for (int i = 1; i + 1 < argc; i += 2) {
      if (std::strcmp(argv[i], "--measured") == 0) return grus::cuda::fake::Measured(argv[i + 1]);
      if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::max(1, std::atoi(argv[i + 1]));
      if (std::strcmp(argv[i], "--starts") == 0) starts = std::max(1, std::atoi(argv[i + 1]));
    }
    return grus::cuda::fake::Run(rounds, starts);
  } catch (const std::exception& error) {
    std::cerr << "cuda_bench: " << error.what() << '\n';
    return 1;
  }
}
