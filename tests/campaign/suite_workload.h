// SPDX-License-Identifier: Apache-2.0
// What all workloads of grus in the fault campaign share: its process, its CRDs, what must hold of any of them, and
// words for what users do.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/testing/cluster/objects.h"
#include "clientlib/testing/faults/workload.h"
#include "controllers/manager/options.h"

namespace grus::testing {

using kube::Json;
using kube::testing::Step;
using kube::testing::World;

inline constexpr char kNamespace[] = "default";

std::string Text(const Json& object, kube::testing::JsonPath path);
Json Parse(std::string_view text);  // Throws.
// For what only a mistake in a story can make fail.
template <typename T>
void Must(const kube::Result<T>& result) {
  if (!result) throw std::runtime_error(result.error().message());
}
bool IsReady(const Json& pod);

// grus-manager, until `stop`.
void RunSuite(const kube::testing::ProcessContext& context, bool uses_leases, Nominations nominations,
              std::stop_token stop);

void CreateCrds(World& world);  // Those that are missing.
void AddNode(World& world, const std::string& name, int gpus, const Json& labels = Json::MakeObject());
// `spec` is a merge patch. Nothing happens if there is no such object.
void EditSpec(World& world, const std::string& resource, const std::string& name, std::string_view spec);
void Delete(World& world, const std::string& resource, const std::string& name);

Step Until(std::string name, std::function<bool(const World&)> when, std::function<void(World&)> act = nullptr);

// No node holds more GPUs' worth of pods than it has. An invariant.
std::string NoGpuTwice(const World& world, const kube::testing::ServerChange& change);

// For Workload::CheckRest(): owners that do not exist; a status, or one of its conditions Ready, Reconciling and
// Stalled, that is about another generation. In `final_phases` conditions stay as they were said.
void CheckOwners(const World& world, std::vector<std::string>& complaints);
void CheckGenerations(const World& world, std::string_view resource, const std::vector<std::string>& final_phases,
                      std::vector<std::string>& complaints);

void SortConditions(Json& object);  // By type.

}  // namespace grus::testing
