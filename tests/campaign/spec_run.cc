// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/spec_run.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "crds/types/all_crds.h"
#include "tests/campaign/elastic_workload.h"

namespace grus::testing {
namespace {

using namespace std::chrono_literals;
using kube::testing::Outcome;

constexpr kube::Duration kLongestGap = 15s;  // Between quick edits.

const kube::ObjectKey kKey{kNamespace, kEditedJob};

void AddNodes(World& world, const SpecBase& base) {
  for (int i = 0; i < base.nodes; ++i) {
    const kube::Status added = world.cluster.AddNode("node-" + std::to_string(i), base.gpus);
    if (!added) throw std::runtime_error(added.error().message());
  }
}

// The user's update. False: the server refuses it.
bool SetSpec(World& world, const Json& spec) {
  const auto job = world.server.Get(kJobs, kKey);
  if (!job) return true;  // Its time to live is over.
  Json edited = *job;
  edited["spec"] = spec;
  return world.server.Update(kJobs, std::move(edited)).ok();
}

Json WithSuspend(const Json& job, bool is_suspended) {
  return *Edited(job, {"spec.runPolicy.suspend", Json(is_suspended)}).Find("spec");
}

Step AtRest(std::function<void(World&)> act = nullptr) {
  return {"rest", [](const World&) { return true; }, std::move(act), true};
}

Outcome RunSteps(const SpecPlan& plan, std::vector<Step> steps, std::function<void(World&)> submit) {
  const ElasticWorkload workload({.name = plan.base->name,
                                  .prepare =
                                      [&](World& world) {
                                        AddNodes(world, *plan.base);
                                        submit(world);
                                      },
                                  .steps = std::move(steps)});
  return kube::testing::Run(workload, {plan.base->name, plan.seed, {}});
}

}  // namespace

const std::vector<SpecBase>& SpecBases() {
  static const std::vector<SpecBase> kBases = {
      {"running", 2, 8, R"({"workersSpec":{"minReplicas":2,"maxReplicas":4}})"},
      {"targeted", 2, 8, R"({"workersSpec":{"minReplicas":2,"maxReplicas":8,"targetReplicas":4}})"},
      {"shrunk", 1, 4, R"({"workersSpec":{"minReplicas":2,"maxReplicas":6}})"},
      {"suspended", 2, 8, R"({"workersSpec":{"minReplicas":2,"maxReplicas":4},"runPolicy":{"suspend":true}})"},
      {"waiting", 1, 2, R"({"workersSpec":{"minReplicas":4,"maxReplicas":4}})"},
  };
  return kBases;
}

std::string ToText(const SpecPlan& plan) {
  return "base=" + plan.base->name + " seed=" + std::to_string(plan.seed) + (plan.is_quick ? " quick " : " ") +
         ToText(plan.edits);
}

kube::Result<SpecPlan> ParsePlan(std::string_view text) {
  const auto refused = [&] {
    return kube::Error(kube::ErrorCode::kInvalidArgument,
                       "a plan is \"base=NAME seed=N [quick] spec.PATH=JSON...\", not \"" + std::string(text) + "\"");
  };
  const std::size_t edits = text.find(" spec."), seed = text.find(" seed=");
  if (!text.starts_with("base=") || edits == std::string_view::npos || seed >= edits) return refused();
  SpecPlan plan;
  for (const SpecBase& base : SpecBases()) {
    if (base.name == text.substr(5, seed - 5)) plan.base = &base;
  }
  if (plan.base == nullptr) return refused();
  plan.seed = std::strtoull(text.data() + seed + 6, nullptr, 10);
  plan.is_quick = text.substr(seed, edits - seed).ends_with(" quick");
  auto parsed = ParseEdits(text.substr(edits + 1));
  if (!parsed) return std::move(parsed).error();
  plan.edits = *std::move(parsed);
  return plan;
}

const Json& JobSchema() {
  static const Json kSchema = [] {
    const Json crd = kube::MakeCrd(api::AllCrds().at(0));
    return *crd.At({"spec", "versions"})->AsArray()->at(0).At({"schema", "openAPIV3Schema"});
  }();
  return kSchema;
}

Json BaseObject(const SpecBase& base) {
  World world(1);
  CreateCrds(world);
  Submit(world, kEditedJob, base.spec);
  return *world.server.Get(kJobs, kKey);
}

Rehearsal Rehearse(const SpecPlan& plan) {
  World world(1);
  CreateCrds(world);
  Submit(world, kEditedJob, plan.base->spec);
  Rehearsal rehearsal;
  rehearsal.stored.push_back(*world.server.Get(kJobs, kKey));
  for (const SpecEdit& edit : plan.edits) {
    rehearsal.wanted.push_back(Edited(rehearsal.stored.back(), edit));
    rehearsal.is_refused.push_back(!SetSpec(world, *rehearsal.wanted.back().Find("spec")));
    rehearsal.stored.push_back(*world.server.Get(kJobs, kKey));
  }
  return rehearsal;
}

LiveRun RunLive(const SpecPlan& plan, const Rehearsal& rehearsal, const LiveRunOptions& options) {
  LiveRun run;
  run.is_refused.resize(options.edits);
  const auto edit = [&](World& world, std::size_t i) {
    run.is_refused[i] = !SetSpec(world, *rehearsal.wanted[i].Find("spec"));
  };
  std::vector<Step> steps;
  if (plan.is_quick) {
    steps.push_back(AtRest([&](World& world) {
      kube::Duration at{};
      for (std::size_t i = 0; i < options.edits; ++i) {
        world.simulation.After(at, [&edit, &world, i] { edit(world, i); });
        at += world.simulation.Between(0s, kLongestGap);
      }
    }));
    steps.back().lasts = kLongestGap * static_cast<int>(options.edits);
  } else {
    for (std::size_t i = 0; i < options.edits; ++i) {
      steps.push_back(AtRest([&edit, i](World& world) { edit(world, i); }));
    }
  }
  const auto sets = [](Json spec) { return [spec](World& world) { (void)SetSpec(world, spec); }; };
  if (options.undoes) steps.push_back(AtRest(sets(*rehearsal.stored[0].Find("spec"))));
  if (options.restarts) {
    const Json& target = rehearsal.stored[options.undoes ? 0 : options.edits];
    steps.push_back(AtRest(sets(WithSuspend(target, true))));
    steps.push_back(AtRest(sets(*target.Find("spec"))));
  }
  steps.push_back(AtRest());
  run.outcome = RunSteps(plan, std::move(steps), [&](World& world) { Submit(world, kEditedJob, plan.base->spec); });
  return run;
}

Outcome RunFresh(const SpecBase& base, std::uint64_t seed, const Json& job) {
  const auto submit = [&](World& world) {
    Json fresh = Json::MakeObject({{"apiVersion", *job.Find("apiVersion")},
                                   {"kind", *job.Find("kind")},
                                   {"metadata", Json::MakeObject({{"name", kEditedJob}, {"namespace", kNamespace}})},
                                   {"spec", *job.Find("spec")}});
    const auto made = world.server.Create(kJobs, std::move(fresh));
    if (!made) throw std::runtime_error(made.error().message());
  };
  return RunSteps({&base, seed, false, {}}, {AtRest()}, submit);
}

}  // namespace grus::testing
