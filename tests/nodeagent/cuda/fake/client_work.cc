// SPDX-License-Identifier: Apache-2.0
// Commands about streams, events, launches and graphs.
#include <ctime>

#include "tests/nodeagent/cuda/fake/client_commands.h"
#include "tests/nodeagent/cuda/fake/client_driver.h"

namespace grus::cuda::fake {

namespace {

CUresult FindFunctionNamed(const std::string& name, CUfunction* function) {
  static CUmodule module = nullptr;
  if (module == nullptr) {
    const CUresult loaded = Call<decltype(cuModuleLoadData)>("cuModuleLoadData", &module, static_cast<const void*>(""));
    if (loaded != kSuccess) return loaded;
  }
  return Call<decltype(cuModuleGetFunction)>("cuModuleGetFunction", function, module, name.c_str());
}

CUresult LaunchOnce(const std::string& how, CUfunction function, CUstream stream) {
  if (how == "ex") {
    const CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, stream, nullptr, 0};
    return Call<decltype(cuLaunchKernelEx)>("cuLaunchKernelEx", &config, function, nullptr, nullptr);
  }
  if (how == "cooperative") {
    return Call<decltype(cuLaunchCooperativeKernel)>("cuLaunchCooperativeKernel", function, 1U, 1U, 1U, 1U, 1U, 1U, 0U,
                                                     stream, nullptr);
  }
  if (how == "multi") {
    CUDA_LAUNCH_PARAMS launch = {function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr};
    return Call<decltype(cuLaunchCooperativeKernelMultiDevice)>("cuLaunchCooperativeKernelMultiDevice", &launch, 1U,
                                                                0U);
  }
  if (how == "old") return Call<decltype(cuLaunch)>("cuLaunch", function);
  if (how == "grid") return Call<decltype(cuLaunchGrid)>("cuLaunchGrid", function, 1, 1);
  if (how == "gridasync") return Call<decltype(cuLaunchGridAsync)>("cuLaunchGridAsync", function, 1, 1, stream);
  return Call<decltype(cuLaunchKernel)>("cuLaunchKernel", function, 1U, 1U, 1U, 1U, 1U, 1U, 0U, stream, nullptr,
                                        nullptr);
}

// launch NAME [COUNT] [STREAM] [HOW]: ex, cooperative, multi, old, grid or gridasync
std::string Launch(const Words& words) {
  CUfunction function = nullptr;
  CUresult result = FindFunctionNamed(words.at(0), &function);
  const auto stream = AsHandle<CUstream>(Number(words, 2));
  const std::string how = words.size() > 3 ? words[3] : "";
  for (std::uint64_t i = 0; i < Number(words, 1, 1) && result == kSuccess; ++i) {
    result = LaunchOnce(how, function, stream);
  }
  return Answer(result);
}

// busy NAME MILLISECONDS [STREAM]: launches the kernel one after the other, each when that before is done, and says how
// many were.
std::string Busy(const Words& words) {
  CUfunction function = nullptr;
  CUresult result = FindFunctionNamed(words.at(0), &function);
  const auto stream = AsHandle<CUstream>(Number(words, 2));
  const auto now = [] {
    timespec time = {};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1000 + static_cast<std::uint64_t>(time.tv_nsec) / 1'000'000;
  };
  std::uint64_t launches = 0;
  for (const std::uint64_t until = now() + Number(words, 1); result == kSuccess && now() < until; ++launches) {
    result = LaunchOnce("", function, stream);
    if (result == kSuccess) result = Call<decltype(cuStreamSynchronize)>("cuStreamSynchronize", stream);
  }
  return Answer(result, std::to_string(launches));
}

void AddStreams(Commands& commands) {
  commands["stream"] = [](const Words& words) {  // stream [FLAGS]
    CUstream stream = nullptr;
    const CUresult result =
        Call<decltype(cuStreamCreate)>("cuStreamCreate", &stream, static_cast<unsigned>(Number(words, 0)));
    return AnswerHandle(result, stream);
  };
  commands["endstream"] = [](const Words& words) {  // endstream STREAM
    return Answer(Call<decltype(cuStreamDestroy_v2)>("cuStreamDestroy_v2", AsHandle<CUstream>(Number(words, 0))));
  };
  commands["query"] = [](const Words& words) {  // query [STREAM]
    return Answer(Call<decltype(cuStreamQuery)>("cuStreamQuery", AsHandle<CUstream>(Number(words, 0))));
  };
  commands["sync"] = [](const Words& words) {  // sync [STREAM]
    return Answer(Call<decltype(cuStreamSynchronize)>("cuStreamSynchronize", AsHandle<CUstream>(Number(words, 0))));
  };
  commands["syncall"] = [](const Words&) { return Answer(Call<decltype(cuCtxSynchronize)>("cuCtxSynchronize")); };
  commands["event"] = [](const Words& words) {  // event [FLAGS]
    CUevent event = nullptr;
    const CUresult result =
        Call<decltype(cuEventCreate)>("cuEventCreate", &event, static_cast<unsigned>(Number(words, 0)));
    return AnswerHandle(result, event);
  };
  commands["record"] = [](const Words& words) {  // record EVENT [STREAM]
    return Answer(Call<decltype(cuEventRecord)>("cuEventRecord", AsHandle<CUevent>(Number(words, 0)),
                                                AsHandle<CUstream>(Number(words, 1))));
  };
  commands["waitevent"] = [](const Words& words) {  // waitevent STREAM EVENT
    return Answer(Call<decltype(cuStreamWaitEvent)>("cuStreamWaitEvent", AsHandle<CUstream>(Number(words, 0)),
                                                    AsHandle<CUevent>(Number(words, 1)), 0U));
  };
  commands["done"] = [](const Words& words) {  // done EVENT
    return Answer(Call<decltype(cuEventQuery)>("cuEventQuery", AsHandle<CUevent>(Number(words, 0))));
  };
  commands["syncevent"] = [](const Words& words) {  // syncevent EVENT
    return Answer(Call<decltype(cuEventSynchronize)>("cuEventSynchronize", AsHandle<CUevent>(Number(words, 0))));
  };
  commands["elapsed"] = [](const Words& words) {  // elapsed EVENT EVENT -> microseconds
    float milliseconds = 0;
    const CUresult result = Call<decltype(cuEventElapsedTime)>(
        "cuEventElapsedTime", &milliseconds, AsHandle<CUevent>(Number(words, 0)), AsHandle<CUevent>(Number(words, 1)));
    return Answer(result, std::to_string(static_cast<std::uint64_t>(milliseconds * 1000 + 0.5F)));
  };
}

void AddGraphs(Commands& commands) {
  commands["capture"] = [](const Words& words) {  // capture STREAM [MODE]
    return Answer(Call<decltype(cuStreamBeginCapture_v2)>(
        "cuStreamBeginCapture_v2", AsHandle<CUstream>(Number(words, 0)), static_cast<int>(Number(words, 1, 2))));
  };
  commands["capturemode"] = [](const Words& words) {  // capturemode MODE -> that before
    int mode = static_cast<int>(Number(words, 0));
    const CUresult result =
        Call<decltype(cuThreadExchangeStreamCaptureMode)>("cuThreadExchangeStreamCaptureMode", &mode);
    return Answer(result, std::to_string(mode));
  };
  commands["endcapture"] = [](const Words& words) {  // endcapture STREAM
    CUgraph graph = nullptr;
    const CUresult result =
        Call<decltype(cuStreamEndCapture)>("cuStreamEndCapture", AsHandle<CUstream>(Number(words, 0)), &graph);
    return AnswerHandle(result, graph);
  };
  commands["capturing"] = [](const Words& words) {  // capturing STREAM -> STATUS
    CUstreamCaptureStatus status = 0;
    const CUresult result =
        Call<decltype(cuStreamIsCapturing)>("cuStreamIsCapturing", AsHandle<CUstream>(Number(words, 0)), &status);
    return Answer(result, std::to_string(status));
  };
  commands["graph"] = [](const Words&) {
    CUgraph graph = nullptr;
    const CUresult result = Call<decltype(cuGraphCreate)>("cuGraphCreate", &graph, 0U);
    return AnswerHandle(result, graph);
  };
  commands["addkernel"] = [](const Words& words) {  // addkernel GRAPH NAME [COUNT]
    CUgraphNode node = nullptr;
    KernelNodeParamsV2 params = {};
    CUresult result = FindFunctionNamed(words.at(1), &params.function);
    for (std::uint64_t i = 0; i < Number(words, 2, 1) && result == kSuccess; ++i) {
      result = Call<decltype(cuGraphAddKernelNode_v2)>(
          "cuGraphAddKernelNode_v2", &node, AsHandle<CUgraph>(Number(words, 0)), nullptr, std::size_t{0}, &params);
    }
    return AnswerHandle(result, node);
  };
  commands["addalloc"] = [](const Words& words) {  // addalloc GRAPH BYTES -> POINTER
    CUgraphNode node = nullptr;
    CUDA_MEM_ALLOC_NODE_PARAMS params = {};
    params.pool.alloc_type = 1;
    params.pool.location = {kLocationDevice, 0};
    params.bytes = Number(words, 1);
    const CUresult result = Call<decltype(cuGraphAddMemAllocNode)>(
        "cuGraphAddMemAllocNode", &node, AsHandle<CUgraph>(Number(words, 0)), nullptr, std::size_t{0}, &params);
    return AnswerHandle(result, params.pointer);
  };
  commands["addfree"] = [](const Words& words) {  // addfree GRAPH POINTER
    CUgraphNode node = nullptr;
    const CUresult result = Call<decltype(cuGraphAddMemFreeNode)>(
        "cuGraphAddMemFreeNode", &node, AsHandle<CUgraph>(Number(words, 0)), nullptr, std::size_t{0}, Number(words, 1));
    return AnswerHandle(result, node);
  };
  commands["addchild"] = [](const Words& words) {  // addchild GRAPH CHILD
    CUgraphNode node = nullptr;
    const CUresult result =
        Call<decltype(cuGraphAddChildGraphNode)>("cuGraphAddChildGraphNode", &node, AsHandle<CUgraph>(Number(words, 0)),
                                                 nullptr, std::size_t{0}, AsHandle<CUgraph>(Number(words, 1)));
    return AnswerHandle(result, node);
  };
  commands["nodes"] = [](const Words& words) {  // nodes GRAPH -> TYPE…
    CUgraphNode nodes[64] = {};
    std::size_t count = 64;
    const CUresult result =
        Call<decltype(cuGraphGetNodes)>("cuGraphGetNodes", AsHandle<CUgraph>(Number(words, 0)), nodes, &count);
    std::string types;
    for (std::size_t i = 0; i < count && result == kSuccess; ++i) {
      int type = -1;
      Call<decltype(cuGraphNodeGetType)>("cuGraphNodeGetType", nodes[i], &type);
      types += (i == 0 ? "" : " ") + std::to_string(type);
    }
    return Answer(result, types);
  };
  commands["instantiate"] = [](const Words& words) {  // instantiate GRAPH [FLAGS]
    CUgraphExec exec = nullptr;
    const CUresult result = Call<decltype(cuGraphInstantiateWithFlags)>(
        "cuGraphInstantiateWithFlags", &exec, AsHandle<CUgraph>(Number(words, 0)), Number(words, 1) + 0ULL);
    return AnswerHandle(result, exec);
  };
  commands["upload"] = [](const Words& words) {  // upload EXEC [STREAM]
    return Answer(Call<decltype(cuGraphUpload)>("cuGraphUpload", AsHandle<CUgraphExec>(Number(words, 0)),
                                                AsHandle<CUstream>(Number(words, 1))));
  };
  commands["launchgraph"] = [](const Words& words) {  // launchgraph EXEC [COUNT] [STREAM]
    CUresult result = kSuccess;
    for (std::uint64_t i = 0; i < Number(words, 1, 1) && result == kSuccess; ++i) {
      result = Call<decltype(cuGraphLaunch)>("cuGraphLaunch", AsHandle<CUgraphExec>(Number(words, 0)),
                                             AsHandle<CUstream>(Number(words, 2)));
    }
    return Answer(result);
  };
  commands["endexec"] = [](const Words& words) {  // endexec EXEC
    return Answer(Call<decltype(cuGraphExecDestroy)>("cuGraphExecDestroy", AsHandle<CUgraphExec>(Number(words, 0))));
  };
  commands["endgraph"] = [](const Words& words) {  // endgraph GRAPH
    return Answer(Call<decltype(cuGraphDestroy)>("cuGraphDestroy", AsHandle<CUgraph>(Number(words, 0))));
  };
  commands["graphget"] = [](const Words& words) {  // graphget ATTRIBUTE
    std::uint64_t value = 0;
    const CUresult result = Call<decltype(cuDeviceGetGraphMemAttribute)>(
        "cuDeviceGetGraphMemAttribute", 0, static_cast<int>(Number(words, 0)), static_cast<void*>(&value));
    return Answer(result, std::to_string(value));
  };
  commands["trimgraph"] = [](const Words&) {
    return Answer(Call<decltype(cuDeviceGraphMemTrim)>("cuDeviceGraphMemTrim", 0));
  };
}

}  // namespace

void AddWorkCommands(Commands& commands) {
  commands["launch"] = Launch;
  commands["busy"] = Busy;
  AddStreams(commands);
  AddGraphs(commands);
}

}  // namespace grus::cuda::fake
