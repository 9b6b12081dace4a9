// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/shared_cards.h"

#include <algorithm>
#include <set>

#include "clientlib/testing/cluster/node_fit.h"
#include "crds/types/sharing_names.h"
#include "tests/campaign/part_agents.h"
#include "tests/campaign/stock_scheduler.h"

namespace grus::testing {
namespace {

using kube::testing::AnnotationOf;
using kube::testing::HasEnded;
using kube::testing::ServerChange;

constexpr std::int64_t kWhole = 1000;

bool IsOurs(const Json& pod) { return Text(pod, {"spec", "schedulerName"}) == kStockScheduler; }

// A pod of ours that has just been bound.
const Json* BoundNow(const ServerChange& change) {
  if (change.resource != "pods" || !change.after || !IsOurs(*change.after) || !IsBound(*change.after)) return nullptr;
  return change.before && IsBound(*change.before) ? nullptr : change.after.get();
}
std::string NameOf(const Json& object) { return Text(object, {"metadata", "name"}); }

Json::Array InventoryOf(const Json& node) {
  const std::string_view text = AnnotationOf(node, api::kGpuInventoryAnnotation);
  if (text.empty()) return {};
  const Json inventory = FromText(text);
  return *inventory.AsArray();
}

std::map<std::string, std::int64_t> HeldBy(const Json& gpu) {
  if (Text(gpu, {"mode"}) == "milli") return {{api::kGpuMilliResource, kWhole}};
  return {{api::kGpuMemResource, kube::testing::IntAt(gpu, {"memoryMiB"}) / 1024}};
}

void Offer(World& world, const std::string& name, Json::Array gpus) {
  std::map<std::string, std::int64_t> sums;
  for (const Json& gpu : gpus) {
    for (const auto& [resource, amount] : HeldBy(gpu)) {
      sums[resource] += gpu.Find("healthy") == nullptr ? amount : 0;
    }
  }
  Json node = *world.server.Get("nodes", {"", name});
  node["metadata"]["annotations"][api::kGpuInventoryAnnotation] = kube::ToText(Json(std::move(gpus)));
  Must(world.server.Update("nodes", std::move(node)));
  Json offered = *world.server.Get("nodes", {"", name});
  for (const auto& [resource, sum] : sums) offered["status"]["allocatable"][resource] = std::to_string(sum);
  Must(world.server.Update("nodes", std::move(offered), "status"));
}

}  // namespace

void AddCards(World& world, const std::string& name, const std::string& mode, const std::vector<int>& gibs) {
  Must(world.cluster.AddNode(name, 0));
  Json::Array gpus;
  for (std::size_t i = 0; i < gibs.size(); ++i) {
    gpus.push_back(Json::MakeObject({{"uuid", "GPU-" + name + "-" + std::to_string(i)},
                                     {"memoryMiB", gibs[i] * 1024},
                                     {"milli", kWhole},
                                     {"mode", mode}}));
  }
  Offer(world, name, std::move(gpus));
}

void SetSickCard(World& world, const std::string& node, int index) {
  const auto object = world.server.Get("nodes", {"", node});
  if (!object) return;
  Json::Array gpus = InventoryOf(*object);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    gpus[i].Erase("healthy");
    if (static_cast<int>(i) == index) gpus[i]["healthy"] = false;
  }
  Offer(world, node, std::move(gpus));
}

std::int64_t CardAsk::gpus() const {
  const bool is_whole = resource == api::kGpuMilliResource && amount > kWhole && amount % kWhole == 0;
  return is_whole ? amount / kWhole : 1;
}

CardAsk AskOf(const Json& pod) {
  CardAsk ask;
  for (const Json& container : kube::testing::ItemsAt(pod, {"spec", "containers"})) {
    for (const char* resource : {api::kGpuMilliResource, api::kGpuMemResource}) {
      const std::string text = Text(container, {"resources", "limits", resource});
      if (text.empty()) continue;
      ask.resource = resource;
      ask.amount += std::stoll(text);
    }
  }
  return ask;
}

std::int64_t Card::left(const std::string& resource) const {
  const auto all = holds.find(resource), taken = used.find(resource);
  return (all == holds.end() ? 0 : all->second) - (taken == used.end() ? 0 : taken->second);
}

