// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/pod_detail.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "controllers/telemetry/query_window.h"

namespace grus {
namespace {

constexpr char kWhich[] = "series";  // The label that says what a row is of.
constexpr std::int64_t kMostGpus = 1024, kMostPids = std::int64_t{1} << 32;
constexpr double kMostWriting = 1e4;    // Seconds a second, of all disks and threads.
constexpr std::size_t kMostKeys = 256;  // GPUs and processes of a pod, which may export any.

const std::string kEachGpu = std::string("gpu,") + kGpuPod, kEachProcess = std::string("gpu,pid,") + kGpuPod;

std::string Named(const std::string& name, const std::string& series) {
  return "label_replace(" + series + ", \"" + kWhich + "\", \"" + name + "\", \"\", \"\")";
}

// The memory controller's share of each process, which the agent tells only in Alnair's words, without a namespace.
std::string MemoryUtilizationOfProcesses(const QueryWindow& in) {
  const std::string told =
      "label_replace(" + in.Over("max_over_time", "alnair_gpu_mem_util") + R"~(, "uuid", "$1", "gpu_uuid", "(.+)"))~";
  return By("max", kEachProcess,
            By("max", "uuid,pid", told) + " * on (uuid,pid) group_right () " + in.UsersOfGpus(kEachProcess));
}

// A whole number below `limit`; nullopt: the text is none.
std::optional<std::int64_t> NumberIn(std::string_view text, std::int64_t limit) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number >= limit) return std::nullopt;
  return number;
}

void Raise(std::optional<double>& field, double value) { field = std::max(field.value_or(0), value); }
template <typename Key>
void Raise(std::map<Key, double>& numbers, const Key& key, double value) {
  if (numbers.size() >= kMostKeys && !numbers.contains(key)) return;
  double& number = numbers.try_emplace(key, value).first->second;
  number = std::max(number, value);
}

}  // namespace

std::vector<DetailQuery> DetailQueries(const WindowOf& window_of, const std::string& selector) {
  std::vector<DetailQuery> queries;
  const auto window = [&](const std::string& name, std::int64_t least = 1) {
    return QueryWindow(selector, std::max(window_of(name), least));
  };
  const std::string busy = "utilisation of each GPU", memory = "memory of each GPU", traffic = "sending and writing";
  {
    const QueryWindow in = window(busy);
    const std::string gpus = in.OverGpus("max", kEachGpu, "DCGM_FI_DEV_GPU_UTIL", "grus_gpu_utilization_ratio");
    const std::string processes =
        "100 * " + By("max", kEachProcess, in.Over("max_over_time", "grus_gpu_process_sm_ratio"));
    queries.push_back({busy, Named("busy", gpus) + " or " + Named("busy", processes)});
  }
  {
    const QueryWindow in = window(memory);
    const std::string bandwidth =
        MemoryUtilizationOfProcesses(in) + " or on (" + kEachGpu + ") " +
        in.OverGpus("max", kEachGpu, "DCGM_FI_DEV_MEM_COPY_UTIL", "grus_gpu_memory_controller_utilization_ratio");
    const std::string dcgm = By("max", kEachGpu, in.Over("max_over_time", "DCGM_FI_DEV_FB_USED"));
    queries.push_back({memory, Named("bandwidth", bandwidth) + " or " + Named("mebibytes", dcgm) + " or " +
                                   Named("bytes", in.AgentMemory(kEachGpu))});
  }
  const QueryWindow in = window(traffic, kShortestRate);
  // A counter that stands at 0 may be one that nobody counts: cgroup v2 has no such time.
  const std::string writing = in.OverContainers("irate", "container_fs_write_seconds_total", " > 0");
  queries.push_back({traffic, Named("sent", in.OverInterfaces("container_network_transmit_bytes_total")) + " or " +
                                  Named("writing", writing)});
  return queries;
}

void AddDetail(const QueryLabels& labels, double value, PodDetail& detail) {
  const std::string_view which = LabelOf(labels, kWhich);
  if (!std::isfinite(value) || value < 0) return;
  if (which == "sent" && value <= kMostBytes) return Raise(detail.sent, value);
  if (which == "writing" && value <= kMostWriting) return Raise(detail.writing, value);
  const auto gpu = NumberIn(LabelOf(labels, "gpu"), kMostGpus);
  if (!gpu) return;
  const auto index = static_cast<std::int32_t>(*gpu);
  if (which == "bytes" || which == "mebibytes") {
    const double bytes = which == "bytes" ? value : value * (1 << 20);
    if (bytes <= kMostGpuMemory) Raise(detail.gpu_memory, index, bytes);
    return;
  }
  const std::string_view pid = LabelOf(labels, "pid");
  const auto process = pid.empty() ? std::optional<std::int64_t>(0) : NumberIn(pid, kMostPids);
  if (!process || value > 100) return;
  if (which == "busy") Raise(detail.utilization, GpuProcessId{index, *process}, value);
  if (which == "bandwidth") Raise(detail.memory_utilization, GpuProcessId{index, *process}, value);
}

void Merge(PodDetail more, PodDetail& detail) {
  detail.utilization.merge(more.utilization);
  detail.memory_utilization.merge(more.memory_utilization);
  detail.gpu_memory.merge(more.gpu_memory);
  if (more.sent) detail.sent = more.sent;
  if (more.writing) detail.writing = more.writing;
}

}  // namespace grus
