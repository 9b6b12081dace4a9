// SPDX-License-Identifier: Apache-2.0
// The part of the ABI of NVIDIA's management library (libnvidia-ml.so.1) that grus calls: our own declarations, so that
// a build needs no CUDA toolkit. Names, numbers and sizes are those of NVML 12.9 and 13.5 on x86-64 and arm64.
#pragma once

#include <cstddef>
#include <cstdint>

namespace grus::nvml {

using Device = struct OpaqueDevice*;
using EventSet = struct OpaqueEventSet*;

enum Code : int {  // nvmlReturn_t; those that grus tells apart.
  kSuccess = 0,
  kUninitialized = 1,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kVersionMismatch = 18,  // The driver was replaced under the library.
  kUnknown = 999,
};

inline constexpr unsigned kTextSize = 96;  // Of the largest buffer: UUID, model.
inline constexpr std::uint64_t kNotAvailable = ~std::uint64_t{0};
inline constexpr std::uint64_t kXidEvent = 8;
inline constexpr unsigned kPcieTransmit = 0, kPcieReceive = 1;
inline constexpr std::uint32_t kNvlinkTransmit = 138, kNvlinkReceive = 139;  // Fields, in KiB.
inline constexpr std::uint32_t kAllLinks = ~std::uint32_t{0};

struct Utilization {
  unsigned gpu = 0, memory = 0;
};

struct MemoryV1 {
  std::uint64_t total = 0, free = 0, used = 0;
};

inline constexpr unsigned kMemoryV2 = 0x2000028;

struct MemoryV2 {
  unsigned version = kMemoryV2;
  std::uint64_t total = 0, reserved = 0, free = 0, used = 0;
};

struct ProcessInfoV1 {
  unsigned pid = 0;
  std::uint64_t used_memory = 0;
};

struct ProcessInfo {  // Of the entry points _v2 and _v3.
  unsigned pid = 0;
  std::uint64_t used_memory = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};

struct ProcessUtilization {
  unsigned pid = 0;
  std::uint64_t timestamp = 0;  // In microseconds.
  unsigned sm = 0, memory = 0, encoder = 0, decoder = 0;
};

struct EventData {
  Device device = nullptr;
  std::uint64_t type = 0, data = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};

struct FieldValue {
  std::uint32_t field = 0, scope = 0;
  std::int64_t timestamp = 0, latency = 0;
  std::uint32_t value_type = 0;
  int code = 0;
  union {
    std::uint64_t value = 0;
    double real;
  };
};

static_assert(sizeof(MemoryV1) == 24 && sizeof(MemoryV2) == 40 && offsetof(MemoryV2, used) == 32);
static_assert(sizeof(ProcessInfoV1) == 16 && sizeof(ProcessInfo) == 24);
static_assert(sizeof(ProcessUtilization) == 32 && offsetof(ProcessUtilization, sm) == 16);
static_assert(sizeof(EventData) == 32 && sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32);

using PlainFunction = int (*)();  // nvmlInit_v2, nvmlShutdown
using TextFunction = int (*)(char*, unsigned);
using CountFunction = int (*)(unsigned*);
using HandleFunction = int (*)(unsigned, Device*);
using DeviceTextFunction = int (*)(Device, char*, unsigned);
using UtilizationFunction = int (*)(Device, Utilization*);
using MemoryV1Function = int (*)(Device, MemoryV1*);
using MemoryV2Function = int (*)(Device, MemoryV2*);
using NumberFunction = int (*)(Device, unsigned*);
using MigModeFunction = int (*)(Device, unsigned*, unsigned*);  // Of now, and after the next reset.
using PcieFunction = int (*)(Device, unsigned, unsigned*);
using FieldsFunction = int (*)(Device, int, FieldValue*);
using ProcessesFunction = int (*)(Device, unsigned*, void*);  // An array of ProcessInfo or ProcessInfoV1.
using ProcessUtilizationFunction = int (*)(Device, ProcessUtilization*, unsigned*, std::uint64_t);
using EventSetCreateFunction = int (*)(EventSet*);
using EventSetFreeFunction = int (*)(EventSet);
using RegisterEventsFunction = int (*)(Device, std::uint64_t, EventSet);
using EventWaitFunction = int (*)(EventSet, EventData*, unsigned);

}  // namespace grus::nvml
