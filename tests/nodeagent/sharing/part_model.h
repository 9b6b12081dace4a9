// SPDX-License-Identifier: Apache-2.0
// A kubelet with a device manager as PartPlugins sees it, on a node whose pods come and go: the order of resources and
// of pods is random, agent and kubelet are started again between any two calls, and what the agent reads may lag.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nodeagent/sharing/part_plugins.h"
#include "tests/kit/manual_clock.h"
#include "tests/nodeagent/sharing/model_pods.h"
#include "tests/nodeagent/sharing/part_fakes.h"

namespace grus::testing {

class PartModel {
 public:
  explicit PartModel(ModelOptions options) : options_(options), random_(options.seed) {
    const int gpus = Draw(1, 8);
    look_ = GpusOf(gpus, 1);
    for (GpuState& gpu : look_.gpus) {
      gpu.sample->memory_total_bytes = static_cast<std::uint64_t>(Draw(2, 12)) * kGiB + 512 * kMiB;
    }
    StartAgent();
    counts_ = {};
  }

  void Play(int steps) {
    for (int i = 0; i < steps; ++i) {
      clock_.Advance(std::chrono::milliseconds(Draw(1, 400)));
      const int what = Draw(0, 9);
      if (what < 4) AddPod();
      else if (what < 7) AdmitAll();
      else if (what == 7) EndOne();
      else if (what == 8) StartAgent();
      else ToggleGpu();
      CheckNode();
    }
    AdmitAll();
    CheckNode();
  }

  const std::vector<std::string>& faults() const { return faults_; }
  const ModelCounts& counts() const { return counts_; }

 private:
  using Owner = std::pair<std::string, std::string>;                 // Pod and container.
  using Book = std::map<std::string, std::map<std::string, Owner>>;  // By resource and id.

  int Draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  bool Happens(int percent) { return Draw(1, 100) <= percent; }
  void Fault(const std::string& what) { faults_.push_back(what); }

  void StartAgent() {
    agent_.reset();
    agent_ = std::make_unique<PartPlugins>(holders_, pending_, PartPluginsOptions{.mode = options_.mode}, clock_, log_);
    agent_->Look(look_);
    ++counts_.agent_restarts;
  }
  void ToggleGpu() {
    GpuState& gpu = look_.gpus[static_cast<std::size_t>(Draw(0, static_cast<int>(look_.gpus.size()) - 1))];
    if (Happens(50)) gpu.fault_xid = 79;
    else gpu.fault_xid.reset();
    agent_->Look(look_);
  }
  void AddPod() {
    ModelPod pod{.name = "p" + std::to_string(next_++)};
    const int containers = Happens(75) ? 1 : Draw(2, 3);
    for (int i = 0; i < containers; ++i) {
      ModelContainer container{.name = "c" + std::to_string(i)};
      if (options_.mode == SharingMode::kMilli) {
        const bool is_whole = options_.asks_whole && Happens(40);
        container.amounts[PartResource::kMilli] = is_whole ? 1000 * Draw(2, 3) : 50 * Draw(1, 20);
      } else if (options_.mode == SharingMode::kGpushare) {
        container.amounts[PartResource::kGpuMem] = Draw(1, 4);
      } else {
        // Few values, so that different containers ask for equal amounts.
        container.amounts[PartResource::kMemory] = Draw(1, 4);
        container.amounts[PartResource::kCompute] = Happens(20) ? 0 : 20 * Draw(1, 4);
      }
      pod.containers.push_back(container);
    }
    if (options_.mode == SharingMode::kGpushare && Happens(60)) pod.assumed = GpushareAssumption{Draw(0, 8), next_};
    else if (Happens(40)) pod.planned_gpus = {Happens(80) ? "GPU-" + std::to_string(Draw(0, 8)) : "nonsense, \"GPU"};
    if (options_.asks_whole && Happens(40)) pod.planned_gpus = {"GPU-" + std::to_string(Draw(0, 3)), "GPU-4", "GPU-5"};
    if (options_.says_memory && Happens(50)) pod.memory_mib = 512 * Draw(1, 12);
    waiting_.push_back(pod);
    pods_.push_back(std::move(pod));
  }
  void EndOne() {
    if (running_.empty()) return;
    const std::string name = *std::next(running_.begin(), Draw(0, static_cast<int>(running_.size()) - 1));
    running_.erase(name);
    Free(book_, name);
    checkpoint_ = book_;
    Forget(name);
  }
  void Forget(const std::string& name) {
    std::erase_if(pods_, [&](const ModelPod& pod) { return pod.name == name; });
  }
  static void Free(Book& book, const std::string& pod) {
    for (auto& [resource, ids] : book) std::erase_if(ids, [&](const auto& one) { return one.second.first == pod; });
  }

