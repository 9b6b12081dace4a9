// SPDX-License-Identifier: Apache-2.0
// How long the extender takes over calls of a scheduler in a cluster of 5,000 nodes with 8 shared GPUs each, half full.
// Usage: extender_bench [NODES] [ROUNDS] [interference]
//   interference: the placement of all nodes is Interference, and pods run one of 20 workloads whose pairs are known.
//
// The account is filled from an API server in this process, and the calls are made without HTTP. Before each round a
// pod is bound, so that what is kept between calls is as old as in a cluster where pods start.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/testing/api_server/fake_api_server.h"
#include "controllers/extender/extender.h"
#include "controllers/extender/sharing_advisor.h"
#include "crds/types/sharing_names.h"
#include "tests/kit/objects.h"

namespace grus {
namespace {

using kube::Json;

constexpr int kGpus = 8;
constexpr std::size_t kSome = 500;  // What a scheduler sends of 5,000 by default.

// As large as a node of a cluster that is in use: 16 KiB, most of it images.
Json MakeNode(const std::string& name) {
  Json node = kit::MakeNode(name, 0);
  Json inventory = Json::MakeArray();
  for (int i = 0; i < kGpus; ++i) {
    inventory.Append(Json::MakeObject(
        {{"uuid", name + "-" + std::to_string(i)}, {"memoryMiB", 80000}, {"milli", 1000}, {"mode", "milli"}}));
  }
  node["metadata"]["labels"]["pool"] = "shared";
  node["metadata"]["annotations"][api::kGpuInventoryAnnotation] = kube::ToText(inventory);
  node["status"]["allocatable"][api::kGpuMilliResource] = std::to_string(1000 * kGpus);
  for (int i = 0; i < 50; ++i) {
    const std::string image = "registry.example.com/team/image-" + std::to_string(i);
    node["status"]["images"].Append(Json::MakeObject(
        {{"names", Json::MakeArray({Json(image + "@sha256:" + std::string(64, 'a')), Json(image + ":latest")})},
         {"sizeBytes", 123456789}}));
  }
  return node;
}

constexpr int kWorkloads = 20;
std::string WorkloadOfBench(int number) { return "workload-" + std::to_string(number % kWorkloads); }

// Of all pairs, and no two alike.
std::shared_ptr<const InterferenceModel> KnownPairs() {
  std::vector<CoRunSample> samples;
  for (int job = 0; job < kWorkloads; ++job) {
    for (int partner = 0; partner < kWorkloads; ++partner) {
      samples.push_back({.job = {.fingerprint = WorkloadOfBench(job)},
                         .partner = {.fingerprint = WorkloadOfBench(partner)},
                         .speed = 0.5 + 0.001 * (job * kWorkloads + partner)});
    }
  }
  auto model = InterferenceModel::Fit(std::move(samples));
  return model ? std::make_shared<const InterferenceModel>(*std::move(model)) : nullptr;
}

Json MakePod(const std::string& name, int milli, const std::string& node = {}, const std::string& gpu = {}) {
  Json pod = kit::MakePod(name, kit::PodSpec(milli, "{}", api::kGpuMilliResource), Json(), "team-a");
  Json& resources = (*pod["spec"]["containers"].AsArray())[0]["resources"];
  resources["requests"] = Json(resources["limits"]);
  if (!node.empty()) pod["spec"]["nodeName"] = node;
  if (gpu.empty()) return pod;
  pod["metadata"]["annotations"][api::kPlannedGpuAnnotation] = gpu;
  pod["metadata"]["annotations"][kWorkloadAnnotation] = WorkloadOfBench(milli);
  return pod;
}

struct Times {
  const char* what;
  double wanted_ms;
  std::vector<double> ms = {};
  void Print() {
    std::ranges::sort(ms);
    const auto at = [&](double share) { return ms[static_cast<std::size_t>(share * double(ms.size() - 1))]; };
    std::printf("%-40s  median %7.3f ms  p99 %7.3f ms  (asked %g)\n", what, at(0.5), at(0.99), wanted_ms);
  }
};

void Must(const kube::Result<std::string>& answer) {
  if (answer) return;
  std::fprintf(stderr, "extender_bench: %s\n", answer.error().message().c_str());
  std::exit(1);
}

int Run(int nodes, int rounds, bool is_interference) {
  const kube::SystemClock clock;
  kube::testing::FakeApiServer server(clock);
  const kube::Log log(kube::LogLevel::kOff);
  kube::Client client(server, nullptr, clock);
  (void)server.Create("namespaces", kit::MakeObject("v1", "Namespace", "team-a"));
  std::vector<std::string> names, objects;
  std::minstd_rand random(1);
  for (int i = 0; i < nodes; ++i) {
    names.push_back("node-" + std::to_string(i));
    Json node = MakeNode(names.back());
    objects.push_back(kube::ToText(node));
    (void)server.Create("nodes", std::move(node));
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      const int milli = 100 * std::uniform_int_distribution<int>(0, 10)(random);
      const std::string at = names.back() + "-" + std::to_string(gpu);
      if (milli > 0) (void)server.Create("pods", MakePod("p-" + at, milli, names.back(), at));
    }
  }
  std::printf("%d nodes of %d GPUs, a node of %zu bytes\n", nodes, kGpus, objects.front().size());
  kube::Informer node_cache(client, kube::KindOf<kube::Node>(), {}, clock, log);
  kube::Informer pod_cache(client, kube::KindOf<kube::Pod>(), {}, clock, log);
  ClusterAccount account(node_cache, pod_cache, clock);
  kube::Registry metrics;
  Extender extender(client, pod_cache, node_cache, account, clock, log, metrics);
  kube::EventRecorder events(client, clock, log, {"example.com/bench", "bench"});
  SharingAdvisor advisor(client, {pod_cache, node_cache}, account, events, clock, log);
  if (is_interference) {
    QueueSetup setup;
    setup.pools.push_back({"shared", {{"pool", "shared"}}, "nvidia.com/gpu", PoolPlacement::kInterference});
    account.SetQueues(setup);
    const auto model = KnownPairs();
    if (!model) return 1;
    advisor.SetModel(model);
    extender.SetAdvisor(advisor);
  }
  for (kube::Informer* cache : {&node_cache, &pod_cache}) cache->Start();
  for (kube::Informer* cache : {&node_cache, &pod_cache}) {
    if (!cache->WaitForSync(clock.Now() + std::chrono::minutes(5))) return 1;
  }