std::map<std::string, Card> CardsOf(const World& world) {
  std::map<std::string, Card> cards;
  for (const auto& [key, node] : world.All("nodes")) {
    for (const Json& gpu : InventoryOf(*node)) {
      cards[Text(gpu, {"uuid"})] = {.node = key.name, .is_well = gpu.Find("healthy") == nullptr, .holds = HeldBy(gpu)};
    }
  }
  for (const auto& [key, pod] : world.All("pods")) {
    const CardAsk ask = AskOf(*pod);
    if (ask.amount == 0 || HasEnded(*pod) || !IsBound(*pod)) continue;
    for (const std::string& gpu : PlannedGpus(*pod)) {
      const auto card = cards.find(gpu);
      if (card != cards.end()) card->second.used[ask.resource] += ask.each();
    }
  }
  return cards;
}

// Holds without exception: whoever leads knows all that was bound before it began, and counts what it binds itself from
// its decision on.
std::string NoCardOverfull(const World& world, const ServerChange& change) {
  if (BoundNow(change) == nullptr) return {};
  for (const auto& [gpu, card] : CardsOf(world)) {
    for (const auto& [resource, used] : card.used) {
      if (card.left(resource) >= 0) continue;
      return gpu + " holds " + std::to_string(used + card.left(resource)) + " " + resource + ", pods have " +
             std::to_string(used);
    }
  }
  return {};
}

// Holds without exception: an inventory is written before the node offers anything, and is seen before, too.
std::string NoneBoundWithoutCard(const World& world, const ServerChange& change) {
  const Json* const pod = BoundNow(change);
  if (pod == nullptr || AskOf(*pod).amount == 0) return {};
  const std::string node = Text(*pod, {"spec", "nodeName"});
  const Json* const there = world.Get("nodes", {"", node});
  if (there == nullptr || InventoryOf(*there).empty()) return {};
  const std::map<std::string, Card> cards = CardsOf(world);
  const std::vector<std::string> planned = PlannedGpus(*pod);
  const auto is_there = [&](const std::string& gpu) {
    const auto card = cards.find(gpu);
    return card != cards.end() && card->second.node == node;
  };
  const bool is_right = static_cast<std::int64_t>(planned.size()) == AskOf(*pod).gpus() &&
                        std::set<std::string>(planned.begin(), planned.end()).size() == planned.size() &&
                        std::ranges::all_of(planned, is_there);
  return is_right ? "" : NameOf(*pod) + " is bound to " + node + " without its GPU there";
}

std::string BoundWhereItWasAsked(const World& world, const ServerChange& change) {
  const Json* const pod = BoundNow(change);
  if (pod == nullptr) return {};
  const std::string node = Text(*pod, {"spec", "nodeName"});
  if (StockScheduler::Of(world).IsAsked(Text(*pod, {"metadata", "uid"}), node)) return {};
  return NameOf(*pod) + " is bound to " + node + ", which the scheduler never asked for";
}

std::string StaysWhereItWasSaid(const World& world, const ServerChange& change) {
  if (change.resource != "pods" || !change.after || !IsOurs(*change.after)) return {};
  const std::string said = StockScheduler::Of(world).SaidNode(Text(*change.after, {"metadata", "uid"}));
  const std::string node = Text(*change.after, {"spec", "nodeName"});
  return said.empty() || node == said
             ? ""
             : NameOf(*change.after) + " is on \"" + node + "\", and was said to be on " + said;
}

// Nodes that have gone do not count: that they have may not be known yet.
std::string NoneIsRefusedByItsKubelet(const World& world, const ServerChange& change) {
  if (change.resource != "pods" || !change.after || !IsOurs(*change.after)) return {};
  if (world.Get("nodes", {"", Text(*change.after, {"spec", "nodeName"})}) == nullptr) return {};
  if (Text(*change.after, {"status", "reason"}) != "UnexpectedAdmissionError") return {};
  return NameOf(*change.after) + " is refused by its kubelet";
}

void CheckCards(const World& world, std::vector<std::string>& complaints) {
  for (const std::string& complaint : StockScheduler::Of(world).complaints()) complaints.push_back(complaint);
  const std::map<std::string, Card> cards = CardsOf(world);
  for (const auto& [key, pod] : world.All("pods")) {
    if (!IsOurs(*pod) || IsBound(*pod) || HasEnded(*pod)) continue;
    const CardAsk ask = AskOf(*pod);
    std::map<std::string, std::int64_t> fitting;  // GPUs, by node.
    for (const auto& [gpu, card] : cards) {
      fitting[card.node] += card.is_well && card.left(ask.resource) >= ask.each() ? 1 : 0;
    }
    for (const auto& [node, count] : fitting) {
      if (count >= ask.gpus()) complaints.push_back(key.name + " rests without a node, and fits on " + node);
    }
  }
}

}  // namespace grus::testing
