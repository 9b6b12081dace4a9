// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/lone_part_stories.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "crds/types/sharing_names.h"
#include "tests/campaign/lone_part_workload.h"
#include "tests/campaign/part_agents.h"
#include "tests/campaign/shared_cards.h"

namespace grus::testing {
namespace {

using std::chrono::seconds;
using LoneStory = LonePartWorkload::Traits;

constexpr const char* kMilli = api::kGpuMilliResource;
constexpr const char* kMem = api::kGpuMemResource;

// So many of the set run, and so many wait.
Step UntilLone(const std::string& set, int run, int wait, std::function<void(World&)> act = nullptr) {
  return Until(
      std::to_string(run) + " of " + set + " run, " + std::to_string(wait) + " wait",
      [=](const World& world) { return LoneRunning(world, set) == run && LoneWaiting(world, set) == wait; },
      std::move(act));
}

std::function<void(World&)> Scales(const std::string& set, int replicas) {
  return [=](World& world) { ScaleLone(world, set, replicas); };
}
std::function<void(World&)> SubmitsLone(const std::string& set, int replicas, int amount, const char* resource) {
  return [=](World& world) { SubmitLone(world, set, replicas, amount, resource); };
}

// Four GPUs by thousandths, and agents that hold pods to their plan.
void AddFourGpus(World& world) {
  PartAgents::Start(world);
  AddSharedNode(world, "node-0", 2);
  AddSharedNode(world, "node-1", 2);
}

// Each large one needs a GPU for itself, and leaves room for a small one.
LoneStory Parts() {
  return {.name = "lone-parts",
          .prepare =
              [](World& world) {
                AddFourGpus(world);
                SubmitLone(world, "large", 6, 600, kMilli);
              },
          .steps = {UntilLone("large", 4, 2, SubmitsLone("small", 5, 400, kMilli)),
                    UntilLone("small", 4, 1, Scales("large", 2)), UntilLone("large", 2, 0, Scales("small", 7)),
                    UntilLone("small", 6, 1)}};
}

// Two whole GPUs of one node: in sum they are free before.
LoneStory WholeGpus() {
  return {.name = "lone-whole-gpus",
          .prepare =
              [](World& world) {
                AddFourGpus(world);
                SubmitLone(world, "part", 4, 600, kMilli);
              },
          .steps = {UntilLone("part", 4, 0, SubmitsLone("whole", 2, 2000, kMilli)),
                    UntilLone("whole", 0, 2, Scales("part", 0)), UntilLone("whole", 2, 0)}};
}

// Cards of 8, 16, 12 and 12 GiB: one, three, two and two pods of five.
LoneStory Memory() {
  return {.name = "lone-memory",
          .prepare =
              [](World& world) {
                AddCards(world, "node-0", "gpushare", {8, 16});
                AddCards(world, "node-1", "gpushare", {12, 12});
                SubmitLone(world, "five", 14, 5, kMem);
              },
          .steps = {UntilLone("five", 8, 6, Scales("five", 3)), UntilLone("five", 3, 0, Scales("five", 10)),
                    UntilLone("five", 8, 2)}};
}

// Of pods that are bound or just being bound, again and again; others of their names come.
void DeleteSome(World& world, const std::string& set, int times) {
  for (const auto& pod : world.server.List("pods", kNamespace)) {
    if (Text(*pod, {"metadata", "labels", "app"}) == set && world.simulation.OneIn(3)) {
      Delete(world, "pods", Text(*pod, {"metadata", "name"}));
    }
  }
  if (times > 1) {
    world.simulation.After(world.simulation.Between(seconds(0), seconds(40)),
                           [&world, set, times] { DeleteSome(world, set, times - 1); });
  }
}

LoneStory PodsDeleted() {
  LoneStory story{.name = "lone-pods-deleted",
                  .prepare =
                      [](World& world) {
                        AddFourGpus(world);
                        SubmitLone(world, "large", 5, 600, kMilli);
                        DeleteSome(world, "large", 8);
                      },
                  .steps = {UntilLone("large", 4, 1, [](World& world) { DeleteSome(world, "large", 8); })}};
  story.steps.front().lasts = seconds(400);
  story.steps.push_back(UntilLone("large", 4, 1));
  return story;
}

// With pods on it, which stay; nobody else comes there until it is well.
LoneStory CardDies() {
  return {.name = "lone-card-dies",
          .prepare =
              [](World& world) {
                AddCards(world, "node-0", "gpushare", {12, 12});
                AddCards(world, "node-1", "gpushare", {12});
                SubmitLone(world, "five", 3, 5, kMem);
                world.simulation.After(seconds(2), [&world] { SetSickCard(world, "node-0", 1); });
              },
          .steps = {UntilLone("five", 3, 0,
                              [](World& world) {
                                SetSickCard(world, "node-0", 0);
                                SetSickCard(world, "node-1", 0);
                                SubmitLone(world, "ten", 1, 10, kMem);
                              }),
                    Until(
                        "the tenth of a minute is over", [](const World&) { return true; },
                        [](World& world) {
                          SetSickCard(world, "node-0", -1);
                          SetSickCard(world, "node-1", -1);
                          ScaleLone(world, "five", 0);
                        }),
                    UntilLone("ten", 1, 0, Scales("five", 9)), UntilLone("five", 4, 5)}};
}

// While pods are bound to it. One of its name comes back, after another.
LoneStory NodeLeaves() {
  return {.name = "lone-node-leaves",
          .prepare =
              [](World& world) {
                AddFourGpus(world);
                SubmitLone(world, "large", 4, 600, kMilli);
                world.simulation.After(world.simulation.Between(seconds(0), seconds(3)),
                                       [&world] { world.cluster.RemoveNode("node-1"); });
              },
          .steps = {UntilLone("large", 2, 2, [](World& world) { AddSharedNode(world, "node-9", 1); }),
                    UntilLone("large", 3, 1, [](World& world) { AddSharedNode(world, "node-1", 2); }),
                    UntilLone("large", 4, 0)}};
}

// It forgets what it has assumed, while its binds are under way.
LoneStory SchedulerRestarts() {
  return {.name = "lone-scheduler-restarts",
          .prepare =
              [](World& world) {
                AddFourGpus(world);
                SubmitLone(world, "large", 4, 600, kMilli);
                for (const int at : {1, 2, 5, 20, 60}) {
                  world.simulation.After(seconds(at), [&world] {
                    StockScheduler::Of(world).Restart(world.simulation.Between(seconds(0), seconds(5)));
                  });
                }
              },
          .steps = {UntilLone("large", 4, 0, SubmitsLone("small", 6, 400, kMilli)), UntilLone("small", 4, 2)}};
}

LoneStory TwoManagersOfLonePods() {
  LoneStory story = Parts();
  story.name = "lone-two-managers";
  story.processes = 2;
  story.uses_leases = true;
  return story;
}

}  // namespace

kube::testing::Workloads LonePartStories() {
  kube::testing::Workloads workloads;
  for (LoneStory& story : std::vector<LoneStory>{Parts(), WholeGpus(), Memory(), PodsDeleted(), CardDies(),
                                                 NodeLeaves(), SchedulerRestarts(), TwoManagersOfLonePods()}) {
    workloads.push_back(std::make_unique<LonePartWorkload>(std::move(story)));
  }
  return workloads;
}

}  // namespace grus::testing
