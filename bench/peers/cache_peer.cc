// SPDX-License-Identifier: Apache-2.0
// Holds all pods of a cluster in an informer with an index by namespace and one handler, as
// cmd/peers/cache.go does. Usage: cache_peer KUBECONFIG; started by `peers run`, which reads its memory and
// CPU time from the kernel.
#include <malloc.h>

#include <atomic>
#include <cstdio>

#include "bench/peers/peer.h"
#include "clientlib/cache/informer.h"
#include "clientlib/model/pod.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: cache_peer KUBECONFIG\n");
    return 2;
  }
  const kube::SystemClock clock;
  const kube::Log log(kube::LogLevel::kWarn);
  const auto connection = bench::ConnectOrExit(argv[1], clock);
  kube::Informer pods(*connection->client, kube::KindOf<kube::Pod>(), {}, clock, log);
  const auto by_namespace =
      pods.AddIndex([](const kube::Object& object) { return std::vector<std::string>{object.metadata.ns}; });
  std::atomic<int> seen = 0;
  pods.AddHandler([&seen](const kube::Change&, bool) { ++seen; });

  bench::Say("ready");
  bench::Await();
  pods.Start();
  if (!pods.WaitForSync(clock.Now() + std::chrono::minutes(10))) return 1;
  bench::Say("synced " + std::to_string(seen));
  bench::Await();
  malloc_trim(0);  // Gives back what is free, as debug.FreeOSMemory() does on the other side.
  bench::Say("settled " + std::to_string(pods.store().ByIndex(by_namespace, "team-00").size()));
  bench::Await();
}
