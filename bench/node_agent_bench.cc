// SPDX-License-Identifier: Apache-2.0
// What grus-node-agent costs: on a node with 8 GPUs and 200 processes of as many pods, scraped every 15 s for a minute.
// The driver is fake: what the real one costs comes on top.
#include <cstdio>

#include "bench/manager_run.h"
#include "bench/measure.h"
#include "tests/kit/objects.h"
#include "tests/nodeagent/agent_run.h"

int main() {
  constexpr int kGpus = 8, kProcesses = 200, kScrapes = 4;
  constexpr std::chrono::seconds kScrapePeriod(15);
  const kube::SystemClock clock;
  grus::testing::AgentRun agent;
  std::string script = "driver version=580.95.05\n";
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    script += "gpu uuid=GPU-" + std::to_string(gpu) +
              " model=H100 util=50 memutil=20 used=1000 total=4096 power=300000 pcierx=1 pcietx=1 nvrx=1 nvtx=1 "
              "pciegen=5 pcielanes=16\n";
  }
  for (int i = 0; i < kProcesses; ++i) {
    const int pid = 10000 + i;
    std::string container = std::to_string(pid);
    container.insert(0, 64 - container.size(), '0');
    agent.proc().PutInPod(pid, 1, agent.AddPod("pod-" + std::to_string(i), container), container);
    script += "process gpu=" + std::to_string(i % kGpus) + " pid=" + std::to_string(pid) + " memory=100 sm=3\n";
  }
  agent.Play(script);
  if (!agent.server().Create("nodes", kit::MakeNode("node-1", kGpus)).ok()) return 1;
  if (!agent.Start({"--alnair-annotations"}) || !agent.AwaitMetric("pod=\"pod-199\"")) {
    std::fprintf(stderr, "grus-node-agent does not start: %s\n", agent.process().output().c_str());
    return 1;
  }
  const double cpu = agent.process().CpuSeconds();
  const kube::TimePoint began = clock.Now();
  for (int i = 0; i < kScrapes; ++i) {
    bench::LetPass(kScrapePeriod, clock);
    if (agent.Get("/metrics").empty()) return 1;
  }
  const double part = (agent.process().CpuSeconds() - cpu) / bench::SecondsSince(began, clock);
  bench::PrintRow("CPU of the agent", part * 100, "% of a core", 1);
  bench::PrintRow("memory of the agent", agent.process().MemoryMib(), "MiB", 20);
  bench::PrintRow("peak memory of the agent", agent.process().PeakMemoryMib(), "MiB");
  return 0;
}
