// SPDX-License-Identifier: Apache-2.0
// Memory and addresses apart. Memory stays until no handle, no mapping, no exported descriptor and no process that has
// imported it is left; its owner, the process that created it, pays until then, or until it dies itself.
//
// An exported descriptor is the writing end of a pipe. Its inode says which memory it is; that nobody has one any more
// is seen at the reading end, when the owner calls the driver the next time.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>

#include "tests/nodeagent/cuda/fake/families.h"

namespace grus::cuda::fake {

namespace {

constexpr int kDescriptor = 1;
constexpr CUresult kMapFailed = 205;

struct Memory {
  int gpu = -1;  // None: it is the host's.
  std::uint64_t bytes = 0;
  unsigned handles = 1, mappings = 0;
  bool can_be_exported = false, is_imported = false;
  std::uint64_t shared_id = 0;
  int pipe = -1;  // The reading end.
  CUmemGenericAllocationHandle handle = 0;
};

struct Mapping {
  std::uint64_t bytes;
  Memory* memory;
};

struct Vmm {
  std::unordered_map<CUmemGenericAllocationHandle, Memory*> handles;
  std::map<CUdeviceptr, std::uint64_t> reserved;
  std::map<CUdeviceptr, Mapping> mapped;
  std::unordered_set<Memory*> only_exported;  // No handle, no mapping here.
  CUmemGenericAllocationHandle next = 0x6000;
};
Vmm& vmm() {
  static auto* const instance = new Vmm;
  return *instance;
}

SharedMemory* FindShared(Driver& driver, std::uint64_t id) {
  for (SharedMemory& shared : driver.state().shared) {
    if (shared.id == id && id != 0) return &shared;
  }
  return nullptr;
}

bool HasDescriptor(const Memory& memory) {
  if (memory.pipe < 0) return false;
  pollfd ready = {.fd = memory.pipe, .events = 0, .revents = 0};
  return poll(&ready, 1, 0) >= 0 && (ready.revents & POLLHUP) == 0;
}

// The caller holds the world's lock.
void Settle(Driver& driver, SharedMemory& shared) {
  if (shared.is_held) return;
  for (const auto& import : shared.imports) {
    if (import.count > 0) return;
  }
  driver.world()->GiveBack(shared.owner, shared.gpu, shared.bytes);
  shared = {};
}

// Nothing of this process refers to it any more but, perhaps, a descriptor.
void EndIfUnused(Driver& driver, Memory* memory) {
  if (memory->handles > 0 || memory->mappings > 0) return;
  if (memory->shared_id == 0) {
    if (memory->gpu >= 0) driver.GiveBack(memory->gpu, memory->bytes);
  } else {
    if (!memory->is_imported && HasDescriptor(*memory)) {
      vmm().only_exported.insert(memory);
      return;
    }
    const std::scoped_lock held(*driver.world());
    if (SharedMemory* const shared = FindShared(driver, memory->shared_id); shared != nullptr) {
      if (!memory->is_imported) shared->is_held = 0;
      for (auto& import : shared->imports) {
        if (memory->is_imported && import.count > 0 && import.place == driver.place()) {
          --import.count;
          break;
        }
      }
      Settle(driver, *shared);
    }
  }
  if (memory->pipe >= 0) close(memory->pipe);
  delete memory;
}

CUresult Find(CUmemGenericAllocationHandle handle, Memory** memory) {
  const auto found = vmm().handles.find(handle);
  if (found == vmm().handles.end()) return kInvalidValue;
  *memory = found->second;
  return kSuccess;
}

bool IsReserved(CUdeviceptr begin, std::uint64_t bytes) {
  auto after = vmm().reserved.upper_bound(begin);
  if (after == vmm().reserved.begin()) return false;
  const auto& [start, size] = *--after;
  return bytes <= size && begin - start <= size - bytes;
}

bool IsMappedAnywhere(CUdeviceptr begin, std::uint64_t bytes) {
  const auto next = vmm().mapped.lower_bound(begin);
  if (next != vmm().mapped.end() && next->first - begin < bytes) return true;
  return next != vmm().mapped.begin() && begin - std::prev(next)->first < std::prev(next)->second.bytes;
}

// The whole mappings that make up the range, without a gap; none if it is not so.
std::vector<CUdeviceptr> MappingsOf(CUdeviceptr begin, std::uint64_t bytes) {
  std::vector<CUdeviceptr> found;
  CUdeviceptr at = begin;
  while (at - begin < bytes) {
    const auto mapping = vmm().mapped.find(at);
    if (mapping == vmm().mapped.end()) return {};
    found.push_back(at);
    at += mapping->second.bytes;
  }
  return at - begin == bytes ? found : std::vector<CUdeviceptr>{};
}

CUresult NewHandle(Memory* memory, CUmemGenericAllocationHandle* out) {
  memory->handle = vmm().next++;
  vmm().handles[memory->handle] = memory;
  *out = memory->handle;
  return kSuccess;
}

// Makes the pipe at the first export, and says its writing end.
CUresult Export(Driver& driver, Memory* memory, int* descriptor) {
  if (memory->pipe >= 0) {  // Also if all its writing ends are closed.
    *descriptor = open(("/proc/self/fd/" + std::to_string(memory->pipe)).c_str(), O_WRONLY | O_CLOEXEC);
    return *descriptor < 0 ? kUnknown : kSuccess;
  }
  int ends[2];
  struct stat status = {};
  if (pipe2(ends, O_CLOEXEC) != 0 || fstat(ends[0], &status) != 0) return kUnknown;
  const std::scoped_lock held(*driver.world());
  for (SharedMemory& shared : driver.state().shared) {
    if (shared.id != 0) continue;
    shared = {.id = status.st_ino, .bytes = memory->bytes, .gpu = memory->gpu, .owner = driver.place(), .is_held = 1};
    memory->shared_id = shared.id;
    memory->pipe = ends[0];
    *descriptor = ends[1];
    return kSuccess;
  }
  close(ends[0]);
  close(ends[1]);
  return kUnknown;
}

}  // namespace

void DropUnusedExports(Driver& driver) {
  std::vector<Memory*> unused;
  for (Memory* memory : vmm().only_exported) {
    if (!HasDescriptor(*memory)) unused.push_back(memory);
  }
  for (Memory* memory : unused) {
    vmm().only_exported.erase(memory);
    EndIfUnused(driver, memory);
  }
}

extern "C" {

CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp* prop, int) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    if (prop->type != 1) return kInvalidValue;
    *bytes = driver.state().granularity;
    return kSuccess;
  });
}

