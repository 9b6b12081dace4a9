// SPDX-License-Identifier: Apache-2.0
// The plan against a thousand random small clusters (cluster_model.h): foreign pods come and go, nodes
// vanish, the user changes the target, pods fail, the StatefulSet controller lags, and the scheduler leaves
// whom it likes.
//
// Proved of every history: no running worker is removed unless its node is lost, the user asked for fewer, or
// the minimum cannot be held; and when the world stands still the job holds min(wanted, what fits), with
// every worker that runs published and nothing left pending.
#include <gtest/gtest.h>

#include <set>

#include "controllers/elastic/elastic_status.h"
#include "tests/controllers/elastic/cluster_model.h"

namespace grus {
namespace {

using std::chrono::seconds;

bool Runs(const Worker& worker) { return worker.is_bound && !worker.is_ending && !worker.has_lost_node; }

// Checks what `plan` removes of what runs in `view`.
void ExpectNobodyIsKilledWithoutCause(const View& view, const Plan& plan) {
  if (!view.workers || view.job->spec.run_policy.suspend) return;
  const Sizes sizes = SizesOf(view.job->spec);
  const int replicas = plan.workers ? plan.workers->replicas : 0;
  int running = 0, kept = 0;
  bool is_drained = true;
  for (const Worker& worker : view.pods) {
    if (!Runs(worker) || worker.ordinal >= view.workers->replicas) continue;
    ++running;
    if (worker.ordinal < replicas) ++kept;
    else if (view.hosts && view.hosts->Has(worker.name)) is_drained = false;
  }
  for (const Worker* worker : plan.park) EXPECT_FALSE(worker->is_bound) << "parks " << worker->name;
  if (kept == running) return;
  if (replicas == 0 && sizes.wanted > 0) {
    EXPECT_LT(running, sizes.NeededToRun()) << "gave everything back";
    return;
  }
  EXPECT_EQ(kept, sizes.wanted) << "the user asked for fewer";
  if (view.launcher == LauncherState::kActive && view.hosts && sizes.wanted > 0) {
    EXPECT_TRUE(is_drained) << "killed while Horovod uses it";
    EXPECT_GE(view.now.value - view.hosts->published.value, seconds(6)) << "killed before the grace";
  }
}

void ExpectHostsAreSafe(const View& view, const Plan& plan) {
  if (!view.hosts || !plan.hosts || view.hosts->revision == plan.hosts->revision) return;
  EXPECT_GE(plan.hosts->published.value - view.hosts->published.value, seconds(2));
  const auto alive = std::count_if(view.pods.begin(), view.pods.end(), [&](const Worker& worker) {
    return worker.is_usable() && view.hosts->Has(worker.name);
  });
  const int needed = SizesOf(view.job->spec).NeededToRun();
  EXPECT_GE(static_cast<int>(plan.hosts->hosts.size()), std::min(static_cast<int>(alive), needed))
      << "removal of a living worker below the minimum";
}

// True if the plan found nothing to do.
bool ReconcileOnce(ClusterModel& world) {
  const View view = world.Observe();
  const Plan plan = PlanElasticJob(view);
  ExpectNobodyIsKilledWithoutCause(view, plan);
  ExpectHostsAreSafe(view, plan);
  if (world.Below(4) == 0) world.RunScheduler();  // The world moves on before the writes arrive.
  world.Apply(view, plan);
  return plan.status == view.job->status && plan.hosts == view.hosts && plan.park.empty() && plan.lift.empty();
}

void Disturb(ClusterModel& world) {
  ClusterModel::Node& node =
      world.nodes()[static_cast<std::size_t>(world.Below(static_cast<int>(world.nodes().size())))];
  const int free = world.FreePlaces(static_cast<int>(&node - world.nodes().data()));
  api::ElasticHorovodJob& job = world.job();
  switch (world.Below(12)) {
    case 0:
    case 1: node.foreign += free > 0 ? 1 + world.Below(free) : 0; break;
    case 2:
    case 3: node.foreign -= node.foreign > 0 ? 1 + world.Below(node.foreign) : 0; break;
    case 4:
      if (world.Below(3) == 0) node.is_there = false;
      break;
    case 5: world.nodes().push_back({1 + world.Below(4), 0, true}); break;
    case 6:
      if (world.Below(2) == 0) {
        job.spec.workers.target_replicas =
            *job.spec.workers.min_replicas +
            world.Below(*job.spec.workers.max_replicas - *job.spec.workers.min_replicas + 1);
        ++job.metadata.generation;
      }
      break;
    case 7:
      if (world.Below(4) == 0) {
        job.spec.run_policy.suspend = !job.spec.run_policy.suspend;
        ++job.metadata.generation;
      }
      break;
    case 8:
      for (auto& [ordinal, pod] : world.pods()) {
        if (world.Below(6) == 0 && world.Runs(pod)) world.End(pod);  // Evicted, or failed.
      }
      break;
    default: break;
  }
}

bool Tick(ClusterModel& world, bool is_calm) {
  world.Pass(is_calm ? 2 : 1 + world.Below(4));
  world.RunKubelets();
  if (is_calm || world.Below(3) > 0) world.RunStatefulSetController();
  if (is_calm || world.Below(3) > 0) world.RunScheduler();
  return ReconcileOnce(world);
}

ClusterModel MakeWorld(std::mt19937& random) {
  ClusterModel world(random);
  for (int nodes = 1 + world.Below(4); nodes > 0; --nodes) {
    const int places = 1 + world.Below(5);
    world.nodes().push_back({places, world.Below(places + 1), true});
  }
  const int min = world.Below(5), max = std::max(1, min) + world.Below(10);
  world.job().spec.workers.min_replicas = min;
  world.job().spec.workers.max_replicas = max;
  return world;
}

// The world stands still: the job must have what it can get, and want nothing more.
void ExpectSettled(ClusterModel& world) {
  const Sizes sizes = SizesOf(world.job().spec);
  const int fits = world.PlacesForJob();
  const int expected = fits < sizes.NeededToRun() ? 0 : std::min(sizes.wanted, fits);

  const View view = world.Observe();
  const Plan plan = PlanElasticJob(view);

  int running = 0;
  std::set<std::string> names;
  for (const Worker& worker : view.pods) {
    if (!Runs(worker)) {
      EXPECT_TRUE(worker.is_gated) << worker.name << " is left pending";
      continue;
    }
    ++running;
    names.insert(worker.name);
  }
  EXPECT_EQ(running, expected) << fits << " fit, " << sizes.wanted << " wanted, minimum " << sizes.min;
  EXPECT_EQ(plan.status.replicas.granted, expected);
  EXPECT_EQ(plan.status.replicas.ready, expected);
  EXPECT_EQ(plan.status.phase, expected > 0 ? kPhaseRunning : kPhaseWaiting);
  if (expected > 0 && view.hosts) {
    std::set<std::string> listed;
    for (const Host& host : view.hosts->hosts) listed.insert(host.pod);
    EXPECT_EQ(listed, names);
  } else {
    EXPECT_EQ(view.hosts.has_value(), expected > 0);
  }
  // A fixed point: nothing more is written.
  EXPECT_TRUE(plan.park.empty() && plan.lift.empty() && plan.bury.empty() && plan.events.empty());
  EXPECT_EQ(plan.status, view.job->status);
  EXPECT_EQ(plan.hosts, view.hosts);
  if (view.workers && plan.workers) {
    EXPECT_EQ(plan.workers->replicas, view.workers->replicas);
    EXPECT_EQ(plan.workers->granted, view.workers->granted);
  }
}

TEST(ElasticPlan, HoldsWhatFitsAndKillsNobodyInAnyHistory) {
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    ClusterModel world = MakeWorld(random);
    for (int i = world.Below(60); i > 0; --i) {
      Disturb(world);
      Tick(world, false);
    }
    world.job().spec.run_policy.suspend = false;
    // Until nothing was done for longer than any grace or cool-down, two seconds a step.
    for (int i = 0, idle = 0; i < 100 && idle < 9; ++i) idle = Tick(world, true) ? idle + 1 : 0;
    ExpectSettled(world);
    if (::testing::Test::HasFailure()) return;  // One seed tells enough.
  }
}

}  // namespace
}  // namespace grus
