// SPDX-License-Identifier: Apache-2.0
#include "bench/queues/side_run.h"

#include <cstdio>

#include "bench/manager_run.h"
#include "bench/measure.h"
#include "clientlib/http/curl_transport.h"

namespace bench {
namespace {

constexpr kube::Duration kLook = std::chrono::milliseconds(200);

bool IsAtWork(const MixProgram& program, const kube::Clock& clock) {
  if (!program.ready_metric.empty()) {
    double sum = 0;
    for (const std::string& line : ReadProgramMetrics(program.port, program.ready_metric)) sum += MetricValue(line);
    return sum > 0;
  }
  kube::TransportOptions options;
  options.server = "http://127.0.0.1:" + std::to_string(program.port);
  auto transport = kube::CurlTransport::Create(options, clock);
  if (!transport) return false;
  kube::HttpRequest request;
  request.target = "/readyz";
  auto response = (*transport)->Send(request, {});
  return response.ok() && response->status == 200;
}

}  // namespace

bool SideRun::Kubectl(const std::string& words) {
  const kit::CommandResult result = kit::RunCommand(world_.kubectl + " " + words + " 2>&1");
  if (result.status != 0)
    std::fprintf(stderr, "%s: kubectl %s: %s\n", side_.name.c_str(), words.c_str(), result.output.c_str());
  return result.status == 0;
}

bool SideRun::AwaitAtWork(const MixProgram& program, kit::ChildProcess& process) {
  const kube::TimePoint until = world_.clock.Now() + std::chrono::seconds(120);
  while (process.IsRunning() && world_.clock.Now() < until) {
    if (IsAtWork(program, world_.clock)) return true;
    LetPass(kLook, world_.clock);  // Another process: nothing tells of it.
  }
  std::fprintf(stderr, "%s: %s did not get to work\n", side_.name.c_str(), program.name.c_str());
  return false;
}

bool SideRun::SetUp() {
  is_up_ = true;
  for (const MixProgram& program : side_.programs) {
    processes_.push_back(std::make_unique<kit::ChildProcess>(
        program.words, kit::ChildProcess::Variables{}, "build/bench-queues-" + label_ + "-" + program.name + ".log"));
    if (!AwaitAtWork(program, *processes_.back())) return false;
  }
  for (const std::string& file : side_.files) {
    if (!Kubectl("apply --server-side -f " + file)) return false;
  }
  for (const Team& team : TeamsOf(world_.gpus)) {
    if (!Kubectl("wait --for=create serviceaccount/default --timeout=60s -n " + team.name)) return false;
  }
  return Kubectl("wait --timeout=60s " + side_.ready_for);
}

bool SideRun::TearDown() {
  if (!is_up_) return true;
  is_up_ = false;
  bool is_ok = true;
  for (const std::string& file : side_.files) {
    is_ok = Kubectl("delete --ignore-not-found --timeout=180s -f " + file) && is_ok;
  }
  for (auto& process : processes_) process->Terminate();
  return is_ok;
}

double SideRun::AllCpuSeconds() const {
  double sum = 0;
  for (const auto& process : processes_) sum += process->CpuSeconds();
  return sum;
}

void SideRun::MeasureFromHere() { cpu_before_ = AllCpuSeconds(); }
double SideRun::CpuSeconds() const { return AllCpuSeconds() - cpu_before_; }

double SideRun::PeakMemoryMib() const {
  double sum = 0;
  for (const auto& process : processes_) sum += process->PeakMemoryMib();
  return sum;
}

}  // namespace bench
