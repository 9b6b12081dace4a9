// SPDX-License-Identifier: Apache-2.0
// What all workloads of grus in the fault campaign share: its process, its CRDs, what must hold of any of them, and
// words for what users do.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/testing/cluster/objects.h"
#include "clientlib/testing/faults/workload.h"
#include "controllers/manager/app.h"
#include "controllers/manager/options.h"
#include "tests/kit/must.h"

namespace grus::testing {

using kit::FromText;
using kit::Must;
using kube::Json;
using kube::testing::Step;
using kube::testing::World;

inline constexpr char kNamespace[] = "default";

// How long a manager may be late without a fault: its caches, its writes, and a status that waits for company.
inline constexpr kube::Duration kUsualSlack = std::chrono::seconds(10);
// And with faults: two watches that hide news for 5 min each, a process or a server that stands still for 40 s, a crash
// (8 s until the next start) or a lease that runs out (15 s).
inline constexpr kube::Duration kFaultySlack = std::chrono::minutes(12);

std::string Text(const Json& object, kube::testing::JsonPath path);
bool IsBound(const Json& pod);
bool IsReady(const Json& pod);

// Serves what others ask of the app, until `stop`, on a thread of its own. `leads`: whether this process does.
using ServeApp = std::function<void(App& app, const std::function<bool()>& leads, std::stop_token stop)>;

// grus-manager, until `stop`. Not with the controller `but`. `serve`: with the extender, if it is set.
void RunApp(const kube::testing::ProcessContext& context, bool uses_leases, Nominations nominations,
            std::stop_token stop, std::string_view but = {}, const ServeApp& serve = nullptr);

void CreateCrds(World& world);  // Those that are missing.
void AddNode(World& world, const std::string& name, int gpus, const Json& labels = Json::MakeObject());
// `spec` is a merge patch. Nothing happens if there is no such object.
void EditSpec(World& world, const std::string& resource, const std::string& name, std::string_view spec);
void Delete(World& world, const std::string& resource, const std::string& name);

Step Until(std::string name, std::function<bool(const World&)> when, std::function<void(World&)> act = nullptr);

// What may be wrong for a while: it is told once it has been so for longer than the slack.
class Patience {
 public:
  explicit Patience(kube::Duration slack) : slack_(slack) {}
  // `wrong`: what is wrong now, by what it is about. The first that has lasted, also until now; empty: none has.
  std::string Check(kube::TimePoint now, const std::map<std::string, std::string>& wrong);

 private:
  struct Wrong {
    kube::TimePoint since;
    std::string what;
  };
  kube::Duration slack_;
  std::map<std::string, Wrong> wrong_;
};

// No node holds more GPUs' worth of pods than it has. An invariant.
std::string NoGpuTwice(const World& world, const kube::testing::ServerChange& change);

// For Workload::CheckRest(): owners that do not exist; a status, or one of its conditions Ready, Reconciling and
// Stalled, that is about another generation. In `final_phases` conditions stay as they were said.
void CheckOwners(const World& world, std::vector<std::string>& complaints);
void CheckGenerations(const World& world, std::string_view resource, const std::vector<std::string>& final_phases,
                      std::vector<std::string>& complaints);

void SortConditions(Json& object);  // By type.

}  // namespace grus::testing
