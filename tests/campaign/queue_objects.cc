// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/queue_objects.h"

#include <utility>

namespace grus::testing {
namespace {

Json Made(const char* kind, const std::string& name) {
  Json object = FromText(R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","metadata":{},"spec":{}})");
  object["kind"] = kind;
  object["metadata"]["name"] = name;
  return object;
}

}  // namespace

void AddQueue(World& world, const std::string& name, std::string_view spec) {
  Json queue = Made("GpuQueue", name);
  queue["spec"] = FromText(spec);
  queue["spec"]["preemptionNoticeSeconds"] = 5;
  Must(world.server.Create(kQueues, std::move(queue)));
}

void AddPool(World& world, const std::string& name, std::string_view spec) {
  Json pool = Made("NodePool", name);
  pool["spec"]["nodeSelector"]["pool"] = name;
  kube::MergePatch(pool["spec"], FromText(spec));
  Must(world.server.Create(kPools, std::move(pool)));
}

void AddNodeIn(World& world, const std::string& pool, const std::string& name, int gpus) {
  AddNode(world, name, gpus, Json::MakeObject({{"pool", pool}}));
}

}  // namespace grus::testing
