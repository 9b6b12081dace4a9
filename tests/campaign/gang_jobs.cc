// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/gang_jobs.h"

#include <algorithm>
#include <chrono>

namespace grus::testing {
namespace {

constexpr char kSets[] = "statefulsets.apps", kOutsider[] = "outsider";

bool HasPhase(const World& world, std::string_view phase) {
  const Json* group = world.Get(kGroups, {kNamespace, kGang});
  return group && Text(*group, {"status", "phase"}) == phase;
}

// Its pods run, whatever the gang says: of what ended before the clock was set back it may say that it was of this run.
bool RunsAll(const World& world, const std::string& job, std::ptrdiff_t pods) {
  const auto all = world.server.List("pods", kNamespace);
  return pods == std::count_if(all.begin(), all.end(), [&](const auto& pod) {
           return Text(*pod, {"metadata", "labels", "job-name"}) == job && IsReady(*pod);
         });
}

Step UntilRolledBack(int times, Act act) {
  return Until(
      "it was rolled back " + std::to_string(times) + " times",
      [=](const World& world) {
        const Json* group = world.Get(kGroups, {kNamespace, kGang});
        return group && kube::testing::IntAt(*group, {"status", "attempts"}) >= times;
      },
      std::move(act));
}

// As a CronJob does: the pods of the first are still there when those of the second come, for which there is half the
// room at first.
GangStory SecondJob() {
  return {.name = "gang-second-job",
          .prepare =
              [](World& world) {
                AddNodes(world, 1, 8);
                SubmitGroup(world, kGang, 4);
                SubmitJob(world, "monday", 4, 2);
              },
          .steps = {UntilRuns(4, [](World& world) { EndWork(world, kGang); }),
                    Until(
                        "it is finished", [](const World& world) { return HasPhase(world, "Finished"); },
                        [](World& world) { SubmitOutsider(world, kOutsider, 4); }),
                    UntilPodRuns(kOutsider, [](World& world) { SubmitJob(world, "tuesday", 4, 2); }),
                    UntilWaits(4, [](World& world) { Delete(world, "pods", kOutsider); }),
                    Until(
                        "the second one runs", [](const World& world) { return RunsAll(world, "tuesday", 4); },
                        [](World& world) { EndWork(world, kGang); }),
                    Until("it is finished again", [](const World& world) { return HasPhase(world, "Finished"); })},
          .rules = {.most_members = 8}};
}

// Each try lets go members that the Job makes again; one member finds no node until there is a scheduler for it. More
// roll-backs than the Job may have failures.
GangStory JobRolledBack(std::string name, std::string_view job_spec) {
  return {.name = std::move(name),
          .prepare =
              [job_spec = std::string(job_spec)](World& world) {
                AddNodes(world, 2, 8);
                SubmitGroup(world, kGang, 4, kShortTimeout);
                SubmitJob(world, "train", 3, 4, kGang, job_spec);
                SubmitSet(world, "odd", 1, 0, kGang, R"({"schedulerName":"other"})");
              },
          .steps = {UntilRolledBack(4, StartOtherScheduler), UntilRuns(4)},
          .rules = {.may_roll_back = true}};
}

// The replacement comes when the gang's time has long passed since the loss.
GangStory LateReplacement() {
  const auto scale = [](int replicas) {
    return [=](World& world) { EditSpec(world, kSets, kGang, R"({"replicas":)" + std::to_string(replicas) + "}"); };
  };
  return {.name = "gang-late-replacement",
          .prepare =
              [](World& world) {
                AddNodes(world, 2, 8);
                SubmitGang(world, 4, 4, 4);
              },
          .steps = {UntilRuns(4, scale(3)),
                    {.name = "three of four go on",
                     .when = [](const World& world) { return ReasonOf(world, kGang) == "BelowMinimum"; },
                     .act = [](World&) {},
                     .lasts = std::chrono::seconds(2 * kLongTimeout)},
                    Until(
                        "they still do", [](const World& world) { return ReasonOf(world, kGang) == "BelowMinimum"; },
                        scale(4)),
                    UntilRuns(4)},
          .rules = {.most_members = 5}};
}

}  // namespace

std::vector<GangStory> GangsOfJobs() {
  return {SecondJob(), JobRolledBack("gang-of-job-rolled-back", R"({"backoffLimit":2})"),
          JobRolledBack("gang-of-job-with-policy-rolled-back",
                        R"({"backoffLimit":2,"podFailurePolicy":{"rules":[
                            {"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget","status":"True"}]},
                            {"action":"FailJob","onExitCodes":{"operator":"NotIn","values":[0]}}]}})"),
          LateReplacement()};
}

}  // namespace grus::testing
