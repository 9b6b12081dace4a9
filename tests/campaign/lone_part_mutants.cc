// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/lone_part_mutants.h"

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "crds/types/sharing_names.h"
#include "tests/campaign/lone_part_stories.h"
#include "tests/campaign/lone_part_workload.h"
#include "tests/campaign/part_agents.h"
#include "tests/campaign/rule_check.h"

namespace grus::testing {
namespace {

using kube::Error;
using kube::ErrorCode;

constexpr char kDone[] = R"({"Error":""})";

// An extender that lets each pod go anywhere, and binds as `bind` does.
using BindsPod = std::function<void(World& world, const kube::ObjectKey& pod, const std::string& node)>;
ExtenderPort::Verbs LetsAllGo(World& world, BindsPod bind) {
  return [&world, bind = std::move(bind)](std::string_view verb, std::string_view body) -> ExtenderPort::Answer {
    const auto call = kube::ParseJson(body);
    if (!call || !call->is_object()) return Error(ErrorCode::kInvalidArgument, "no object");
    if (verb == "prioritize") return std::string("[]");
    if (verb == "filter") {
      const Json* const nodes = call->Find("NodeNames");
      return kube::ToText(Json::MakeObject({{"NodeNames", nodes ? *nodes : Json()}}));
    }
    const std::string name = Text(*call, {"PodName"}), node = Text(*call, {"Node"});
    const auto pod = world.server.Get("pods", {kNamespace, name});
    if (!pod || IsBound(*pod) || Text(*pod, {"metadata", "uid"}) != Text(*call, {"PodUID"})) {
      return std::string(R"({"Error":"there is no such pod to bind"})");
    }
    bind(world, {kNamespace, name}, node);
    return std::string(kDone);
  };
}

void Plan(World& world, const kube::ObjectKey& pod, const std::string& gpu) {
  Json planned = *world.server.Get("pods", pod);
  planned["metadata"]["annotations"][api::kPlannedGpuAnnotation] = gpu;
  Must(world.server.Update("pods", std::move(planned)));
}

// It sees only the sum over a node's GPUs.
ExtenderPort::Verbs PlansFirstGpuForAll(World& world) {
  return LetsAllGo(world, [](World& here, const kube::ObjectKey& pod, const std::string& node) {
    Plan(here, pod, "GPU-" + node + "-0");
    (void)here.server.Bind(pod, node);
  });
}

ExtenderPort::Verbs PlansNothing(World& world) {
  return LetsAllGo(world, [](World& here, const kube::ObjectKey& pod, const std::string& node) {
    (void)here.server.Bind(pod, node);
  });
}

ExtenderPort::Verbs BindsElsewhere(World& world) {
  return LetsAllGo(world, [](World& here, const kube::ObjectKey& pod, const std::string& node) {
    (void)here.server.Bind(pod, node == "node-0" ? "node-1" : "node-0");
  });
}

ExtenderPort::Verbs SaysThatItBinds(World& world) {
  return LetsAllGo(world, [](World&, const kube::ObjectKey&, const std::string&) {});
}

ExtenderPort::Verbs RefusesAll(World&) {
  return [](std::string_view verb, std::string_view) -> ExtenderPort::Answer {
    if (verb == "filter") return std::string(R"({"NodeNames":[],"FailedNodes":{}})");
    return Error(ErrorCode::kInvalidArgument, "nothing is right");
  };
}

ExtenderPort::Verbs TakesAnything(World&) {
  return [](std::string_view, std::string_view) -> ExtenderPort::Answer { return std::string(kDone); };
}

Mutant MutantOf(const char* name, ExtenderPort::Verbs (*stand_in)(World&), const char* complaint) {
  LonePartWorkload::Traits traits;
  traits.name = name;
  traits.prepare = [](World& world) {
    PartAgents::Start(world);
    AddSharedNode(world, "node-0", 2);
    AddSharedNode(world, "node-1", 2);
    SubmitLone(world, "large", 6, 600, api::kGpuMilliResource);
  };
  Step step = Until(
      "anything", [](const World&) { return true; }, [](World&) {});
  step.lasts = std::chrono::minutes(10);
  traits.steps = {std::move(step)};
  traits.stand_in = stand_in;
  return {std::make_unique<LonePartWorkload>(std::move(traits)), complaint};
}

}  // namespace

std::vector<std::string> CheckLonePartRules(int& asked) {
  std::vector<Mutant> mutants;
  mutants.push_back(MutantOf("plans-first-gpu-for-all", PlansFirstGpuForAll,
                             "holds 1000 ai.centauruscloud.io/gpu-milli, pods have 1200"));
  mutants.push_back(MutantOf("plans-first-gpu-for-all", PlansFirstGpuForAll, "is refused by its kubelet"));
  mutants.push_back(MutantOf("plans-nothing", PlansNothing, "without its GPU there"));
  mutants.push_back(MutantOf("binds-elsewhere", BindsElsewhere, "which the scheduler never asked for"));
  mutants.push_back(MutantOf("binds-elsewhere", BindsElsewhere, "and was said to be on"));
  mutants.push_back(MutantOf("says-that-it-binds", SaysThatItBinds, "is done, it says, and it is on \"\""));
  mutants.push_back(MutantOf("refuses-all", RefusesAll, "rests without a node, and fits on"));
  mutants.push_back(MutantOf("takes-anything", TakesAnything, "takes a body that makes no sense"));
  return CheckRules(LonePartStories(), mutants, asked);
}

}  // namespace grus::testing
