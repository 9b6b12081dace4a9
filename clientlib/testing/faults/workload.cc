// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/faults/workload.h"

namespace kube::testing {

World::World(std::uint64_t seed) : simulation(seed), server(simulation, {.seed = seed}), cluster(simulation, server) {
  server.AddObserver([this](const ServerChange& change) { changes.push_back(change); });
}

const Json* World::Get(std::string_view resource, const ObjectKey& key) const {
  const Objects& all = All(resource);
  const auto it = all.find(key);
  return it == all.end() ? nullptr : it->second.get();
}

const World::Objects& World::All(std::string_view resource) const {
  static const Objects kNone;
  const auto it = objects.find(resource);
  return it == objects.end() ? kNone : it->second;
}

std::string Workload::NameOf(std::string_view, const Json& object) const {
  const Json* prefix = object.At({"metadata", "generateName"});
  if (prefix != nullptr && prefix->AsString()) return *prefix->AsString() + "*";
  return *object.At({"metadata", "name"})->AsString();
}

}  // namespace kube::testing
