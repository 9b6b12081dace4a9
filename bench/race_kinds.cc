// SPDX-License-Identifier: Apache-2.0
#include "bench/race_kinds.h"

#include "clientlib/model/core_v1.h"

namespace bench {
namespace {

using kube::Json;

struct Description {
  RaceKind kind;
  const char* name;
  const char* resource;
};
constexpr Description kDescriptions[] = {
    {RaceKind::kNvidia, "nvidia", kGpus},
    {RaceKind::kAmd, "amd", "amd.com/gpu"},
    {RaceKind::kCpu, "cpu", "cpu"},
    {RaceKind::kUngated, "ungated", kGpus},
};

const Description& Describe(RaceKind kind) { return kDescriptions[static_cast<int>(kind)]; }

}  // namespace

const char* ToString(RaceKind kind) { return Describe(kind).name; }

std::optional<RaceKind> ParseRaceKind(const std::string& name) {
  for (const Description& description : kDescriptions) {
    if (description.name == name) return description.kind;
  }
  return std::nullopt;
}

std::vector<RaceKind> AllRaceKinds() {
  std::vector<RaceKind> all;
  for (const Description& description : kDescriptions) all.push_back(description.kind);
  return all;
}

const char* ResourceOf(RaceKind kind) { return Describe(kind).resource; }

kube::Status PrepareNodes(const GangWorld& world, RaceKind kind) {
  Json resources = Json::MakeObject({{"cpu", "96"}, {kGpus, Json()}, {ResourceOf(RaceKind::kAmd), Json()}});
  resources[ResourceOf(kind)] = "8";
  Json patch = Json::MakeObject();
  patch["status"]["capacity"] = resources;
  patch["status"]["allocatable"] = resources;
  auto nodes = world.client.List(kube::KindOf<kube::Node>(), "");
  if (!nodes) return std::move(nodes).error();
  for (const auto& node : nodes->items) {
    auto patched = world.client.Patch(kube::KindOf<kube::Node>(), {"", node->metadata.name}, kube::PatchType::kMerge,
                                      patch, {.subresource = "status"});
    if (!patched) return std::move(patched).error().with("patch Node " + node->metadata.name);
  }
  return {};
}

}  // namespace bench
