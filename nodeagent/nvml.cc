// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "nodeagent/nvml_abi.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Result;

constexpr std::size_t kMostEntries = 65536;  // Of a list of processes; a longer one is not believed.
constexpr int kMostXids = 64;                // That are taken at once; the others wait for the next second.
constexpr unsigned kNoInstance = ~0U;        // The GPU is not divided (MIG).
constexpr unsigned kMostPercent = 100;       // Drivers are known to report wild numbers in entries of ended processes.

Error Failed(ErrorCode code, std::string_view what, int nvml_code) {
  return Error(code, "NVML: " + std::string(what) + " (code " + std::to_string(nvml_code) + ")");
}

// What the codes of several calls about one GPU say together. A code that only says that one number cannot be had is
// none: that number is left out.
class Losses {
 public:
  // True: the call worked.
  bool Note(int code) {
    if (code == nvml::kGpuIsLost) gpu_ = code;
    if (code == nvml::kUninitialized || code == nvml::kDriverNotLoaded || code == nvml::kVersionMismatch)
      driver_ = code;
    return code == nvml::kSuccess;
  }
  // The same for a call that no working driver answers with "unknown error".
  bool NoteBasic(int code) {
    if (code == nvml::kUnknown) driver_ = code;
    return Note(code);
  }
  std::optional<Error> error() const {
    if (driver_ != 0) return Failed(ErrorCode::kUnavailable, "the driver does not answer any more", driver_);
    if (gpu_ != 0) return Failed(ErrorCode::kGone, "the GPU is lost", gpu_);
    return std::nullopt;
  }

 private:
  int gpu_ = 0, driver_ = 0;
};

// Calls `function`, if the library has it.
template <typename Function, typename... Arguments>
int Call(Function function, Arguments... arguments) {
  return function == nullptr ? int{nvml::kFunctionNotFound} : function(arguments...);
}

// Fills `buffer` by `read(data, &count)`, which says how much room it needs.
template <typename Entry, typename Read>
int ReadList(std::vector<Entry>& buffer, const Read& read) {
  buffer.resize(std::max<std::size_t>(buffer.capacity(), 64));
  int code = nvml::kInsufficientSize;
  for (int tries = 0; tries < 4 && code == nvml::kInsufficientSize; ++tries) {
    auto count = static_cast<unsigned>(buffer.size());
    code = read(buffer.data(), &count);
    if (code == nvml::kSuccess) {
      buffer.resize(std::min<std::size_t>(count, buffer.size()));
      return code;
    }
    // The list may have grown until the next try.
    if (code == nvml::kInsufficientSize) buffer.resize(std::min(kMostEntries, std::size_t{count} * 2 + 16));
  }
  buffer.clear();
  return code;
}

}  // namespace

// From nvmlInit() to nvmlShutdown().
class NvmlLibrary::Session {
 public:
  static Result<std::unique_ptr<Session>> Begin(const std::string& file) {
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return Error(ErrorCode::kNotFound, std::string("no NVIDIA driver: ") + dlerror());
    std::unique_ptr<Session> session(new Session(library));
    const int code = Call(session->Find<nvml::PlainFunction>({"nvmlInit_v2", "nvmlInit"}));
    if (code != nvml::kSuccess) return Failed(ErrorCode::kUnavailable, "cannot be initialised", code);
    session->is_initialised_ = true;
    session->FindFunctions();
    return session;
  }

