// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 for tests: it says what a text tells it to, so that tests go through dlopen() and the C ABI.
//
// The text is what a test gave to fakeNvmlPlay(), else the file $GRUS_FAKE_NVML, which is read again when it changes.
// One line for each thing, with fields NAME=VALUE; a number that is not there is "not supported", "error" is the code
// that every call about the GPU returns.
//
//   driver version=580.95.05 init=0 error=0      init: what nvmlInit() returns; error: what everything else returns
//   now us=1000                                  NVML's time; the system's if it is not there
//   gpu uuid=GPU-1 model=H100 util=37 memutil=12 used=1024 total=4096 power=250000 pcierx=10 pcietx=20 nvrx=1 nvtx=2
//   ... pciegen=5 pcielanes=16 mig=1
//   ... error=15 listed=1 basic=999             lost; lost, but still in the list; what the question for memory returns
//   process gpu=0 pid=12 memory=1024 sm=5 mem=3 use=compute      use: compute, graphics or mps
//   xid gpu=0 code=79 id=1                       is reported once for each id
//
// Compiled with GRUS_OLD_NVML it lacks the entry points that came with newer drivers.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "nodeagent/nvml_abi.h"

using namespace grus::nvml;  // NOLINT: this file is the other side of that header.

namespace {

using Fields = std::map<std::string, std::string>;

struct Script {
  Fields driver, now;
  std::vector<Fields> gpus, processes, xids;
};

Script& script() {
  static Script instance;
  return instance;
}
bool is_played = false;  // By fakeNvmlPlay().
bool is_initialised = false;
std::set<std::string> reported;  // Xids.

void Parse(const std::string& text) {
  Script parsed;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    Fields fields;
    for (std::string word; words >> word;) fields[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    if (kind == "driver") parsed.driver = fields;
    if (kind == "now") parsed.now = fields;
    if (kind == "gpu") parsed.gpus.push_back(fields);
    if (kind == "process") parsed.processes.push_back(fields);
    if (kind == "xid") parsed.xids.push_back(fields);
  }
  script() = parsed;
}

void ReadFileIfChanged() {
  static timespec read_at = {};
  static ino_t inode = 0;
  const char* const path = std::getenv("GRUS_FAKE_NVML");
  struct stat status = {};
  if (is_played || path == nullptr || stat(path, &status) != 0) return;
  const bool is_same =
      status.st_ino == inode && status.st_mtim.tv_sec == read_at.tv_sec && status.st_mtim.tv_nsec == read_at.tv_nsec;
  if (is_same) return;
  inode = status.st_ino;
  read_at = status.st_mtim;
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  Parse(text.str());
}

std::uint64_t Number(const Fields& fields, const char* name, std::uint64_t otherwise = 0) {
  const auto found = fields.find(name);
  return found == fields.end() ? otherwise : std::strtoull(found->second.c_str(), nullptr, 10);
}

int State() {
  ReadFileIfChanged();
  if (!is_initialised) return kUninitialized;
  return static_cast<int>(Number(script().driver, "error"));
}

// Handles are the numbers of GPUs, from 1 on.
const Fields& GpuOf(Device device) { return script().gpus[reinterpret_cast<std::size_t>(device) - 1]; }

int StateOf(Device device) {
  const int state = State();
  if (state != kSuccess) return state;
  if (reinterpret_cast<std::size_t>(device) > script().gpus.size()) return kGpuIsLost;
  return static_cast<int>(Number(GpuOf(device), "error"));
}

template <typename Value>
int Get(Device device, const char* name, Value* value) {
  if (const int state = StateOf(device); state != kSuccess) return state;
  if (!GpuOf(device).contains(name)) return kNotSupported;
  *value = static_cast<Value>(Number(GpuOf(device), name));
  return kSuccess;
}

int GetText(const Fields& fields, const char* name, char* text, unsigned size) {
  const auto found = fields.find(name);
  if (found == fields.end()) return kNotSupported;
  if (found->second.size() >= size) return kInsufficientSize;
  std::strcpy(text, found->second.c_str());
  return kSuccess;
}

std::vector<const Fields*> ProcessesOf(Device device, const std::string& use) {
  std::vector<const Fields*> found;
  for (const Fields& process : script().processes) {
    const auto used = process.find("use");
    const std::string its = used == process.end() ? "compute" : used->second;
    if (Number(process, "gpu") + 1 == reinterpret_cast<std::size_t>(device) && (use.empty() || its == use)) {
      found.push_back(&process);
    }
  }
  return found;
}

template <typename Info>
int List(Device device, const char* use, unsigned* count, Info* infos) {
  if (const int state = StateOf(device); state != kSuccess) return state;
  const std::vector<const Fields*> found = ProcessesOf(device, use);
  const unsigned room = *count;
  *count = static_cast<unsigned>(found.size());
  if (room < found.size()) return kInsufficientSize;
  for (std::size_t i = 0; i < found.size(); ++i) {
    infos[i] = {};
    infos[i].pid = static_cast<unsigned>(Number(*found[i], "pid"));
    infos[i].used_memory = Number(*found[i], "memory", kNotAvailable);
    if constexpr (requires { infos[i].gpu_instance; }) {
      infos[i].gpu_instance = static_cast<unsigned>(Number(*found[i], "instance", ~0U));
      infos[i].compute_instance = ~0U;
    }
  }
  return kSuccess;
}

std::uint64_t Now() {
  if (script().now.contains("us")) return Number(script().now, "us");
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

}  // namespace

extern "C" {

void fakeNvmlPlay(const char* text) {
  is_played = true;
  Parse(text);
}

int nvmlInit() {
  ReadFileIfChanged();
  reported.clear();
  const int code = static_cast<int>(Number(script().driver, "init"));
  is_initialised = code == kSuccess;
  return code;
}
int nvmlShutdown() {
  is_initialised = false;
  return kSuccess;
}
int nvmlDeviceGetCount(unsigned* count) {
  if (const int state = State(); state != kSuccess) return state;
  *count = static_cast<unsigned>(script().gpus.size());
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex(unsigned index, Device* device) {
  if (const int state = State(); state != kSuccess) return state;
  *device = reinterpret_cast<Device>(std::size_t{index} + 1);
  const bool has_handle = StateOf(*device) == kSuccess || script().gpus[index].contains("listed");
  return has_handle ? int{kSuccess} : int{kGpuIsLost};
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) { return GetText(script().driver, "version", text, size); }
int nvmlDeviceGetUUID(Device device, char* text, unsigned size) { return GetText(GpuOf(device), "uuid", text, size); }
int nvmlDeviceGetName(Device device, char* text, unsigned size) { return GetText(GpuOf(device), "model", text, size); }
int nvmlDeviceGetUtilizationRates(Device device, Utilization* utilization) {
  if (const int code = Get(device, "util", &utilization->gpu); code != kSuccess) return code;
  return Get(device, "memutil", &utilization->memory);
}
// What the driver keeps for itself ("reserved") is used, too.
int nvmlDeviceGetMemoryInfo(Device device, MemoryV1* memory) {
  if (Get(device, "basic", &memory->used) == kSuccess) return static_cast<int>(memory->used);
  if (const int code = Get(device, "used", &memory->used); code != kSuccess) return code;
  memory->used += Number(GpuOf(device), "reserved");
  return Get(device, "total", &memory->total);
}
int nvmlDeviceGetPowerUsage(Device device, unsigned* milliwatts) { return Get(device, "power", milliwatts); }
int nvmlDeviceGetMaxPcieLinkGeneration(Device device, unsigned* value) { return Get(device, "pciegen", value); }
int nvmlDeviceGetMaxPcieLinkWidth(Device device, unsigned* value) { return Get(device, "pcielanes", value); }
int nvmlDeviceGetMigMode(Device device, unsigned* now, unsigned* pending) {
  *pending = 0;
  return Get(device, "mig", now);
}
int nvmlDeviceGetPcieThroughput(Device device, unsigned counter, unsigned* kilobytes) {
  return Get(device, counter == kPcieReceive ? "pcierx" : "pcietx", kilobytes);
}
int nvmlDeviceGetComputeRunningProcesses(Device device, unsigned* count, ProcessInfoV1* infos) {
  return List(device, "compute", count, infos);
}
int nvmlDeviceGetProcessUtilization(Device device, ProcessUtilization* samples, unsigned* count, std::uint64_t since) {
  if (const int state = StateOf(device); state != kSuccess) return state;
  std::vector<ProcessUtilization> found;
  bool has_any = false;
  for (const Fields* process : ProcessesOf(device, "")) {
    has_any = has_any || process->contains("sm");
    const unsigned sm = static_cast<unsigned>(Number(*process, "sm"));
    if (sm == 0 || Now() <= since) continue;
    found.push_back({.pid = static_cast<unsigned>(Number(*process, "pid")),
                     .timestamp = Now(),
                     .sm = sm,
                     .memory = static_cast<unsigned>(Number(*process, "mem"))});
  }
  if (!has_any) return kNotSupported;
  if (found.empty()) return kNotFound;
  const unsigned room = *count;
  *count = static_cast<unsigned>(found.size());
  if (room < found.size()) return kInsufficientSize;
  std::copy(found.begin(), found.end(), samples);
  return kSuccess;
}

#ifndef GRUS_OLD_NVML
int nvmlInit_v2() { return nvmlInit(); }
int nvmlDeviceGetCount_v2(unsigned* count) { return nvmlDeviceGetCount(count); }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) { return nvmlDeviceGetHandleByIndex(index, device); }
int nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2* memory) {
  if (memory->version != kMemoryV2) return 25;  // Argument version mismatch.
  if (Get(device, "basic", &memory->used) == kSuccess) return static_cast<int>(memory->used);
  if (const int code = Get(device, "used", &memory->used); code != kSuccess) return code;
  return Get(device, "total", &memory->total);
}
// As a library does that is newer than its driver.
int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, ProcessInfo* infos) {
  if (script().driver.contains("no_v3")) return kFunctionNotFound;
  return List(device, "compute", count, infos);
}
int nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned* count, ProcessInfo* infos) {
  return List(device, "compute", count, infos);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned* count, ProcessInfo* infos) {
  return List(device, "graphics", count, infos);
}
int nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device, unsigned* count, ProcessInfo* infos) {
  return List(device, "mps", count, infos);
}
int nvmlDeviceGetFieldValues(Device device, int count, FieldValue* fields) {
  if (const int state = StateOf(device); state != kSuccess) return state;
  for (int i = 0; i < count; ++i) {
    const char* const name = fields[i].field == kNvlinkReceive ? "nvrx" : "nvtx";
    fields[i].code = fields[i].scope == kAllLinks ? Get(device, name, &fields[i].value) : 2;  // Invalid argument.
  }
  return kSuccess;
}
int nvmlEventSetCreate(EventSet* set) {
  *set = reinterpret_cast<EventSet>(&reported);
  return kSuccess;
}
int nvmlEventSetFree(EventSet) { return kSuccess; }
int nvmlDeviceRegisterEvents(Device, std::uint64_t, EventSet) { return kSuccess; }
int nvmlEventSetWait_v2(EventSet, EventData* event, unsigned) {
  if (const int state = State(); state != kSuccess) return state;
  for (const Fields& xid : script().xids) {
    if (!reported.insert(xid.at("id")).second) continue;
    *event = {.device = reinterpret_cast<Device>(static_cast<std::size_t>(Number(xid, "gpu")) + 1),
              .type = kXidEvent,
              .data = Number(xid, "code")};
    return kSuccess;
  }
  return kTimeout;
}
#endif

}  // extern "C"
