// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/lone_part_workload.h"

#include <algorithm>
#include <chrono>

#include "clientlib/base/wait.h"
#include "controllers/extender/extender.h"
#include "tests/campaign/part_agents.h"
#include "tests/campaign/shared_cards.h"
#include "tests/kit/objects.h"

namespace grus::testing {
namespace {

constexpr char kSets[] = "statefulsets.apps";

bool IsOfSet(const Json& pod, const std::string& set) { return Text(pod, {"metadata", "labels", "app"}) == set; }

template <typename Holds>
int CountLone(const World& world, const std::string& set, const Holds& holds) {
  const auto& pods = world.All("pods");
  return static_cast<int>(std::ranges::count_if(
      pods, [&](const auto& entry) { return IsOfSet(*entry.second, set) && holds(*entry.second); }));
}

// As the manager's server does.
void ServeScheduler(StockScheduler& scheduler, App& app, const std::function<bool()>& leads, std::stop_token stop) {
  Extender& extender = *app.extender();
  const auto answer = [&extender](std::string_view verb, std::string_view body) {
    return verb == "filter" ? extender.Filter(body) : verb == "bind" ? extender.Bind(body) : extender.Prioritize(body);
  };
  scheduler.port().Serve({answer, [&app] { return app.IsReady(); }, leads}, std::move(stop));
}

}  // namespace

void LonePartWorkload::Prepare(World& world) const {
  CreateCrds(world);
  StockScheduler& scheduler = StockScheduler::Start(world, traits_.habits);
  if (traits_.stand_in != nullptr) scheduler.port().SetStandIn(traits_.stand_in(world));
  traits_.prepare(world);
}

void LonePartWorkload::RunProcess(const kube::testing::ProcessContext& context, std::stop_token stop) const {
  if (traits_.stand_in != nullptr) {
    kube::WaitFor(context.clock, std::chrono::hours(24 * 365), stop);
    return;
  }
  auto& scheduler = static_cast<StockScheduler&>(*context.caller);
  const auto serve = [&scheduler](App& app, const std::function<bool()>& leads, std::stop_token end) {
    ServeScheduler(scheduler, app, leads, std::move(end));
  };
  RunApp(context, traits_.uses_leases, Nominations::kAuto, std::move(stop), {}, serve);
}

std::string LonePartWorkload::NameOf(std::string_view resource, const Json& object) const {
  // Which of alike pods has a place is chance.
  if (resource == "pods") return Text(object, {"metadata", "labels", "app"}) + "-*";
  return Workload::NameOf(resource, object);
}

void LonePartWorkload::Mask(std::string_view resource, Json& object) const {
  if (resource != "pods") {
    object = Json();
    return;
  }
  const std::string phase = Text(object, {"status", "phase"});
  object["status"] = Json::MakeObject({{"phase", phase}, {"ready", IsReady(object)}});
  object["metadata"] = Json::MakeObject({{"has-gpu", !PlannedGpus(object).empty()}});
  object["spec"].Erase("hostname");  // With the ordinal.
}

std::vector<kube::testing::Invariant> LonePartWorkload::Invariants() const {
  return {NoCardOverfull, NoneBoundWithoutCard, BoundWhereItWasAsked, StaysWhereItWasSaid, NoneIsRefusedByItsKubelet};
}

std::vector<std::string> LonePartWorkload::CheckRest(const World& world) const {
  std::vector<std::string> complaints;
  CheckCards(world, complaints);
  CheckOwners(world, complaints);
  return complaints;
}

void SubmitLone(World& world, const std::string& name, int replicas, int amount, const std::string& resource) {
  Json spec = kit::PodSpec(amount, "{}", resource);
  spec["schedulerName"] = kStockScheduler;
  Must(world.server.Create(kSets, kit::MakeStatefulSet(name, replicas, std::move(spec), Json(), kNamespace)));
}

void ScaleLone(World& world, const std::string& name, int replicas) {
  EditSpec(world, kSets, name, R"({"replicas":)" + std::to_string(replicas) + "}");
}

int LoneRunning(const World& world, const std::string& name) {
  return CountLone(world, name, [&](const Json& pod) {
    return IsReady(pod) && world.Get("nodes", {"", Text(pod, {"spec", "nodeName"})}) != nullptr;
  });
}

int LoneWaiting(const World& world, const std::string& name) {
  return CountLone(world, name, [](const Json& pod) { return !IsBound(pod) && !kube::testing::IsBeingDeleted(pod); });
}

}  // namespace grus::testing
