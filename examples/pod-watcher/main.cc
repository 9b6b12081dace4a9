// SPDX-License-Identifier: Apache-2.0
// Prints each pod of the cluster that comes, changes its phase or goes, until Ctrl-C.
// Usage: pod-watcher [NAMESPACE...]
#include <cstdio>

#include "clientlib/base/log.h"
#include "clientlib/base/wait.h"
#include "clientlib/cache/informer.h"
#include "clientlib/client/connection.h"
#include "clientlib/model/core_v1.h"
#include "clientlib/runtime/shutdown.h"

int main(int argc, char** argv) {
  const kube::SignalStop signals;  // First: it takes SIGINT and SIGTERM for all threads.
  const kube::SystemClock clock;
  const kube::Log log(kube::LogLevel::kWarn);
  auto connection = kube::Connect({.user_agent = "pod-watcher"}, clock);
  if (!connection) {
    std::fprintf(stderr, "pod-watcher: %s\n", connection.error().message().c_str());
    return 1;
  }
  kube::InformerOptions options;
  options.namespaces.assign(argv + 1, argv + argc);
  kube::Informer pods(*(*connection)->client, kube::KindOf<kube::Pod>(), options, clock, log);
  pods.AddHandler([](const kube::Change& change, bool) {
    const auto* before = static_cast<const kube::Pod*>(change.before.get());
    const auto* after = static_cast<const kube::Pod*>(change.after.get());
    if (before && after && before->status.phase == after->status.phase) return;
    const std::string phase(after ? std::string_view(after->status.phase) : "gone");
    std::printf("%-50s %s\n", change.Any().metadata.Key().ToString().c_str(), phase.c_str());
    std::fflush(stdout);
  });
  pods.Start();
  while (kube::WaitFor(clock, std::chrono::hours(1), signals.token())) {
  }
  return 0;
}