  // The kubelet admits one pod after another, each as a whole, if it is not started again.
  void AdmitAll() {
    if (Happens(30)) std::ranges::shuffle(waiting_, random_);
    while (!waiting_.empty()) {
      const ModelPod pod = waiting_.front();
      if (!Admit(pod)) {  // It was started again: its checkpoint has whole containers of this pod.
        ++counts_.kubelet_restarts;
        clock_.Advance(std::chrono::seconds(Draw(5, 20)));
        book_ = checkpoint_;
        std::erase_if(environment_, [&](const auto& one) { return GpusOfContainer(one.first).empty(); });
        std::ranges::shuffle(waiting_, random_);
        continue;
      }
      std::erase_if(waiting_, [&](const ModelPod& one) { return one.name == pod.name; });
    }
  }
  bool IsSick(const std::string& uuid) const {
    return std::ranges::any_of(look_.gpus, [&](const GpuState& gpu) { return gpu.gpu.uuid == uuid && gpu.fault_xid; });
  }
  std::vector<std::string> Available(DevicePlugin& plugin) {
    std::vector<std::string> ids;
    for (const PluginDevice& device : plugin.Devices()) {
      if (device.is_healthy && !book_[plugin.resource()].contains(device.id)) ids.push_back(device.id);
    }
    std::ranges::shuffle(ids, random_);
    return ids;
  }
  // Some GPU has all that the container asks for.
  bool HasRoom(const ModelPod& pod, const ModelContainer& container) {
    std::map<std::string, PartAmounts> free;
    for (const PartResource resource : ResourcesOf(options_.mode)) {
      for (const std::string& id : Available(PluginOf(resource))) ++free[ParsePartId(id)->gpu][resource];
    }
    if (const std::int64_t wanted = container.amounts[PartResource::kMilli]; wanted > 1000) {
      return 1000 * std::ssize(FreeGpus(free)) >= wanted;
    }
    return std::ranges::any_of(free, [&](const auto& one) {
      const std::int64_t milli = container.amounts[PartResource::kMilli];
      if (milli > 0 && MemoryMiBFree(one.first, pod.memory_mib, milli) < 0) return false;
      return std::ranges::all_of(
          kPartResources, [&](PartResource resource) { return one.second[resource] >= container.amounts[resource]; });
    });
  }
  // The GPUs that are planned for the pod, if the container asks for as many and all are free; else none.
  std::set<std::string> FreePlan(const ModelPod& pod, const ModelContainer& container) {
    const std::set<std::string> planned(pod.planned_gpus.begin(), pod.planned_gpus.end());
    const std::int64_t wanted = container.amounts[PartResource::kMilli];
    if (!options_.lists_admitted || wanted < 2000 || 1000 * std::ssize(planned) != wanted) return {};
    std::map<std::string, PartAmounts> free;
    for (const std::string& id : Available(PluginOf(PartResource::kMilli))) {
      ++free[ParsePartId(id)->gpu][PartResource::kMilli];
    }
    return std::ranges::includes(FreeGpus(free), planned) ? planned : std::set<std::string>();
  }
  // What would be left of the memory of this GPU.
  std::int64_t MemoryMiBFree(const std::string& uuid, std::int64_t said_mib, std::int64_t milli) {
    const std::vector<SharedGpu> gpus = agent_->gpus();
    const SharedGpu& gpu = *std::ranges::find(gpus, uuid, &SharedGpu::uuid);
    std::int64_t free = gpu.memory_mib - (said_mib > 0 ? said_mib : gpu.memory_mib * milli / 1000);
    for (auto& [owner, environment] : environment_) {
      if (GpusOfContainer(owner).contains(uuid)) free -= Told(environment, "GRUS_GPU_MEMORY_MIB")[uuid];
    }
    return free;
  }
  // The GPU that was assumed for the pod, if it has the room; else empty.
  std::string AssumedGpu(const ModelPod& pod, std::int64_t amount) {
    const std::vector<SharedGpu> gpus = agent_->gpus();
    const auto at = static_cast<std::size_t>(pod.assumed ? pod.assumed->gpu : 99);
    if (at >= gpus.size()) return "";
    const std::vector<std::string> free = Available(PluginOf(PartResource::kGpuMem));
    const auto is_of = [&](const std::string& id) { return ParsePartId(id)->gpu == gpus[at].uuid; };
    return std::ranges::count_if(free, is_of) >= amount ? gpus[at].uuid : "";
  }
  // False: the kubelet was started again before it had come to an end.
  bool Admit(const ModelPod& pod) {
    admitted_ = pod.name;
    for (const ModelContainer& container : pod.containers) {
      std::vector<PartResource> order(kPartResources.begin(), kPartResources.end());
      std::erase_if(order, [&](PartResource one) { return container.amounts[one] == 0; });
      std::ranges::shuffle(order, random_);
      const bool has_room = HasRoom(pod, container);
      for (const PartResource resource : order) {
        if (!IdsOf({pod.name, container.name}, std::string(NameOf(resource))).empty()) continue;
        if (Happens(3)) return false;
        clock_.Advance(std::chrono::milliseconds(Draw(1, 80)));
        const std::string assumed = AssumedGpu(pod, container.amounts[resource]);
        const std::set<std::string> plan = FreePlan(pod, container);
        if (Take({pod.name, container.name}, resource, static_cast<int>(container.amounts[resource]))) {
          if (options_.is_honest && !plan.empty()) {
            ++counts_.as_planned;
            if (GpusOfContainer({pod.name, container.name}) != plan)
              Fault(pod.name + " has others than it was planned");
          }
          if (!options_.is_honest || assumed.empty()) continue;
          ++counts_.as_assumed;
          if (!GpusOfContainer({pod.name, container.name}).contains(assumed)) Fault(pod.name + " was swapped");
          continue;
        }
        ++counts_.refused;
        if (has_room && options_.is_honest) {
          Fault(pod.name + "/" + container.name + " was refused, and a GPU had room: " + why_);
        }
        Free(book_, pod.name);
        checkpoint_ = book_;
        Forget(pod.name);
        return true;
      }
      checkpoint_ = book_;
    }
    ++counts_.admitted;
    running_.insert(pod.name);
    for (const ModelContainer& container : pod.containers) Start(pod, container);
    return true;
  }
  DevicePlugin& PluginOf(PartResource resource) {
    const std::vector<DevicePlugin*> plugins = agent_->plugins();
    return **std::ranges::find(plugins, NameOf(resource), [](const DevicePlugin* one) { return one->resource(); });
  }
  bool Take(const Owner& owner, PartResource resource, int amount) {
    if (Happens(10)) StartAgent();
    Read();
    const std::vector<std::string> available = Available(PluginOf(resource));
    why_ = "the kubelet has too few";
    if (static_cast<int>(available.size()) < amount) return false;
    const auto preferred = PluginOf(resource).Prefer(available, {}, amount);
    if (!preferred) {
      why_ = preferred.error().message();
      return false;
    }
    // Those that are free first, then any.
    const std::set<std::string> free(available.begin(), available.end());
    std::set<std::string> ids;
    for (const auto* list : {&*preferred, &available}) {
      for (const std::string& id : *list) {
        if (static_cast<int>(ids.size()) < amount && free.contains(id)) ids.insert(id);
      }
    }
    if (Happens(5)) StartAgent();
    Read();
    std::vector<std::string> wanted(ids.begin(), ids.end());
    std::ranges::shuffle(wanted, random_);
    const auto setup = PluginOf(resource).Allocate(wanted);
    if (!setup) {
      why_ = setup.error().message();
      return false;
    }
    for (const std::string& id : ids) {
      if (!book_[std::string(NameOf(resource))].emplace(id, owner).second) Fault(id + " was given twice");
    }
    for (const auto& [key, value] : setup->environment) {
      const auto [known, is_new] = environment_[owner].emplace(key, value);
      if (!is_new && known->second != value) Fault(key + " has two values in one container");
    }
    return true;
  }
  void Start(const ModelPod& pod, const ModelContainer& container) {
    if (Happens(5)) StartAgent();
    Read();
    bool may_start = true;
    for (DevicePlugin* plugin : agent_->plugins()) {
      const std::vector<std::string> ids = IdsOf({pod.name, container.name}, plugin->resource());
      if (ids.empty()) continue;
      if (const kube::Status started = plugin->PreStart(ids); !started) {
        may_start = false;
        why_ = started.error().message();
      }
    }
    ++(may_start ? counts_.started : counts_.delayed);
    if (!may_start && options_.is_honest) Fault(pod.name + " does not start: " + why_);
    const std::set<std::string> gpus = GpusOfContainer({pod.name, container.name});
    const std::int64_t milli = container.amounts[PartResource::kMilli];
    counts_.whole += milli > 1000;
    std::string told;  // UUIDs end with the index.
    for (const std::string& gpu : gpus) told.append(told.empty() ? "" : ",").append(gpu);
    const bool are_right = std::ssize(gpus) == std::max<std::int64_t>(1, milli / 1000);
    if (are_right && environment_[{pod.name, container.name}]["NVIDIA_VISIBLE_DEVICES"] == told) return;
    ++counts_.split;
    const bool was_checked = holders_.is_available && !is_lagging_;
    if (may_start && was_checked) Fault(pod.name + "/" + container.name + " runs on other GPUs than it may");
  }
  std::vector<std::string> IdsOf(const Owner& owner, const std::string& resource) {
    std::vector<std::string> ids;
    for (const auto& [id, who] : book_[resource]) {
      if (who == owner) ids.push_back(id);
    }
    return ids;
  }
  std::set<std::string> GpusOfContainer(const Owner& owner) {
    std::set<std::string> gpus;
    for (const PartResource resource : ResourcesOf(options_.mode)) {
      for (const std::string& id : IdsOf(owner, std::string(NameOf(resource)))) gpus.insert(ParsePartId(id)->gpu);
    }
    return gpus;
  }

