// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/part_agents.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <utility>

#include "crds/types/sharing_names.h"
#include "tests/campaign/gang_invariants.h"

namespace grus::testing {
namespace {

using kube::testing::AnnotationOf;
using kube::testing::HasEnded;
using kube::testing::ServerChange;

constexpr std::int64_t kWhole = 1000;

// On nodes. How many GPUs it has; which of them is sick; whether the kubelet has no plugin at the moment.
constexpr char kGpus[] = "grus.test/gpus", kSick[] = "grus.test/sick-gpu", kAway[] = "grus.test/plugin-away";

int GpusOf(const Json& node) {
  const std::string_view text = kube::testing::LabelOf(node, kGpus);
  return text.empty() ? 0 : std::stoi(std::string(text));
}
bool IsSick(const Json& node, int gpu) { return AnnotationOf(node, kSick) == std::to_string(gpu); }
bool IsAway(const Json& node) { return AnnotationOf(node, kAway) == "true"; }
std::string StateOf(const Json& node) {
  if (GpusOf(node) == 0) return {};
  return std::to_string(GpusOf(node)) + std::string(AnnotationOf(node, kSick)) + "," +
         std::string(AnnotationOf(node, kAway));
}
void Annotate(World& world, const std::string& node, const char* key, const std::string& value) {
  const auto object = world.server.Get("nodes", {"", node});
  if (!object) return;
  Json written = *object;
  written["metadata"]["annotations"][key] = value;
  Must(world.server.Update("nodes", std::move(written)));
}

std::string GpuName(const std::string& node, int gpu) { return "GPU-" + node + "-" + std::to_string(gpu); }

std::int64_t MilliOf(const Json& pod) {
  std::int64_t milli = 0;
  for (const Json& container : kube::testing::ItemsAt(pod, {"spec", "containers"})) {
    const std::string text = Text(container, {"resources", "limits", api::kGpuMilliResource});
    if (!text.empty()) milli += std::stoll(text);
  }
  return milli;
}

std::string UidOf(const Json& pod) { return Text(pod, {"metadata", "uid"}); }

std::vector<std::string> HeldGpus(const Json& pod) {
  const std::string_view text = AnnotationOf(pod, api::kHeldGpusAnnotation);
  if (text.empty()) return {};
  const Json held = FromText(text);
  std::vector<std::string> gpus = {Text(held, {"c", "gpu"})};
  for (const Json& more : kube::testing::ItemsAt(held, {"c", "more"})) gpus.push_back(Text(more, {"gpu"}));
  return gpus;
}

}  // namespace

std::shared_ptr<PartAgents> PartAgents::Start(World& world) {
  std::shared_ptr<PartAgents> agents(new PartAgents(world));
  world.server.AddObserver([agents](const ServerChange& change) { agents->Observe(change); });
  return agents;
}

void PartAgents::Kill(kube::Duration pause) {
  ++life_;
  away_until_ = world_.simulation.Now() + pause;
  // The next ones read who holds what, and write what is missing.
  world_.simulation.After(pause, [self = shared_from_this()] {
    for (const auto& pod : self->world_.server.List("pods")) {
      if (self->held_.contains(UidOf(*pod)) && HeldGpus(*pod).empty()) self->WriteSoon(kube::testing::KeyOf(*pod));
    }
  });
}

void PartAgents::Observe(const ServerChange& change) {
  if (change.resource == "nodes" && change.after &&
      StateOf(*change.after) != (change.before ? StateOf(*change.before) : "")) {
    const std::string name = Text(*change.after, {"metadata", "name"});
    world_.simulation.After({}, [self = shared_from_this(), name] { self->WriteNode(name); });
  }
  if (change.resource != "pods") return;
  if (!change.after || HasEnded(*change.after)) held_.erase(UidOf(change.after ? *change.after : *change.before));
  const bool is_bound_now = change.after && IsBound(*change.after) && !(change.before && IsBound(*change.before));
  if (!is_bound_now || MilliOf(*change.after) == 0) return;
  world_.simulation.After({},
                          [self = shared_from_this(), key = kube::testing::KeyOf(*change.after)] { self->Give(key); });
}

void PartAgents::Give(const kube::ObjectKey& key) {
  const auto pod = world_.server.Get("pods", key);
  if (!pod || HasEnded(*pod) || held_.contains(UidOf(*pod))) return;
  const std::string node = Text(*pod, {"spec", "nodeName"});
  std::vector<std::string> gpus = ChooseGpus(node, MilliOf(*pod), PlannedGpus(*pod));
  if (gpus.empty()) return Refuse(*pod);
  const std::int64_t each = MilliOf(*pod) / static_cast<std::int64_t>(gpus.size());
  held_[UidOf(*pod)] = {.node = node, .gpus = std::move(gpus), .milli = each};
  if (world_.simulation.Now() >= away_until_) WriteSoon(key);
}

std::int64_t PartAgents::LeftOn(const std::string& gpu) const {
  std::int64_t left = kWhole;
  for (const auto& [uid, held] : held_) left -= std::ranges::count(held.gpus, gpu) > 0 ? held.milli : 0;
  return left;
}

std::vector<std::string> PartAgents::ChooseGpus(const std::string& node, std::int64_t milli,
                                                const std::vector<std::string>& planned) const {
  const auto object = world_.server.Get("nodes", {"", node});
  if (!object || IsAway(*object)) return {};
  const bool is_whole = milli > kWhole && milli % kWhole == 0;
  const std::int64_t each = is_whole ? kWhole : milli;
  const auto wanted = static_cast<std::size_t>(milli / each);
  std::vector<std::string> fitting;
  for (int i = 0; i < GpusOf(*object); ++i) {
    const std::string gpu = GpuName(node, i);
    if (!IsSick(*object, i) && LeftOn(gpu) >= each) fitting.push_back(gpu);
  }
  if (fitting.size() < wanted) return {};
  // The planned ones, then the fullest.
  std::ranges::stable_sort(fitting, {}, [&](const std::string& gpu) {
    return std::pair(std::ranges::count(planned, gpu) == 0, LeftOn(gpu));
  });
  fitting.resize(wanted);
  return fitting;
}

void PartAgents::Refuse(Json pod) {
  Json& status = pod["status"];
  status["phase"] = "Failed";
  status["reason"] = "UnexpectedAdmissionError";
  Must(world_.server.Update("pods", std::move(pod), "status"));
}

void PartAgents::WriteSoon(const kube::ObjectKey& key) {
  const auto delay = world_.simulation.Between(std::chrono::milliseconds(0), std::chrono::seconds(3));
  world_.simulation.After(delay, [self = shared_from_this(), key, life = life_] { self->Write(key, life); });
}

void PartAgents::Write(const kube::ObjectKey& key, int life) {
  const auto pod = world_.server.Get("pods", key);
  const auto held = pod ? held_.find(UidOf(*pod)) : held_.end();
  if (life != life_ || held == held_.end()) return;
  Json written = *pod;
  const auto part_of = [&](const std::string& gpu) {
    return Json::MakeObject({{"gpu", gpu}, {"milli", held->second.milli}});
  };
  const std::vector<std::string>& gpus = held->second.gpus;
  Json part = part_of(gpus.front());
  for (std::size_t i = 1; i < gpus.size(); ++i) part["more"].Append(part_of(gpus[i]));
  written["metadata"]["annotations"][api::kHeldGpusAnnotation] = kube::ToText(Json::MakeObject({{"c", part}}));
  Must(world_.server.Update("pods", std::move(written)));
}

void PartAgents::WriteNode(const std::string& name) {
  const auto node = world_.server.Get("nodes", {"", name});
  if (!node) return;
  Json inventory = Json::MakeArray();
  std::int64_t healthy = 0;
  for (int i = 0; i < GpusOf(*node); ++i) {
    Json gpu =
        Json::MakeObject({{"uuid", GpuName(name, i)}, {"memoryMiB", 81920}, {"milli", kWhole}, {"mode", "milli"}});
    if (IsSick(*node, i)) gpu["healthy"] = false;
    else ++healthy;
    inventory.Append(std::move(gpu));
  }
  Json written = *node;
  written["metadata"]["annotations"][api::kGpuInventoryAnnotation] = kube::ToText(inventory);
  Must(world_.server.Update("nodes", std::move(written)));
  Json offered = *world_.server.Get("nodes", {"", name});
  offered["status"]["allocatable"][api::kGpuMilliResource] = std::to_string(IsAway(*node) ? 0 : kWhole * healthy);
  Must(world_.server.Update("nodes", std::move(offered), "status"));
}

void AddSharedNode(World& world, const std::string& name, int gpus) {
  kube::testing::NodeOptions options;
  options.labels[kGpus] = std::to_string(gpus);
  Must(world.cluster.AddNode(name, 0, options));
}

void RestartKubelet(World& world, const std::string& node, kube::Duration pause) {
  Annotate(world, node, kAway, "true");
  world.simulation.After(pause, [&world, node] { Annotate(world, node, kAway, ""); });
}

void SetSickGpu(World& world, const std::string& node, const std::string& index) {
  Annotate(world, node, kSick, index);
}

std::vector<std::string> PlannedGpus(const Json& pod) {
  std::vector<std::string> gpus;
  std::istringstream list{std::string(AnnotationOf(pod, api::kPlannedGpuAnnotation))};
  for (std::string gpu; std::getline(list, gpu, ',');) gpus.push_back(gpu);
  return gpus;
}

bool AsksForMilli(const Json& pod) { return MilliOf(pod) > 0; }

std::string NoPartTwice(const World& world, const ServerChange& change) {
  if (change.resource != "pods" || !change.after || MilliOf(*change.after) == 0) return {};
  std::map<std::string, std::int64_t> used;
  for (const auto& [key, pod] : world.All("pods")) {
    if (HasEnded(*pod) || !IsBound(*pod)) continue;
    const std::vector<std::string> held = HeldGpus(*pod), gpus = held.empty() ? PlannedGpus(*pod) : held;
    for (const std::string& gpu : gpus) used[gpu] += MilliOf(*pod) / static_cast<std::int64_t>(gpus.size());
  }
  for (const auto& [gpu, milli] : used) {
    if (milli > kWhole) return gpu + " has " + std::to_string(milli) + " thousandths of pods";
  }
  return {};
}

// What a pod holds is known late, and its plan to who made it at once: until then only what is in both surely counts.
kube::testing::Invariant NoPlanTwice(kube::Duration slack) {
  return [slack, since = std::map<std::string, kube::TimePoint>()](const World& world,
                                                                   const ServerChange& change) mutable {
    if (change.resource != "pods" || !change.after || MilliOf(*change.after) == 0) return std::string();
    const kube::TimePoint now = world.simulation.Now();
    if (!HeldGpus(*change.after).empty()) since.try_emplace(UidOf(*change.after), now);
    const bool is_planned = !PlannedGpus(*change.after).empty();
    if (!is_planned || (change.before && PlannedGpus(*change.before) == PlannedGpus(*change.after))) {
      return std::string();
    }
    std::map<std::string, std::int64_t> used;
    for (const auto& [key, pod] : world.All("pods")) {
      if (HasEnded(*pod)) continue;
      const std::vector<std::string> planned = PlannedGpus(*pod), held = HeldGpus(*pod);
      const bool is_known = !held.empty() && now - since.try_emplace(UidOf(*pod), now).first->second > slack;
      for (const std::string& gpu : is_known ? held : planned) {
        if (!is_known && !held.empty() && std::ranges::count(held, gpu) == 0) continue;
        used[gpu] += std::min(kWhole, MilliOf(*pod));
      }
    }
    for (const std::string& gpu : PlannedGpus(*change.after)) {
      if (used[gpu] <= kWhole) continue;
      return Text(*change.after, {"metadata", "name"}) + " is planned onto " + gpu + ", for which there are " +
             std::to_string(used[gpu]) + " thousandths of pods then";
    }
    return std::string();
  };
}

std::string NoMemberIsRefused(const World&, const ServerChange& change) {
  if (change.resource != "pods" || !change.after || GroupOf(*change.after).empty()) return {};
  if (Text(*change.after, {"status", "reason"}) != "UnexpectedAdmissionError") return {};
  return "member " + Text(*change.after, {"metadata", "name"}) + " is refused by its kubelet";
}

}  // namespace grus::testing
