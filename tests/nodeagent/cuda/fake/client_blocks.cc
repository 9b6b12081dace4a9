// SPDX-License-Identifier: Apache-2.0
// Commands about memory that is not plain: pools, memory and addresses apart, arrays, that of other processes.
#include <fcntl.h>
#include <unistd.h>

#include "tests/nodeagent/cuda/fake/client_commands.h"
#include "tests/nodeagent/cuda/fake/client_driver.h"

namespace grus::cuda::fake {

namespace {

CUmemAllocationProp Prop(std::uint64_t gpu, int location) {
  CUmemAllocationProp prop = {};
  prop.type = 1;
  prop.requested_handle_types = 1;
  prop.location = {location, static_cast<int>(gpu)};
  return prop;
}

void AddVmm(Commands& commands) {
  commands["create"] = [](const Words& words) {  // create BYTES [GPU] [LOCATION]: 1 is a GPU, 2 the host
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp prop = Prop(Number(words, 1), static_cast<int>(Number(words, 2, kLocationDevice)));
    const CUresult result = Call<decltype(cuMemCreate)>("cuMemCreate", &handle, Number(words, 0), &prop, 0ULL);
    return AnswerHandle(result, handle);
  };
  commands["drop"] = [](const Words& words) {  // drop HANDLE
    return Answer(Call<decltype(cuMemRelease)>("cuMemRelease", Number(words, 0)));
  };
  commands["reserve"] = [](const Words& words) {  // reserve BYTES
    CUdeviceptr pointer = 0;
    const CUresult result = Call<decltype(cuMemAddressReserve)>("cuMemAddressReserve", &pointer, Number(words, 0),
                                                                std::size_t{0}, CUdeviceptr{0}, 0ULL);
    return AnswerHandle(result, pointer);
  };
  commands["unreserve"] = [](const Words& words) {  // unreserve POINTER BYTES
    return Answer(Call<decltype(cuMemAddressFree)>("cuMemAddressFree", Number(words, 0), Number(words, 1)));
  };
  commands["map"] = [](const Words& words) {  // map POINTER BYTES HANDLE
    return Answer(Call<decltype(cuMemMap)>("cuMemMap", Number(words, 0), Number(words, 1), std::size_t{0},
                                           Number(words, 2), 0ULL));
  };
  commands["unmap"] = [](const Words& words) {  // unmap POINTER BYTES
    return Answer(Call<decltype(cuMemUnmap)>("cuMemUnmap", Number(words, 0), Number(words, 1)));
  };
  commands["access"] = [](const Words& words) {  // access POINTER BYTES
    const CUmemAccessDesc access = {{kLocationDevice, 0}, 3};
    return Answer(
        Call<decltype(cuMemSetAccess)>("cuMemSetAccess", Number(words, 0), Number(words, 1), &access, std::size_t{1}));
  };
  commands["handle"] = [](const Words& words) {  // handle POINTER: of what is mapped there, once more
    CUmemGenericAllocationHandle handle = 0;
    const CUresult result = Call<decltype(cuMemRetainAllocationHandle)>("cuMemRetainAllocationHandle", &handle,
                                                                        AsHandle<void*>(Number(words, 0)));
    return AnswerHandle(result, handle);
  };
  commands["export"] = [](const Words& words) {  // export HANDLE -> a descriptor of this process
    int descriptor = -1;
    const CUresult result = Call<decltype(cuMemExportToShareableHandle)>(
        "cuMemExportToShareableHandle", static_cast<void*>(&descriptor), Number(words, 0), 1, 0ULL);
    return Answer(result, std::to_string(descriptor));
  };
  commands["import"] = [](const Words& words) {  // import DESCRIPTOR
    CUmemGenericAllocationHandle handle = 0;
    const CUresult result = Call<decltype(cuMemImportFromShareableHandle)>("cuMemImportFromShareableHandle", &handle,
                                                                           AsHandle<void*>(Number(words, 0)), 1);
    return AnswerHandle(result, handle);
  };
  commands["take"] = [](const Words& words) {  // take PID DESCRIPTOR: one of another process, and its number here
    const std::string path = "/proc/" + words.at(0) + "/fd/" + words.at(1);
    const int own = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    return own < 0 ? std::string("error take") : Answer(kSuccess, std::to_string(own));
  };
  commands["close"] = [](const Words& words) {  // close DESCRIPTOR
    return close(static_cast<int>(Number(words, 0))) == 0 ? std::string("ok") : std::string("error close");
  };
}

void AddPools(Commands& commands) {
  commands["async"] = [](const Words& words) {  // async BYTES [STREAM]
    CUdeviceptr pointer = 0;
    const CUresult result = Call<decltype(cuMemAllocAsync)>("cuMemAllocAsync", &pointer, Number(words, 0),
                                                            AsHandle<CUstream>(Number(words, 1)));
    return AnswerHandle(result, pointer);
  };
  commands["freeasync"] = [](const Words& words) {  // freeasync POINTER [STREAM]
    return Answer(
        Call<decltype(cuMemFreeAsync)>("cuMemFreeAsync", Number(words, 0), AsHandle<CUstream>(Number(words, 1))));
  };
  commands["pool"] = [](const Words& words) {  // pool [GPU] [LOCATION] [MOST]
    CUmemoryPool pool = nullptr;
    CUmemPoolProps props = {};
    props.alloc_type = 1;
    props.location = {static_cast<int>(Number(words, 1, kLocationDevice)), static_cast<int>(Number(words, 0))};
    props.max_size = Number(words, 2);
    const CUresult result = Call<decltype(cuMemPoolCreate)>("cuMemPoolCreate", &pool, &props);
    return AnswerHandle(result, pool);
  };
  commands["defaultpool"] = [](const Words& words) {  // defaultpool [GPU]
    CUmemoryPool pool = nullptr;
    const CUresult result = Call<decltype(cuDeviceGetDefaultMemPool)>("cuDeviceGetDefaultMemPool", &pool,
                                                                      static_cast<CUdevice>(Number(words, 0)));
    return AnswerHandle(result, pool);
  };
  commands["setpool"] = [](const Words& words) {  // setpool POOL [GPU]
    return Answer(Call<decltype(cuDeviceSetMemPool)>("cuDeviceSetMemPool", static_cast<CUdevice>(Number(words, 1)),
                                                     AsHandle<CUmemoryPool>(Number(words, 0))));
  };
  commands["frompool"] = [](const Words& words) {  // frompool POOL BYTES [STREAM]
    CUdeviceptr pointer = 0;
    const CUresult result = Call<decltype(cuMemAllocFromPoolAsync)>(
        "cuMemAllocFromPoolAsync", &pointer, Number(words, 1), AsHandle<CUmemoryPool>(Number(words, 0)),
        AsHandle<CUstream>(Number(words, 2)));
    return AnswerHandle(result, pointer);
  };
  commands["destroypool"] = [](const Words& words) {  // destroypool POOL
    return Answer(Call<decltype(cuMemPoolDestroy)>("cuMemPoolDestroy", AsHandle<CUmemoryPool>(Number(words, 0))));
  };
  commands["trim"] = [](const Words& words) {  // trim POOL BYTES
    return Answer(
        Call<decltype(cuMemPoolTrimTo)>("cuMemPoolTrimTo", AsHandle<CUmemoryPool>(Number(words, 0)), Number(words, 1)));
  };
  commands["threshold"] = [](const Words& words) {  // threshold POOL BYTES
    std::uint64_t bytes = Number(words, 1);
    return Answer(Call<decltype(cuMemPoolSetAttribute)>("cuMemPoolSetAttribute",
                                                        AsHandle<CUmemoryPool>(Number(words, 0)), kPoolReleaseThreshold,
                                                        static_cast<void*>(&bytes)));
  };
  commands["poolget"] = [](const Words& words) {  // poolget POOL ATTRIBUTE
    std::uint64_t value = 0;
    const CUresult result =
        Call<decltype(cuMemPoolGetAttribute)>("cuMemPoolGetAttribute", AsHandle<CUmemoryPool>(Number(words, 0)),
                                              static_cast<int>(Number(words, 1)), static_cast<void*>(&value));
    return Answer(result, std::to_string(value));
  };
}

void AddArrays(Commands& commands) {
  commands["array"] = [](const Words& words) {  // array WIDTH HEIGHT [FORMAT CHANNELS]: of floats
    CUarray array = nullptr;
    const CUDA_ARRAY_DESCRIPTOR wanted = {Number(words, 0), Number(words, 1), static_cast<int>(Number(words, 2, 0x20)),
                                          static_cast<unsigned>(Number(words, 3, 1))};
    const CUresult result = Call<decltype(cuArrayCreate_v2)>("cuArrayCreate_v2", &array, &wanted);
    return AnswerHandle(result, array);
  };
  commands["array3d"] = [](const Words& words) {  // array3d WIDTH HEIGHT DEPTH [FLAGS]
    CUarray array = nullptr;
    const CUDA_ARRAY3D_DESCRIPTOR wanted = {
        Number(words, 0), Number(words, 1), Number(words, 2), 0x20, 1, static_cast<unsigned>(Number(words, 3))};
    const CUresult result = Call<decltype(cuArray3DCreate_v2)>("cuArray3DCreate_v2", &array, &wanted);
    return AnswerHandle(result, array);
  };
  commands["mipmap"] = [](const Words& words) {  // mipmap WIDTH HEIGHT DEPTH LEVELS
    CUmipmappedArray array = nullptr;
    const CUDA_ARRAY3D_DESCRIPTOR wanted = {Number(words, 0), Number(words, 1), Number(words, 2), 0x20, 1, 0};
    const CUresult result = Call<decltype(cuMipmappedArrayCreate)>("cuMipmappedArrayCreate", &array, &wanted,
                                                                   static_cast<unsigned>(Number(words, 3)));
    return AnswerHandle(result, array);
  };
  commands["freearray"] = [](const Words& words) {  // freearray ARRAY
    return Answer(Call<decltype(cuArrayDestroy)>("cuArrayDestroy", AsHandle<CUarray>(Number(words, 0))));
  };
  commands["freemipmap"] = [](const Words& words) {  // freemipmap ARRAY
    return Answer(Call<decltype(cuMipmappedArrayDestroy)>("cuMipmappedArrayDestroy",
                                                          AsHandle<CUmipmappedArray>(Number(words, 0))));
  };
  commands["arraysize"] = [](const Words& words) {  // arraysize ARRAY
    CUDA_ARRAY_MEMORY_REQUIREMENTS its = {};
    const CUresult result = Call<decltype(cuArrayGetMemoryRequirements)>("cuArrayGetMemoryRequirements", &its,
                                                                         AsHandle<CUarray>(Number(words, 0)), 0);
    return Answer(result, std::to_string(its.size));
  };
}

void AddIpc(Commands& commands) {
  commands["share"] = [](const Words& words) {  // share POINTER -> TICKET: 128 hex digits
    CUipcMemHandle handle = {};
    const CUresult result = Call<decltype(cuIpcGetMemHandle)>("cuIpcGetMemHandle", &handle, Number(words, 0));
    std::string text;
    for (const char byte : handle.bytes) text += Hex(0x100U + static_cast<unsigned char>(byte)).substr(3);
    return Answer(result, text);
  };
  commands["open"] = [](const Words& words) {  // open TICKET
    CUipcMemHandle handle = {};
    for (std::size_t i = 0; i < sizeof(handle.bytes); ++i) {
      handle.bytes[i] = static_cast<char>(std::stoi(words.at(0).substr(2 * i, 2), nullptr, 16));
    }
    CUdeviceptr pointer = 0;
    const CUresult result = Call<decltype(cuIpcOpenMemHandle_v2)>("cuIpcOpenMemHandle_v2", &pointer, handle, 1U);
    return AnswerHandle(result, pointer);
  };
  commands["closeipc"] = [](const Words& words) {  // closeipc POINTER
    return Answer(Call<decltype(cuIpcCloseMemHandle)>("cuIpcCloseMemHandle", Number(words, 0)));
  };
}

}  // namespace

void AddBlockCommands(Commands& commands) {
  AddVmm(commands);
  AddPools(commands);
  AddArrays(commands);
  AddIpc(commands);
}

}  // namespace grus::cuda::fake
