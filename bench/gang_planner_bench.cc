// SPDX-License-Identifier: Apache-2.0
// What a pass of the gang planner costs, in CPU time on one thread.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "controllers/policy/gang_planner.h"

namespace {

using grus::ClusterLedger;
using grus::GangDemand;
using grus::GangPlanner;
using grus::ShapePtr;

constexpr int kGpusPerNode = 8;
constexpr std::int64_t kNow = 1'000'000;

grus::NodeState Node(int i) {
  grus::NodeState node;
  node.name = "gpu-node-" + std::to_string(100'000 + i);
  node.allocatable.milli_cpu = 96'000;
  node.allocatable.memory_bytes = 1LL << 40;
  node.allocatable.pods = 110;
  node.allocatable.AddExtended("ephemeral-storage", 1LL << 40);
  node.allocatable.AddExtended(grus::kGpuResource, kGpusPerNode);
  node.labels = {{"gpu", i % 4 == 0 ? "h100" : "a100"}, {"kubernetes.io/hostname", node.name}};
  return node;
}

// 1, 2, 4 and 8 GPUs, on any node or on those of one type; a launcher without a GPU.
std::vector<ShapePtr> Shapes() {
  std::vector<ShapePtr> shapes;
  for (const char* type : {"", "a100"}) {
    for (const int gpus : {1, 2, 4, 8}) {
      auto shape = std::make_shared<grus::PodShape>();
      shape->request.milli_cpu = 8'000 * gpus;
      shape->request.memory_bytes = gpus * (64LL << 30);
      shape->request.pods = 1;
      shape->request.AddExtended(grus::kGpuResource, gpus);
      if (*type) shape->node_selector["gpu"] = type;
      shapes.push_back(std::move(shape));
    }
  }
  auto launcher = std::make_shared<grus::PodShape>();
  launcher->request.milli_cpu = 1'000;
  launcher->request.pods = 1;
  shapes.push_back(std::move(launcher));
  return shapes;
}

// Members: 1 to 64. Most of the gangs say how long they run.
std::vector<GangDemand> Gangs(int count, int most_members) {
  std::mt19937 random(1);
  const std::vector<ShapePtr> shapes = Shapes();
  std::vector<GangDemand> gangs;
  for (int i = 0; i < count; ++i) {
    GangDemand gang;
    gang.key = "team-" + std::to_string(i % 60) + "/bert-pretrain-" + std::to_string(i);
    gang.priority = static_cast<int>(random() % 3);
    gang.waiting_since = kNow - 100 - i;
    const auto members = 1 + random() % static_cast<unsigned>(most_members);
    gang.members.assign(members, shapes[random() % 8]);
    if (i % 3 == 0) gang.members.insert(gang.members.begin(), shapes[8]);  // Its launcher.
    gang.needed = static_cast<int>(gang.members.size());
    if (i % 4 != 0) gang.runtime_seconds = 600 + 60 * (i % 50);
    gangs.push_back(std::move(gang));
  }
  return gangs;
}

struct World {
  ClusterLedger ledger;
  GangPlanner planner{ledger};
  std::vector<std::string> pods;  // "pod-I" is on node I / 2, and holds four GPUs.

  explicit World(int nodes) {
    for (int i = 0; i < nodes; ++i) ledger.PutNode(Node(i));
  }
  // Only every hundredth node has room, for less than eight; jobs of 16 pods hold the rest.
  void FillUp(int nodes) {
    for (int i = 0; i < 2 * nodes; ++i) {
      if (i % 200 != 0) BindFour(i);
    }
    for (int i = 0; i < 2 * nodes / 16; i += 2) planner.SetEnd(Owner(16 * i), kNow + 1'000 + i);
  }
  static std::string Owner(int pod) { return "team-a/running-" + std::to_string(pod / 16); }
  void BindFour(int pod) {
    static const ShapePtr kShape = Shapes()[2];
    ledger.Bind("pod-" + std::to_string(pod), "gpu-node-" + std::to_string(100'000 + pod / 2), kShape->request,
                Owner(pod));
  }
};

void PutAll(World& world, const std::vector<GangDemand>& gangs) {
  for (const GangDemand& gang : gangs) world.planner.Put(gang);
}

// A first pass over 1,000 gangs while hardly anything is free.
void BM_PlanNothingFits(benchmark::State& state) {
  const auto gangs = Gangs(1'000, 64);
  for (auto _ : state) {
    state.PauseTiming();
    auto world = std::make_unique<World>(5'000);
    world->FillUp(5'000);
    PutAll(*world, gangs);
    state.ResumeTiming();
    benchmark::DoNotOptimize(world->planner.Plan(kNow));
    state.PauseTiming();
    state.counters["waiting"] = static_cast<double>(world->planner.waiting());
    world.reset();
    state.ResumeTiming();
  }
}

// A first pass over 1,000 gangs of up to `range` members on an empty cluster.
void BM_PlanMostFit(benchmark::State& state) {
  const auto gangs = Gangs(1'000, static_cast<int>(state.range(0)));
  for (auto _ : state) {
    state.PauseTiming();
    auto world = std::make_unique<World>(5'000);
    PutAll(*world, gangs);
    state.ResumeTiming();
    benchmark::DoNotOptimize(world->planner.Plan(kNow));
    state.PauseTiming();
    state.counters["waiting"] = static_cast<double>(world->planner.waiting());
    world.reset();
    state.ResumeTiming();
  }
}

// One event and the pass after it; 1,000 gangs wait. The time moves on by a second every `range` events.
void BM_OneEvent(benchmark::State& state) {
  World world(5'000);
  world.FillUp(5'000);
  PutAll(world, Gangs(1'000, 64));
  std::int64_t now = kNow, events = 0;
  world.planner.Plan(now);
  bool is_bound = true;
  for (auto _ : state) {
    const int pod = 1 + 2 * static_cast<int>(events / 2 % 4'000);
    if (is_bound) world.ledger.Release("pod-" + std::to_string(pod));
    else world.BindFour(pod);
    is_bound = !is_bound;
    if (++events % state.range(0) == 0) ++now;
    benchmark::DoNotOptimize(world.planner.Plan(now));
  }
  state.counters["waiting"] = static_cast<double>(world.planner.waiting());
}

// The same with a node that changes.
void BM_NodeEvent(benchmark::State& state) {
  World world(5'000);
  world.FillUp(5'000);
  PutAll(world, Gangs(1'000, 64));
  world.planner.Plan(kNow);
  std::int64_t events = 0;
  for (auto _ : state) {
    grus::NodeState node = Node(1 + static_cast<int>(events / 2 % 4'000));
    node.is_cordoned = ++events % 2 == 0;
    world.ledger.PutNode(std::move(node));
    benchmark::DoNotOptimize(world.planner.Plan(kNow));
  }
}

// One gang of 512 members on 500 nodes; range 1: its members keep off each other's nodes.
void BM_LargeGang(benchmark::State& state) {
  GangDemand gang;
  gang.key = "team-a/large";
  gang.waiting_since = kNow;
  auto shape = std::make_shared<grus::PodShape>(*Shapes()[2]);
  shape->ns = "team-a";
  shape->labels = {{"app", "large"}};
  if (state.range(0)) {
    kube::LabelSelector selector;
    selector.match_labels = {{"app", "large"}};
    kube::PodAffinityTerm term;
    term.label_selector = selector;
    term.topology_key = "kubernetes.io/hostname";
    shape->anti_affinity.push_back(term);
  }
  gang.members.assign(state.range(0) ? 500 : 512, shape);
  gang.needed = static_cast<int>(gang.members.size());
  for (auto _ : state) {
    state.PauseTiming();
    auto world = std::make_unique<World>(500);
    world->planner.Put(gang);
    state.ResumeTiming();
    benchmark::DoNotOptimize(world->planner.Plan(kNow));
    state.PauseTiming();
    state.counters["waiting"] = static_cast<double>(world->planner.waiting());
    world.reset();
    state.ResumeTiming();
  }
}

// `nodes` are full: four jobs in five run, each in the queue of its namespace; the fifth waits. A tenth of the queues
// are below their guarantee, so that others must yield to them.
struct QueuedWorld {
  ClusterLedger ledger;
  grus::ClusterQueues queues{ledger};
  GangPlanner planner{ledger, 15, &queues};
  int running = 0;
  std::vector<GangDemand> waiting;

  QueuedWorld(int nodes, int jobs, int teams) {
    ledger.Observe(&queues);
    for (int i = 0; i < nodes; ++i) ledger.PutNode(Node(i));
    grus::QueueSetup setup;
    const std::int64_t each = nodes * kGpusPerNode * grus::kOneGpu / teams;
    for (int i = 0; i < teams; ++i) {
      const std::string name = "team-" + std::to_string(i);
      setup.queues.push_back({.name = name, .quotas = {{.pool = "default", .guaranteed_milli = each / 2}}});
      setup.namespaces.push_back({name, {name}});
    }
    queues.SetUp(std::move(setup));
    running = jobs * 4 / 5;
    const int pods = nodes * 2;
    for (int pod = 0; pod < pods; ++pod) Bind(pod);
    for (int job = 0; job < running; ++job) {
      const int workers = pods / running + (job < pods % running ? 1 : 0);
      queues.PutHolder(Owner(job, teams), {.comes_back = true,
                                           .workers = workers,
                                           .min_workers = 1,
                                           .wanted_workers = 2 * workers,
                                           .running_since = kNow - 10 * job});
    }
    const std::vector<ShapePtr> shapes = Shapes();
    for (int job = running; job < jobs; ++job) {
      GangDemand gang;
      gang.key = "team-" + std::to_string(job % teams) + "/waits-" + std::to_string(job);
      gang.waiting_since = kNow - 20'000 + job;
      gang.members.assign(static_cast<std::size_t>(1 + job % 8), shapes[2]);
      gang.needed = static_cast<int>(gang.members.size());
      queues.PutHolder(gang.key, {.comes_back = true});
      planner.Put(gang);
      waiting.push_back(std::move(gang));
    }
  }
  std::string Owner(int job, int teams) const {
    const int team = job % teams;  // The last tenth of the teams runs nothing.
    return "team-" + std::to_string(team < teams - teams / 10 ? team : 0) + "/runs-" + std::to_string(job);
  }
  // What was placed gives its places back, so that the cluster stays as full as it was.
  void WaitAgain(const std::vector<std::string>& changed) {
    for (const std::string& key : changed) {
      const grus::GangStanding* standing = planner.StandingOf(key);
      if (standing == nullptr || !standing->is_placed) continue;
      ledger.DropPlaces(key);
      for (GangDemand& gang : waiting) {
        if (gang.key == key) planner.Put(gang = WithLaterStart(gang));
      }
    }
  }
  static GangDemand WithLaterStart(GangDemand gang) {
    ++gang.waiting_since;
    return gang;
  }
  void Bind(int pod) {
    static const ShapePtr kShape = Shapes()[2];
    ledger.Bind("pod-" + std::to_string(pod), "gpu-node-" + std::to_string(100'000 + pod / 2), kShape->request,
                Owner(pod % running, static_cast<int>(queues.setup().queues.size())));
  }
};

// One pod that goes or comes, and the pass after it, with queues.
void BM_QueuedEvent(benchmark::State& state) {
  QueuedWorld world(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
                    static_cast<int>(state.range(2)));
  std::int64_t events = 0;
  world.planner.Plan(kNow);
  std::vector<double> seconds;
  for (auto _ : state) {
    const int pod = static_cast<int>(events / 2 * 7 % (2 * state.range(0)));
    const auto start = std::chrono::steady_clock::now();
    if (events++ % 2 == 0) world.ledger.Release("pod-" + std::to_string(pod));
    else world.Bind(pod);
    const std::vector<std::string> changed = world.planner.Plan(kNow + events / 100);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    state.PauseTiming();
    world.WaitAgain(changed);
    state.ResumeTiming();
  }
  std::ranges::sort(seconds);
  state.counters["p99_ms"] = 1e3 * seconds[seconds.size() * 99 / 100];
  state.counters["waiting"] = static_cast<double>(world.planner.waiting());
  state.counters["notices"] = static_cast<double>(world.queues.yields().size());
}

BENCHMARK(BM_QueuedEvent)
    ->Args({256, 600, 20})
    ->Args({2'048, 5'000, 200})
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime();
BENCHMARK(BM_PlanNothingFits)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(BM_PlanMostFit)->Arg(12)->Arg(64)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(BM_OneEvent)->Arg(1)->Arg(100)->Unit(benchmark::kMicrosecond)->MeasureProcessCPUTime();
BENCHMARK(BM_NodeEvent)->Unit(benchmark::kMicrosecond)->MeasureProcessCPUTime();
BENCHMARK(BM_LargeGang)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

}  // namespace

BENCHMARK_MAIN();
