// SPDX-License-Identifier: Apache-2.0
// Watches the ConfigMaps of each namespace through an informer of its own while many requests are in flight,
// and notes how old each change is when its handler runs, as cmd/peers/latency.go does. Usage: latency_peer
// KUBECONFIG WATCHES REQUESTS; started by `peers run`.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/peers/peer.h"
#include "clientlib/cache/informer.h"
#include "clientlib/model/core_v1.h"

namespace bench {
namespace {

std::string Namespace(int i) { return (i < 10 ? "team-0" : "team-") + std::to_string(i); }

std::int64_t RealTimeNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class Samples {
 public:
  void Note(const kube::Change& change, bool is_initial) {
    const std::int64_t now = RealTimeNanoseconds();
    if (!is_recording || is_initial || !change.after) return;
    const auto& config_map = static_cast<const kube::ConfigMap&>(*change.after);
    const auto at = config_map.data.find("at");
    if (at == config_map.data.end()) return;
    const std::int64_t then = std::atoll(std::string(at->second).c_str());
    std::lock_guard lock(mutex_);
    samples_.push_back(now - then);
  }
  void Print() {
    std::lock_guard lock(mutex_);
    for (const std::int64_t sample : samples_) std::cout << "sample " << sample << "\n";
  }

  std::atomic<bool> is_recording = false;

 private:
  std::mutex mutex_;  // Guards samples_.
  std::vector<std::int64_t> samples_;
};

int Run(const std::string& kubeconfig, int watches, int requests) {
  const kube::SystemClock clock;
  const kube::Log log(kube::LogLevel::kWarn);
  const auto connection = ConnectOrExit(kubeconfig, clock);
  Samples samples;
  std::vector<std::unique_ptr<kube::Informer>> informers;
  for (int i = 0; i < watches; ++i) {
    kube::InformerOptions options;
    options.namespaces = {Namespace(i)};
    informers.push_back(std::make_unique<kube::Informer>(*connection->client, kube::KindOf<kube::ConfigMap>(),
                                                         std::move(options), clock, log));
    informers.back()->AddHandler(
        [&samples](const kube::Change& change, bool is_initial) { samples.Note(change, is_initial); });
    informers.back()->Start();
    if (!informers.back()->WaitForSync(clock.Now() + std::chrono::minutes(1))) return 1;
  }
  std::atomic<std::int64_t> gets = 0, failed = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < requests; ++i) {
    threads.emplace_back([&, key = kube::ObjectKey{Namespace(i % watches), "tick"}](std::stop_token stop) {
      while (!stop.stop_requested()) {
        const auto got = connection->client->Get<kube::ConfigMap>(key);
        if (!got && failed++ == 0) std::cerr << got.error().message() << "\n";
        ++gets;
      }
    });
  }

  Say("ready");
  Await();
  const std::int64_t before = gets;
  samples.is_recording = true;
  Await();
  samples.is_recording = false;
  Say("gets " + std::to_string(gets - before) + " failed " + std::to_string(failed));
  samples.Print();
  Say("end");
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: latency_peer KUBECONFIG WATCHES REQUESTS\n");
    return 2;
  }
  return bench::Run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
}