  ~Session() {
    if (events_ != nullptr) Call(Find<nvml::EventSetFreeFunction>({"nvmlEventSetFree"}), events_);
    if (is_initialised_) Call(Find<nvml::PlainFunction>({"nvmlShutdown"}));
    dlclose(library_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Result<std::vector<Gpu>> List() {
    unsigned count = 0;
    const int code = Call(Find<nvml::CountFunction>({"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}), &count);
    if (code != nvml::kSuccess) return Failed(ErrorCode::kUnavailable, "cannot list the GPUs", code);
    const auto handle_of = Find<nvml::HandleFunction>({"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
    const auto uuid_of = Find<nvml::DeviceTextFunction>({"nvmlDeviceGetUUID"});
    const auto model_of = Find<nvml::DeviceTextFunction>({"nvmlDeviceGetName"});
    char text[nvml::kTextSize] = {};
    std::string driver;
    if (Call(Find<nvml::TextFunction>({"nvmlSystemGetDriverVersion"}), text, nvml::kTextSize) == nvml::kSuccess) {
      driver = text;
    }
    std::vector<Gpu> gpus;
    for (unsigned i = 0; i < count; ++i) {
      Device device;
      int found = Call(handle_of, i, &device.handle);
      if (found == nvml::kSuccess) found = Call(uuid_of, device.handle, text, nvml::kTextSize);
      if (found == nvml::kGpuIsLost) ++left_out_;
      if (found != nvml::kSuccess) continue;
      Gpu& gpu = gpus.emplace_back(Gpu{.uuid = text, .index = static_cast<int>(i), .driver_version = driver});
      if (Call(model_of, device.handle, text, nvml::kTextSize) == nvml::kSuccess) gpu.model = text;
      Describe(device.handle, gpu);
      devices_.push_back(device);
    }
    WatchXids();
    return gpus;
  }

  std::size_t left_out() const { return left_out_; }

  Result<GpuSample> Sample(std::size_t gpu) {
    const nvml::Device device = devices_[gpu].handle;
    Losses losses;
    GpuSample sample;
    ReadMemory(device, losses, sample);
    nvml::Utilization utilization;
    if (losses.Note(Call(utilization_, device, &utilization))) {
      sample.utilization_percent = utilization.gpu;
      sample.memory_controller_percent = utilization.memory;
    }
    unsigned milliwatts = 0;
    if (losses.Note(Call(power_, device, &milliwatts))) sample.power_milliwatts = milliwatts;
    ReadNvlink(device, losses, sample);
    if (const std::optional<Error> error = losses.error()) return *error;
    return sample;
  }

  Result<PcieRates> Pcie(std::size_t gpu) {
    const nvml::Device device = devices_[gpu].handle;
    Losses losses;
    const auto read = [&](unsigned counter) -> std::optional<std::uint64_t> {
      unsigned kilobytes = 0;
      if (!losses.Note(Call(pcie_, device, counter, &kilobytes))) return std::nullopt;
      return std::uint64_t{kilobytes} * 1000;
    };
    const PcieRates rates{.receive = read(nvml::kPcieReceive), .transmit = read(nvml::kPcieTransmit)};
    if (const std::optional<Error> error = losses.error()) return *error;
    return rates;
  }

  Result<std::vector<GpuProcess>> Processes(std::size_t gpu) {
    Losses losses;
    listed_.clear();
    for (ProcessList& list : process_lists_) losses.Note(ReadProcesses(list, devices_[gpu].handle));
    std::vector<GpuProcess> processes = MergeListed();
    AddUtilization(devices_[gpu], losses, processes);
    if (const std::optional<Error> error = losses.error()) return *error;
    return processes;
  }

  std::vector<Xid> NewXids() {
    std::vector<Xid> xids;
    nvml::EventData event;
    for (int i = 0; events_ != nullptr && i < kMostXids; ++i) {
      if (Call(event_wait_, events_, &event, 0U) != nvml::kSuccess) break;
      const auto found = std::find_if(devices_.begin(), devices_.end(),
                                      [&](const Device& device) { return device.handle == event.device; });
      if (event.type != nvml::kXidEvent || found == devices_.end()) continue;
      xids.push_back({static_cast<std::size_t>(found - devices_.begin()), event.data});
    }
    return xids;
  }

 private:
  struct Device {
    nvml::Device handle = nullptr;
    bool has_looked = false;      // At the utilisation of its processes.
    std::uint64_t last_seen = 0;  // The newest time stamp of these.
  };
  struct EntryPoint {
    nvml::ProcessesFunction function = nullptr;
    bool is_v1 = false;
  };
  using ProcessList = std::vector<EntryPoint>;  // The same list by several entry points, newest first.

  explicit Session(void* library) : library_(library) {}

  // The first of `names` that the library has; null: none.
  template <typename Function>
  Function Find(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (void* const symbol = dlsym(library_, name)) return reinterpret_cast<Function>(symbol);
    }
    return nullptr;
  }

  void FindFunctions() {
    utilization_ = Find<nvml::UtilizationFunction>({"nvmlDeviceGetUtilizationRates"});
    memory_v1_ = Find<nvml::MemoryV1Function>({"nvmlDeviceGetMemoryInfo"});
    memory_v2_ = Find<nvml::MemoryV2Function>({"nvmlDeviceGetMemoryInfo_v2"});
    power_ = Find<nvml::NumberFunction>({"nvmlDeviceGetPowerUsage"});
    pcie_ = Find<nvml::PcieFunction>({"nvmlDeviceGetPcieThroughput"});
    fields_ = Find<nvml::FieldsFunction>({"nvmlDeviceGetFieldValues"});
    process_utilization_ = Find<nvml::ProcessUtilizationFunction>({"nvmlDeviceGetProcessUtilization"});
    event_wait_ = Find<nvml::EventWaitFunction>({"nvmlEventSetWait_v2", "nvmlEventSetWait"});
    // A process is in the list of what it uses the GPU for; one that draws as well is in two.
    for (const char* use : {"Compute", "Graphics", "MPSCompute"}) {
      const std::string name = std::string("nvmlDeviceGet") + use + "RunningProcesses";
      ProcessList& list = process_lists_.emplace_back();
      for (const char* version : {"_v3", "_v2", ""}) {
        const auto function = Find<nvml::ProcessesFunction>({(name + version).c_str()});
        if (function != nullptr) list.push_back({function, *version == '\0'});
      }
    }
  }

  void Describe(nvml::Device device, Gpu& gpu) const {
    unsigned generation = 0, lanes = 0, mig = 0, pending = 0;
    const auto generation_of = Find<nvml::NumberFunction>({"nvmlDeviceGetMaxPcieLinkGeneration"});
    if (Call(generation_of, device, &generation) == nvml::kSuccess) gpu.pcie_generation = generation;
    const auto lanes_of = Find<nvml::NumberFunction>({"nvmlDeviceGetMaxPcieLinkWidth"});
    if (Call(lanes_of, device, &lanes) == nvml::kSuccess) gpu.pcie_lanes = lanes;
    const auto mig_of = Find<nvml::MigModeFunction>({"nvmlDeviceGetMigMode"});
    gpu.is_divided = Call(mig_of, device, &mig, &pending) == nvml::kSuccess && mig != 0;
  }

  void WatchXids() {
    const auto watch = Find<nvml::RegisterEventsFunction>({"nvmlDeviceRegisterEvents"});
    if (Call(Find<nvml::EventSetCreateFunction>({"nvmlEventSetCreate"}), &events_) != nvml::kSuccess) events_ = nullptr;
    if (events_ == nullptr) return;
    for (const Device& device : devices_) Call(watch, device.handle, nvml::kXidEvent, events_);
  }

  // The newer call does not count what the driver keeps for itself as used.
  void ReadMemory(nvml::Device device, Losses& losses, GpuSample& sample) const {
    nvml::MemoryV2 memory;
    if (losses.NoteBasic(Call(memory_v2_, device, &memory))) {
      sample.memory_used_bytes = memory.used;
      sample.memory_total_bytes = memory.total;
      return;
    }
    nvml::MemoryV1 older;
    if (!losses.NoteBasic(Call(memory_v1_, device, &older))) return;
    sample.memory_used_bytes = older.used;
    sample.memory_total_bytes = older.total;
  }

  void ReadNvlink(nvml::Device device, Losses& losses, GpuSample& sample) const {
    nvml::FieldValue fields[2];
    fields[0].field = nvml::kNvlinkReceive;
    fields[1].field = nvml::kNvlinkTransmit;
    for (nvml::FieldValue& field : fields) field.scope = nvml::kAllLinks;
    if (!losses.Note(Call(fields_, device, 2, fields))) return;
    const auto bytes_of = [](const nvml::FieldValue& field) -> std::optional<std::uint64_t> {
      if (field.code != nvml::kSuccess || field.value == nvml::kNotAvailable) return std::nullopt;
      return field.value * 1024;
    };
    sample.nvlink_received_bytes = bytes_of(fields[0]);
    sample.nvlink_transmitted_bytes = bytes_of(fields[1]);
  }

  // Adds one list to `listed_`.
  int ReadProcesses(ProcessList& list, nvml::Device device) {
    while (!list.empty()) {
      const EntryPoint entry = list.front();
      const int code = entry.is_v1 ? ReadEntries(entry.function, device, entries_v1_)
                                   : ReadEntries(entry.function, device, entries_);
      if (code != nvml::kFunctionNotFound) return code;
      list.erase(list.begin());  // The library has it, but this driver does not.
    }
    return nvml::kFunctionNotFound;
  }

  template <typename Entry>
  int ReadEntries(nvml::ProcessesFunction function, nvml::Device device, std::vector<Entry>& entries) {
    const int code =
        ReadList(entries, [&](Entry* data, unsigned* count) { return Call(function, device, count, data); });
    for (const Entry& entry : entries) {
      nvml::ProcessInfo info{.pid = entry.pid,
                             .used_memory = entry.used_memory,
                             .gpu_instance = kNoInstance,
                             .compute_instance = kNoInstance};
      if constexpr (std::is_same_v<Entry, nvml::ProcessInfo>) info = entry;
      listed_.push_back(info);
    }
    return code;
  }

  // One entry each PID. On a divided GPU a process may use several instances; in several lists it is the same.
  std::vector<GpuProcess> MergeListed() {
    const auto place = [](const nvml::ProcessInfo& info) {
      return std::tuple(info.pid, info.gpu_instance, info.compute_instance);
    };
    std::sort(listed_.begin(), listed_.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
    std::vector<GpuProcess> processes;
    for (std::size_t i = 0; i < listed_.size();) {
      std::optional<std::uint64_t> bytes;
      const std::size_t first = i;
      for (; i < listed_.size() && place(listed_[i]) == place(listed_[first]); ++i) {
        const std::uint64_t used = listed_[i].used_memory;
        if (used != nvml::kNotAvailable) bytes = std::max(used, bytes.value_or(0));
      }
      const int pid = static_cast<int>(listed_[first].pid);
      if (processes.empty() || processes.back().pid != pid) processes.push_back({.pid = pid});
      std::optional<std::uint64_t>& sum = processes.back().memory_bytes;
      if (bytes) sum = sum.value_or(0) + *bytes;
    }
    return processes;
  }

  // The driver lists only processes that ran a kernel since `last_seen`, and finds none on an idle GPU.
  void AddUtilization(Device& device, Losses& losses, std::vector<GpuProcess>& processes) {
    const int code = ReadList(utilizations_, [&](nvml::ProcessUtilization* data, unsigned* count) {
      return Call(process_utilization_, device.handle, data, count, device.last_seen);
    });
    if (!losses.Note(code) && code != nvml::kNotFound) return;
    const std::uint64_t last_seen = device.last_seen;
    for (const nvml::ProcessUtilization& one : utilizations_) {
      device.last_seen = std::max(device.last_seen, one.timestamp);
    }
    // The first answer goes back to before the agent began.
    if (!std::exchange(device.has_looked, true)) return;
    for (GpuProcess& process : processes) {
      unsigned sm = 0, memory = 0, count = 0;
      for (const nvml::ProcessUtilization& one : utilizations_) {
        if (static_cast<int>(one.pid) != process.pid || one.timestamp <= last_seen) continue;
        if (one.sm > kMostPercent || one.memory > kMostPercent) continue;
        sm += one.sm;
        memory += one.memory;
        ++count;
      }
      process.sm_percent = count == 0 ? 0 : sm / count;
      process.memory_controller_percent = count == 0 ? 0 : memory / count;
    }
  }

  void* const library_;
  bool is_initialised_ = false;
  nvml::EventSet events_ = nullptr;  // Null: this driver has none.
  std::vector<Device> devices_;
  std::size_t left_out_ = 0;
  std::vector<ProcessList> process_lists_;

  nvml::UtilizationFunction utilization_ = nullptr;
  nvml::MemoryV1Function memory_v1_ = nullptr;
  nvml::MemoryV2Function memory_v2_ = nullptr;
  nvml::NumberFunction power_ = nullptr;
  nvml::PcieFunction pcie_ = nullptr;
  nvml::FieldsFunction fields_ = nullptr;
  nvml::ProcessUtilizationFunction process_utilization_ = nullptr;
  nvml::EventWaitFunction event_wait_ = nullptr;

  // Kept to be filled again.
  std::vector<nvml::ProcessInfo> entries_, listed_;
  std::vector<nvml::ProcessInfoV1> entries_v1_;
  std::vector<nvml::ProcessUtilization> utilizations_;
};

NvmlLibrary::NvmlLibrary(std::string file) : file_(std::move(file)) {}
NvmlLibrary::~NvmlLibrary() = default;

Result<std::vector<Gpu>> NvmlLibrary::Open() {
  session_.reset();  // A library that was replaced on disk is loaded anew.
  Result<std::unique_ptr<Session>> begun = Session::Begin(file_);
  if (!begun) return std::move(begun).error();
  session_ = *std::move(begun);
  Result<std::vector<Gpu>> gpus = session_->List();
  if (!gpus) session_.reset();
  return gpus;
}

std::size_t NvmlLibrary::left_out() const { return session_->left_out(); }
Result<GpuSample> NvmlLibrary::Sample(std::size_t gpu) { return session_->Sample(gpu); }
Result<PcieRates> NvmlLibrary::Pcie(std::size_t gpu) { return session_->Pcie(gpu); }
Result<std::vector<GpuProcess>> NvmlLibrary::Processes(std::size_t gpu) { return session_->Processes(gpu); }
std::vector<Xid> NvmlLibrary::NewXids() { return session_->NewXids(); }

}  // namespace grus
