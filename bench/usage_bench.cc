// SPDX-License-Identifier: Apache-2.0
// What a sweep of the profiler costs in a large cluster: 50,000 pods with GPUs of 6,250 jobs on 5,000 nodes, nine
// queries with a row for each pod, and what is kept of each job's record. Without the network, Prometheus and the
// writes.
#include <malloc.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <string>

#include "bench/measure.h"
#include "controllers/profiler/run_record.h"
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

UsageByPod Sweep(const std::string& answer, const RunBook& book) {
  UsageByPod usage;
  const UsageColumn::NameOf name_of = [&](const kube::ObjectKey& pod) { return book.NameOf(pod); };
  for (const UsageQuery& query : UsageQueries([](const std::string&) { return 60; })) {
    std::size_t at = 0;
    const ByteSource source = [&]() -> kube::Result<std::string> {
      const std::string piece = answer.substr(at, kPiece);
      at += piece.size();
      return piece;
    };
    UsageColumn column(query, name_of, usage);
    const auto take = [&](const QuerySample& sample) { column.Take(sample.labels, sample.value); };
    if (!ReadAnswer(source, {}, take)) return {};
    column.Add();
  }
  return usage;
}

RunRecord RecordOf(const JobRun& run, int job) {
  RunRecord record;
  record.identity.fingerprint = std::to_string(100'000'000'000 + job) + "b91e6f0c2a7d4e5f8a3c";
  record.identity.workload = {
      .image = "registry.example.com/team/train@sha256:" + std::string(64, 'a'),
      .command = {"horovodrun", "python", "train.py", "--model=training-" + std::to_string(job)},
      .resources = {{"cpu", *kube::ParseQuantity("8")}, {"memory", *kube::ParseQuantity("64Gi")}},
      .ns = run.job.key.ns};
  record.written.emplace(run.run);
  return record;
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
  std::map<JobId, RunRecord> records;
  std::vector<JobNow> jobs;
  double most = 0, cpu = 0;
  for (int sweep = 1; sweep <= kSweeps; ++sweep) {
    const double began = CpuSeconds();
    const UsageByPod usage = Sweep(answer, book);
    jobs = book.EndInterval(usage, At(60 * sweep), 60, 75, gpus_of);
    for (const JobNow& job : jobs) {
      const JobRun run = *book.RunOf(job.ref.Id());
      RunRecord& record = records[job.ref.Id()];
      if (record.IsWorthWriting(run.run)) record = RecordOf(run, static_cast<int>(records.size()));
    }
    cpu += CpuSeconds() - began;
    most = std::max(most, HeapMib() - before);
    if (usage.size() != kPods || jobs.size() != kPods / kPodsOfJob) return 1;
  }
  bench::PrintRow("CPU of a sweep", cpu / kSweeps / 60 * 100, "% of a core, one a minute", 10);
  bench::PrintRow("memory between sweeps", HeapMib() - before, "MiB");
  bench::PrintRow("memory in a sweep", std::max(most, PeakMib() - peak_before), "MiB", 48);
  return 0;
}

}  // namespace
}  // namespace grus

int main() { return grus::Run(); }