  Times some{"filter, 500 names", 1}, some_scores{"prioritize, 500 names", 1}, all{"filter, all names", 5},
      all_scores{"prioritize, all names", 5}, whole{"filter, 500 whole nodes", 30}, bind{"bind, with its write", 5};
  const auto timed = [&](Times& times, const std::function<kube::Result<std::string>()>& call) {
    const auto began = std::chrono::steady_clock::now();
    const auto answer = call();
    times.ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count());
    Must(answer);
  };
  const auto list = [](const std::vector<std::string>& of, std::size_t from, std::size_t count, const char* quote) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      text.append(i > 0 ? "," : "").append(quote).append(of[(from + i) % of.size()]).append(quote);
    }
    return text;
  };
  const std::string every = list(names, 0, names.size(), "\"");
  for (int round = 0; round < rounds; ++round) {
    const std::string name = "new-" + std::to_string(round);
    const int milli = 100 * std::uniform_int_distribution<int>(1, 9)(random);
    const auto created = server.Create("pods", MakePod(name, milli));
    if (!created) return 1;
    const Json& made = **created;
    const std::string pod = R"({"Pod":)" + kube::ToText(made);
    const auto from = static_cast<std::size_t>(random()) % names.size();
    const std::size_t count = std::min(kSome, names.size());
    const std::string few = pod + R"(,"NodeNames":[)" + list(names, from, count, "\"") + "]}";
    const std::string many = pod + R"(,"NodeNames":[)" + every + "]}";
    const std::string large = pod + R"(,"Nodes":{"items":[)" + list(objects, from, count, "") + "]}}";
    timed(some, [&] { return extender.Filter(few); });
    timed(some_scores, [&] { return extender.Prioritize(few); });
    timed(all, [&] { return extender.Filter(many); });
    timed(all_scores, [&] { return extender.Prioritize(many); });
    timed(whole, [&] { return extender.Filter(large); });
    while (!pod_cache.Get<kube::Pod>({"team-a", name})) {
    }
    const std::string uid(*made.At({"metadata", "uid"})->AsString());
    timed(bind, [&] {
      return extender.Bind(R"({"PodName":")" + name + R"(","PodNamespace":"team-a","PodUID":")" + uid +
                           R"(","Node":")" + names[from] + R"("})");
    });
  }
  for (Times* times : {&some, &some_scores, &all, &all_scores, &whole, &bind}) times->Print();
  for (kube::Informer* cache : {&node_cache, &pod_cache}) cache->Stop();
  for (kube::Informer* cache : {&node_cache, &pod_cache}) cache->Join();
  return 0;
}

}  // namespace
}  // namespace grus

int main(int argc, char** argv) {
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 5000, rounds = argc > 2 ? std::atoi(argv[2]) : 1000;
  const bool is_interference = argc > 3 && std::string(argv[3]) == "interference";
  if (nodes < 1 || rounds < 1 || (argc > 3 && !is_interference)) {
    std::fprintf(stderr, "Usage: extender_bench [NODES] [ROUNDS] [interference]\n");
    return 2;
  }
  return grus::Run(nodes, rounds, is_interference);
}
