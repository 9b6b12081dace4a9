// SPDX-License-Identifier: Apache-2.0
// Commands about GPUs, contexts and plain memory.
#include <dlfcn.h>

#include "nodeagent/cuda/nvml_memory.h"
#include "tests/nodeagent/cuda/fake/client_commands.h"
#include "tests/nodeagent/cuda/fake/client_driver.h"

namespace grus::cuda::fake {

namespace {

std::string Size(std::size_t bytes) { return std::to_string(bytes); }

}  // namespace

void AddMemoryCommands(Commands& commands) {
  commands["init"] = [](const Words&) { return Answer(Call<decltype(cuInit)>("cuInit", 0U)); };
  commands["version"] = [](const Words&) {
    int version = 0;
    const CUresult result = Call<decltype(cuDriverGetVersion)>("cuDriverGetVersion", &version);
    return Answer(result, std::to_string(version));
  };
  commands["count"] = [](const Words&) {
    int count = 0;
    const CUresult result = Call<decltype(cuDeviceGetCount)>("cuDeviceGetCount", &count);
    return Answer(result, std::to_string(count));
  };
  commands["total"] = [](const Words& words) {  // total [GPU]
    std::size_t bytes = 0;
    const CUresult result =
        Call<decltype(cuDeviceTotalMem_v2)>("cuDeviceTotalMem_v2", &bytes, static_cast<CUdevice>(Number(words, 0)));
    return Answer(result, Size(bytes));
  };
  commands["attribute"] = [](const Words& words) {  // attribute NUMBER [GPU]
    int value = 0;
    const CUresult result = Call<decltype(cuDeviceGetAttribute)>(
        "cuDeviceGetAttribute", &value, static_cast<int>(Number(words, 0)), static_cast<CUdevice>(Number(words, 1)));
    return Answer(result, std::to_string(value));
  };
  commands["info"] = [](const Words&) {  // FREE TOTAL
    std::size_t free = 0, total = 0;
    const CUresult result = Call<decltype(cuMemGetInfo_v2)>("cuMemGetInfo_v2", &free, &total);
    return Answer(result, Size(free) + " " + Size(total));
  };
  commands["uuid"] = [](const Words& words) {  // uuid [GPU] -> as NVML says it
    CUuuid uuid = {};
    const CUresult result =
        Call<decltype(cuDeviceGetUuid)>("cuDeviceGetUuid", &uuid, static_cast<CUdevice>(Number(words, 0)));
    std::string text = "GPU";
    for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
      if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += "-";
      text += Hex(0x100U + uuid.bytes[i]).substr(3);
    }
    return Answer(result, text);
  };
  commands["nvml"] = [](const Words& words) {  // nvml LIBRARY -> TOTAL FREE USED of the first GPU, by each version
    void* const library = dlopen(words.at(0).c_str(), RTLD_NOW);
    const auto call = [&](const char* name, auto... arguments) {
      auto* const function = library == nullptr ? nullptr : dlsym(library, name);
      return function == nullptr ? kNvmlFunctionNotFound
                                 : reinterpret_cast<nvmlReturn (*)(decltype(arguments)...)>(function)(arguments...);
    };
    nvmlDevice gpu = nullptr;
    nvmlMemory first = {};
    nvmlMemory_v2 second = {.version = kNvmlMemory2, .total = 0, .reserved = 0, .free = 0, .used = 0};
    nvmlReturn result = call("nvmlInit");
    if (result == 0) result = call("nvmlDeviceGetHandleByIndex", 0U, &gpu);
    if (result == 0) result = call("nvmlDeviceGetMemoryInfo", gpu, &first);
    if (result == 0) result = call("nvmlDeviceGetMemoryInfo_v2", gpu, &second);
    return Answer(result, Size(first.total) + " " + Size(first.free) + " " + Size(first.used) + " " +
                              Size(second.total) + " " + Size(second.free) + " " + Size(second.used));
  };
  commands["context"] = [](const Words& words) {  // context [GPU]
    CUcontext context = nullptr;
    const CUresult result =
        Call<decltype(cuCtxCreate_v2)>("cuCtxCreate_v2", &context, 0U, static_cast<CUdevice>(Number(words, 0)));
    return AnswerHandle(result, context);
  };
  commands["destroy"] = [](const Words& words) {  // destroy CONTEXT
    return Answer(Call<decltype(cuCtxDestroy_v2)>("cuCtxDestroy_v2", AsHandle<CUcontext>(Number(words, 0))));
  };
  commands["green"] = [](const Words& words) {  // green [GPU]: as a context; makes it current
    CUgreenCtx green = nullptr;
    CUcontext context = nullptr;
    CUresult result = Call<decltype(cuGreenCtxCreate)>("cuGreenCtxCreate", &green, nullptr,
                                                       static_cast<CUdevice>(Number(words, 0)), 1U);
    if (result == kSuccess) result = Call<decltype(cuCtxFromGreenCtx)>("cuCtxFromGreenCtx", &context, green);
    if (result == kSuccess) Call<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent", context);
    return AnswerHandle(result, green);
  };
  commands["endgreen"] = [](const Words& words) {  // endgreen CONTEXT
    return Answer(Call<decltype(cuGreenCtxDestroy)>("cuGreenCtxDestroy", AsHandle<CUgreenCtx>(Number(words, 0))));
  };
  commands["detach"] = [](const Words& words) {  // detach CONTEXT
    return Answer(Call<decltype(cuCtxDetach)>("cuCtxDetach", AsHandle<CUcontext>(Number(words, 0))));
  };
  commands["current"] = [](const Words& words) {  // current CONTEXT
    return Answer(Call<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent", AsHandle<CUcontext>(Number(words, 0))));
  };
  commands["retain"] = [](const Words& words) {  // retain [GPU]; makes it current
    CUcontext context = nullptr;
    const CUresult result = Call<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain", &context,
                                                                     static_cast<CUdevice>(Number(words, 0)));
    if (result == kSuccess) Call<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent", context);
    return AnswerHandle(result, context);
  };
  commands["release"] = [](const Words& words) {  // release [GPU]
    return Answer(Call<decltype(cuDevicePrimaryCtxRelease_v2)>("cuDevicePrimaryCtxRelease_v2",
                                                               static_cast<CUdevice>(Number(words, 0))));
  };
  commands["reset"] = [](const Words& words) {  // reset [GPU]
    return Answer(Call<decltype(cuDevicePrimaryCtxReset_v2)>("cuDevicePrimaryCtxReset_v2",
                                                             static_cast<CUdevice>(Number(words, 0))));
  };
  commands["alloc"] = [](const Words& words) {  // alloc BYTES
    CUdeviceptr pointer = 0;
    const CUresult result = Call<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2", &pointer, Number(words, 0));
    return AnswerHandle(result, pointer);
  };
  commands["alloc1"] = [](const Words& words) {  // alloc1 BYTES: as before CUDA 3.2
    CUdeviceptr_v1 pointer = 0;
    const CUresult result = Call<decltype(cuMemAlloc)>("cuMemAlloc", &pointer, static_cast<unsigned>(Number(words, 0)));
    return AnswerHandle(result, pointer);
  };
  commands["alloc3"] = [](const Words& words) {  // alloc3 BYTES: of a driver that is yet to come
    CUdeviceptr pointer = 0;
    const CUresult result = Call<decltype(cuMemAlloc_v3)>("cuMemAlloc_v3", std::size_t{Number(words, 0)}, &pointer);
    return AnswerHandle(result, pointer);
  };
  commands["managed"] = [](const Words& words) {  // managed BYTES
    CUdeviceptr pointer = 0;
    const CUresult result = Call<decltype(cuMemAllocManaged)>("cuMemAllocManaged", &pointer, Number(words, 0), 1U);
    return AnswerHandle(result, pointer);
  };
  commands["pitchless"] = [](const Words& words) {  // pitchless WIDTH HEIGHT: with nowhere for the pitch
    CUdeviceptr pointer = 0;
    return Answer(Call<decltype(cuMemAllocPitch_v2)>("cuMemAllocPitch_v2", &pointer, nullptr, Number(words, 0),
                                                     Number(words, 1), 4U));
  };
  commands["pitch"] = [](const Words& words) {  // pitch WIDTH HEIGHT [ELEMENT] -> POINTER PITCH
    CUdeviceptr pointer = 0;
    std::size_t pitch = 0;
    const CUresult result =
        Call<decltype(cuMemAllocPitch_v2)>("cuMemAllocPitch_v2", &pointer, &pitch, Number(words, 0), Number(words, 1),
                                           static_cast<unsigned>(Number(words, 2, 4)));
    return Answer(result, Hex(pointer) + " " + Size(pitch));
  };
  commands["free"] = [](const Words& words) {  // free POINTER
    return Answer(Call<decltype(cuMemFree_v2)>("cuMemFree_v2", Number(words, 0)));
  };
  commands["free1"] = [](const Words& words) {  // free1 POINTER
    return Answer(Call<decltype(cuMemFree)>("cuMemFree", static_cast<CUdeviceptr_v1>(Number(words, 0))));
  };
}

}  // namespace grus::cuda::fake