  // What the agent would read now.
  void Read() {
    holders_.is_available = options_.is_honest || !Happens(20);
    is_lagging_ = !options_.is_honest && Happens(30);
    if (!is_lagging_) holders_.held = HeldNow();
    if (options_.is_honest || !Happens(30)) pending_.asks = AsksNow();
    if (!options_.is_honest && Happens(10)) pending_.asks.reset();
  }
  std::vector<HeldDevices> HeldNow() const {
    std::map<Owner, HeldDevices> held;
    for (const ModelPod& pod : pods_) {
      if (!options_.lists_admitted || (pod.name != admitted_ && !running_.contains(pod.name))) continue;
      for (const ModelContainer& one : pod.containers) held[{pod.name, one.name}] = {"a", pod.name, one.name, {}};
    }
    for (const auto& [resource, ids] : book_) {
      for (const auto& [id, owner] : ids) {
        HeldDevices& one = held[owner];
        one = {"a", owner.first, owner.second, std::move(one.ids)};
        one.ids[resource].push_back(id);
      }
    }
    std::vector<HeldDevices> list;
    for (auto& [owner, one] : held) list.push_back(std::move(one));
    return list;
  }
  std::vector<PartAsk> AsksNow() const {
    std::vector<PartAsk> asks;
    for (const ModelPod& pod : pods_) {
      for (const ModelContainer& container : pod.containers) {
        asks.push_back({.pod = {"a", pod.name},
                        .container = container.name,
                        .amounts = container.amounts,
                        .planned_gpus = pod.planned_gpus,
                        .assumed = pod.assumed,
                        .memory_mib = pod.memory_mib,
                        .has_started = running_.contains(pod.name)});
      }
    }
    return asks;
  }
  // By what the containers were told, no GPU gives more than it has.
  void CheckNode() {
    std::map<std::string, std::int64_t> mib, milli;
    for (auto& [owner, environment] : environment_) {
      if (!running_.contains(owner.first)) continue;
      if (std::ssize(GpusOfContainer(owner)) != std::ssize(Told(environment, "GRUS_GPU_MILLI"))) continue;
      for (const auto& [gpu, told] : Told(environment, "GRUS_GPU_MEMORY_MIB")) mib[gpu] += told;
      for (const auto& [gpu, told] : Told(environment, "GRUS_GPU_MILLI")) milli[gpu] += told;
      for (const auto& [gpu, told] : Told(environment, "ALNAIR_VGPU_COMPUTE")) milli[gpu] += 10 * told;
    }
    for (const SharedGpu& gpu : agent_->gpus()) {
      if (mib[gpu.uuid] > gpu.memory_mib) Fault(gpu.uuid + " gives more memory than it has");
      if (milli[gpu.uuid] > 1000) Fault(gpu.uuid + " gives more than 1000 thousandths");
    }
  }

  const ModelOptions options_;
  std::mt19937_64 random_;
  kube::testing::ManualClock clock_;
  const kube::Log log_{kube::LogLevel::kOff};
  NodeSample look_;
  FakeHolders holders_;
  FakePending pending_;
  bool is_lagging_ = false;
  std::unique_ptr<PartPlugins> agent_;

  int next_ = 0;
  std::string admitted_;                  // The pod that the kubelet admits, or did last.
  std::vector<ModelPod> pods_, waiting_;  // Those that have not ended; those that the kubelet has not admitted.
  std::set<std::string> running_;
  Book book_, checkpoint_;
  std::map<Owner, std::map<std::string, std::string>> environment_;
  std::string why_;
  std::vector<std::string> faults_;
  ModelCounts counts_;
};

}  // namespace grus::testing
