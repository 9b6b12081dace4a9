// SPDX-License-Identifier: Apache-2.0
// Serves device plugins to this machine's kubelet until SIGTERM, as grus-node-agent does, and nothing else.
// Usage: plugin_probe COUNT RESOURCE...    each has COUNT devices
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "nodeagent/kubelet/plugin_host.h"
#include "tests/nodeagent/kubelet/scripted_plugin.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: plugin_probe COUNT RESOURCE...\n", stderr);
    return 2;
  }
  mallopt(M_ARENA_MAX, 1);  // As the agent.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  std::vector<std::unique_ptr<grus::testing::ScriptedPlugin>> plugins;
  std::vector<grus::DevicePlugin*> hosted;
  for (int i = 2; i < argc; ++i) {
    plugins.push_back(std::make_unique<grus::testing::ScriptedPlugin>(argv[i], std::atoi(argv[1]),
                                                                      "GPU-8c5a7e5b-1c5f-4a9b-93f3-1f0f3a1d2e4c"));
    hosted.push_back(plugins.back().get());
  }
  const kube::SystemClock clock;
  const kube::Log log;
  grus::PluginHost host(hosted, grus::kDevicePluginFolder, clock, log);
  const std::jthread running([&](const std::stop_token& stop) { host.Run(stop); });
  std::printf("pid=%d\n", getpid());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  return 0;
}