CUresult cuMemAddressReserve(CUdeviceptr* pointer, std::size_t bytes, std::size_t alignment, CUdeviceptr,
                             unsigned long long flags) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    if (bytes == 0 || bytes % driver.state().granularity != 0 || flags != 0) return kInvalidValue;
    if (alignment > 2 * kMiB) return kNotSupported;
    if (bytes > std::size_t{1} << 47) return kOutOfMemory;
    *pointer = driver.NewAddress(bytes);
    vmm().reserved[*pointer] = bytes;
    return kSuccess;
  });
}
CUresult cuMemAddressFree(CUdeviceptr pointer, std::size_t bytes) {
  return Enter(__func__, [&](Driver&) -> CUresult {
    const auto found = vmm().reserved.find(pointer);
    if (found == vmm().reserved.end() || found->second != bytes || IsMappedAnywhere(pointer, bytes)) {
      return kInvalidValue;
    }
    vmm().reserved.erase(found);
    return kSuccess;
  });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* out, std::size_t bytes, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    const bool is_on_gpu = prop->location.type == kLocationDevice;
    if (prop->type != 1 || flags != 0 || prop->location.type == kLocationInvalid) return kInvalidValue;
    if (bytes == 0 || bytes % driver.state().granularity != 0) return kInvalidValue;
    if (is_on_gpu && !driver.HasGpu(prop->location.id)) return kInvalidDevice;
    if (is_on_gpu && !driver.Charge(prop->location.id, bytes)) return kOutOfMemory;
    auto* const memory = new Memory{.gpu = is_on_gpu ? prop->location.id : -1,
                                    .bytes = bytes,
                                    .can_be_exported = (prop->requested_handle_types & kDescriptor) != 0};
    return NewHandle(memory, out);
  });
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    Memory* memory = nullptr;
    if (const CUresult found = Find(handle, &memory); found != kSuccess) return found;
    if (--memory->handles == 0) vmm().handles.erase(handle);
    EndIfUnused(driver, memory);
    return kSuccess;
  });
}

