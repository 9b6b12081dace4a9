// SPDX-License-Identifier: Apache-2.0
// What a sweep of the profiler costs in a large cluster: 50,000 pods with GPUs of 6,250 jobs on 5,000 nodes, nine
// queries with a row for each pod. Without the network, Prometheus and the writes.
#include <malloc.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

#include "bench/measure.h"
#include "controllers/prometheus/query_answer.h"
#include "controllers/telemetry/pod_usage.h"
#include "controllers/telemetry/run_book.h"

namespace grus {
namespace {

constexpr int kPods = 50'000, kPodsOfJob = 8, kSweeps = 5;
constexpr std::size_t kPiece = 64 << 10;

std::string PodName(int pod) {
  return "training-" + std::to_string(pod / kPodsOfJob) + "-workers-" + std::to_string(pod % kPodsOfJob);
}
std::string NamespaceName(int pod) { return "team-" + std::to_string(pod / kPodsOfJob % 50); }

kube::Time At(int second) {
  return {kube::Time{}.value + std::chrono::hours(24 * 365 * 50) + std::chrono::seconds(second)};
}

std::string Answer() {
  std::string body = R"({"status":"success","data":{"resultType":"vector","result":[)";
  for (int pod = 0; pod < kPods; ++pod) {
    body.append(pod ? "," : "").append(R"({"metric":{"exported_namespace":")").append(NamespaceName(pod));
    body.append(R"(","exported_pod":")").append(PodName(pod));
    body.append(R"(","namespace":"monitoring","pod":"exporter-)").append(std::to_string(pod / 10));
    body.append(R"("},"value":[1700000000.123,")").append(std::to_string(pod % 100)).append("\"]}");
  }
  return body + "]}}";
}

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }
double PeakMib() {  // Of the process.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  }
  return 0;
}
double HeapMib() { return static_cast<double>(mallinfo2().uordblks) / (1 << 20); }

UsageByPod Sweep(const std::string& answer) {
  UsageByPod usage;
  for (const UsageQuery& query : UsageQueries([](const std::string&) { return 60; })) {
    std::size_t at = 0;
    const ByteSource source = [&]() -> kube::Result<std::string> {
      const std::string piece = answer.substr(at, kPiece);
      at += piece.size();
      return piece;
    };
    const auto add = [&](const QuerySample& sample) { AddRow(query, sample.labels, sample.value, usage); };
    if (!ReadAnswer(source, {}, add)) return {};
  }
  return usage;
}

int Run() {
  const std::string answer = Answer();
  const double peak_before = PeakMib();
  bench::PrintRow("an answer", static_cast<double>(answer.size()) / (1 << 20), "MiB", 16);
  const double before = HeapMib();
  RunBook book;
  for (int pod = 0; pod < kPods; ++pod) {
    const std::string job = std::to_string(pod / kPodsOfJob);
    const kube::ObjectKey key{NamespaceName(pod), PodName(pod)};
    book.See({.key = key,
              .uid = "0c7b8a86-5a0e-4c0e-9e0c-" + std::to_string(100'000'000'000 + pod),
              .owner = std::make_shared<const JobRef>(
                  JobRef{"ElasticHorovodJob", {key.ns, "training-" + job}, "11111111-5a0e-4c0e-9e0c-" + job}),
              .gpus = 1,
              .node = "node-" + std::to_string(pod / 10),
              .started = At(0)});
  }
  const auto gpus_of = [](const std::string&) { return NodeGpus{"NVIDIA-H100-80GB-HBM3", 80e9}; };
  double most = 0, cpu = 0;
  for (int sweep = 1; sweep <= kSweeps; ++sweep) {
    const double began = CpuSeconds();
    const UsageByPod usage = Sweep(answer);
    const std::vector<JobRun> runs = book.EndInterval(usage, At(60 * sweep), 60, 75, gpus_of);
    cpu += CpuSeconds() - began;
    most = std::max(most, HeapMib() - before);
    if (usage.size() != kPods || runs.size() != kPods / kPodsOfJob) return 1;
  }
  bench::PrintRow("CPU of a sweep", cpu / kSweeps / 60 * 100, "% of a core, one a minute", 10);
  bench::PrintRow("memory between sweeps", HeapMib() - before, "MiB");
  bench::PrintRow("memory in a sweep", std::max(most, PeakMib() - peak_before), "MiB", 48);
  return 0;
}

}  // namespace
}  // namespace grus

int main() { return grus::Run(); }