CUresult cuMemMap(CUdeviceptr pointer, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return Enter(__func__, [&](Driver&) -> CUresult {
    Memory* memory = nullptr;
    if (const CUresult found = Find(handle, &memory); found != kSuccess) return found;
    if (bytes == 0 || offset != 0 || flags != 0 || bytes > memory->bytes) return kInvalidValue;
    if (!IsReserved(pointer, bytes)) return kInvalidValue;
    if (IsMappedAnywhere(pointer, bytes)) return kMapFailed;
    vmm().mapped[pointer] = {bytes, memory};
    ++memory->mappings;
    return kSuccess;
  });
}
CUresult cuMemUnmap(CUdeviceptr pointer, std::size_t bytes) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    const std::vector<CUdeviceptr> mappings = MappingsOf(pointer, bytes);
    if (mappings.empty()) return kInvalidValue;
    for (const CUdeviceptr at : mappings) {
      Memory* const memory = vmm().mapped.at(at).memory;
      vmm().mapped.erase(at);
      --memory->mappings;
      if (memory->handles == 0) EndIfUnused(driver, memory);
    }
    return kSuccess;
  });
}
CUresult cuMemSetAccess(CUdeviceptr pointer, std::size_t bytes, const CUmemAccessDesc*, std::size_t) {
  return Enter(__func__,
               [&](Driver&) -> CUresult { return MappingsOf(pointer, bytes).empty() ? kInvalidValue : kSuccess; });
}
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  return Enter(__func__, [&](Driver&) -> CUresult {
    const auto pointer = reinterpret_cast<CUdeviceptr>(address);
    auto after = vmm().mapped.upper_bound(pointer);
    if (after == vmm().mapped.begin()) return kInvalidValue;
    const auto& [start, mapping] = *--after;
    if (pointer - start >= mapping.bytes) return kInvalidValue;
    ++mapping.memory->handles;
    *out = mapping.memory->handle;
    vmm().handles[*out] = mapping.memory;
    return kSuccess;
  });
}

CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle, int type,
                                      unsigned long long flags) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    Memory* memory = nullptr;
    if (const CUresult found = Find(handle, &memory); found != kSuccess) return found;
    if (type != kDescriptor) return kNotSupported;
    if (!memory->can_be_exported || memory->gpu < 0 || flags != 0) return kInvalidValue;
    return Export(driver, memory, static_cast<int*>(out));
  });
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* descriptor, int type) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    struct stat status = {};
    if (type != kDescriptor) return kNotSupported;
    if (fstat(static_cast<int>(reinterpret_cast<std::intptr_t>(descriptor)), &status) != 0) return kInvalidValue;
    const std::scoped_lock held(*driver.world());
    SharedMemory* const shared = S_ISFIFO(status.st_mode) ? FindShared(driver, status.st_ino) : nullptr;
    if (shared == nullptr) return kInvalidValue;
    for (auto& import : shared->imports) {
      if (import.count > 0 && import.place != driver.place()) continue;
      import.place = driver.place();
      ++import.count;
      return NewHandle(
          new Memory{.gpu = shared->gpu, .bytes = shared->bytes, .is_imported = true, .shared_id = shared->id}, out);
    }
    return kOutOfMemory;  // Too many processes for this fake.
  });
}

}  // extern "C"

}  // namespace grus::cuda::fake
