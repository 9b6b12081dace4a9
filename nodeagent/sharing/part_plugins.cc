// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_plugins.h"

#include <algorithm>
#include <set>
#include <utility>

#include "nodeagent/sharing/gpushare.h"
#include "nodeagent/sharing/part_checks.h"
#include "nodeagent/sharing/part_setup.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;

// The kubelet asks for the resources of a container within tens of milliseconds; it takes longer than this to start
// again, with whichever container is then the first.
constexpr kube::Duration kSameContainer = std::chrono::seconds(2);

Error Refused(const std::string& why) { return Error(ErrorCode::kInvalidArgument, why); }

bool Holds(const HeldParts& held, PartResource resource, const PartId& id) {
  const auto found = held.ids.find(resource);
  return found != held.ids.end() && std::ranges::binary_search(found->second, id);
}

const SharedGpu* Find(const std::vector<SharedGpu>& gpus, const std::string& uuid) {
  const auto found = std::ranges::find(gpus, uuid, &SharedGpu::uuid);
  return found == gpus.end() ? nullptr : &*found;
}

using ContainerKey = std::pair<kube::ObjectKey, std::string>;

bool IsOf(const ContainerKey& container, const HeldParts& part) {
  return container.first == part.pod && container.second == part.container;
}

// What their pods say of memory. In other modes than that of thousandths only what is paged is theirs to say.
void SetMemory(SharingMode mode, const std::vector<PartAsk>& asks, std::vector<HeldParts>& held) {
  for (HeldParts& part : held) {
    const auto is_its = [&](const PartAsk& ask) { return IsOf({ask.pod, ask.container}, part); };
    const auto ask = std::ranges::find_if(asks, is_its);
    if (ask == asks.end()) continue;
    if (mode == SharingMode::kMilli) SetSaidMemory(ask->memory_mib, part);
    SetSaidPaging(ask->paged_mib, part);
  }
}

// After a message that names GPUs: why others are not among them.
std::string HeldText(const std::map<std::string, std::string>& held_otherwise) {
  std::string text;
  for (const auto& [gpu, holder] : held_otherwise) text.append("; " + gpu + " is held by ").append(holder);
  return text;
}

}  // namespace

class PartPlugins::Plugin final : public DevicePlugin {
 public:
  Plugin(PartPlugins& parts, PartResource resource) : parts_(parts), resource_(resource) {}
  std::string resource() const override { return std::string(NameOf(resource_)); }
  std::vector<PluginDevice> Devices() const override { return parts_.Devices(resource_); }
  kube::Result<std::vector<std::string>> Prefer(const std::vector<std::string>& available,
                                                const std::vector<std::string>& needed, int count) override {
    return parts_.Prefer(resource_, available, needed, count);
  }
  kube::Result<ContainerSetup> Allocate(const std::vector<std::string>& ids) override {
    return parts_.Allocate(resource_, ids);
  }
  kube::Status PreStart(const std::vector<std::string>& ids) override { return parts_.PreStart(resource_, ids); }

 private:
  PartPlugins& parts_;
  const PartResource resource_;
};

PartPlugins::PartPlugins(DeviceHolders& holders, const PendingParts& pending, PartPluginsOptions options,
                         const kube::Clock& clock, const kube::Log& log)
    : holders_(holders),
      pending_(pending),
      options_(std::move(options)),
      clock_(clock),
      log_(log),
      inventory_(options_.reserve_mib) {
  for (const PartResource resource : ResourcesOf(options_.mode)) {
    plugins_.push_back(std::make_unique<Plugin>(*this, resource));
  }
  if (options_.mode == SharingMode::kGpushare) {
    plugins_.push_back(std::make_unique<GpuCountPlugin>(holders_, [this] { return gpus(); }));
  }
}

PartPlugins::~PartPlugins() = default;

void PartPlugins::Look(const NodeSample& look) {
  {
    const std::scoped_lock lock(mutex_);
    std::vector<SharedGpu> gpus = inventory_.Of(look);
    for (SharedGpu& gpu : gpus) {
      gpu.is_healthy = gpu.is_healthy && (!options_.enforcer || options_.enforcer->MayGive(gpu.uuid));
    }
    if (gpus == gpus_) return;
    gpus_ = std::move(gpus);
  }
  if (options_.on_devices_changed) options_.on_devices_changed();
}

void PartPlugins::SetPlacement(PartPlacement placement) {
  const std::scoped_lock lock(mutex_);
  placement_ = placement;
}

void PartPlugins::SetPaging(PagingAllowance allowance) {
  const std::scoped_lock lock(mutex_);
  paging_ = std::move(allowance);
}

std::vector<DevicePlugin*> PartPlugins::plugins() const {
  std::vector<DevicePlugin*> plugins;
  for (const auto& plugin : plugins_) plugins.push_back(plugin.get());
  return plugins;
}

std::vector<SharedGpu> PartPlugins::gpus() const {
  const std::scoped_lock lock(mutex_);
  return gpus_;
}

std::vector<PluginDevice> PartPlugins::Devices(PartResource resource) const {
  std::vector<PluginDevice> devices;
  for (const SharedGpu& gpu : gpus()) {
    for (std::int64_t i = 0; i < gpu.count(resource); ++i) devices.push_back({ToText({gpu.uuid, i}), gpu.is_healthy});
  }
  return devices;
}

std::optional<std::vector<HeldParts>> PartPlugins::Held(std::set<kube::ObjectKey>* listed_pods) {
  const kube::Result<std::vector<HeldDevices>> listed = holders_.List();
  const std::vector<PartAsk> asks = pending_.Asks().value_or(std::vector<PartAsk>());
  std::map<std::string, std::string> others;
  if (options_.holders_otherwise) others = options_.holders_otherwise();
  const std::scoped_lock lock(mutex_);
  if (!listed) {
    held_otherwise_.merge(others);
    if (!std::exchange(is_deaf_told_, true)) {
      log_.Warn("the kubelet does not say who holds parts of GPUs, containers start unchecked",
                {{"error", listed.error().message()}});
    }
    return std::nullopt;
  }
  is_deaf_told_ = false;
  for (const HeldDevices& one : *listed) {
    if (listed_pods != nullptr) listed_pods->insert({one.ns, one.pod});
  }
  std::vector<HeldParts> held = PartsOf(*listed, ResourcesOf(options_.mode));
  SetMemory(options_.mode, asks, held);
  std::erase_if(let_start_, [&](const auto& one) {
    return std::ranges::none_of(held, [&](const HeldParts& part) { return IsOf(one, part); });
  });
  std::vector<std::string> uuids;
  for (const SharedGpu& gpu : gpus_) uuids.push_back(gpu.uuid);
  held_otherwise_ = HeldOtherwise(*listed, ResourcesOf(options_.mode), uuids);
  held_otherwise_.merge(others);
  known_held_ = held;
  return held;
}

std::string PartPlugins::HolderOtherwise(const std::string& gpu) const {
  const std::scoped_lock lock(mutex_);
  const auto other = held_otherwise_.find(gpu);
  return other == held_otherwise_.end() ? std::string() : other->second;
}

ChooserView PartPlugins::View(PartResource resource, std::int64_t amount) {
  ChooserView view{.resource = resource, .amount = amount};
  view.held = Held(&view.listed);
  view.asks = pending_.Asks();
  {
    const std::scoped_lock lock(mutex_);
    view.placement = placement_;
    if (last_) {
      const bool is_fresh = last_->is_open && clock_.Now() - last_->at <= kSameContainer;
      view.last = LastPart{last_->resource, last_->ids, is_fresh, last_->is_refused};
    }
  }
  if (const std::set<kube::ObjectKey> pods = PodsToAwait(view); !pods.empty()) {
    pending_.Await(pods);
    view.asks = pending_.Asks();
  }
  if (options_.mode == SharingMode::kGpushare && view.asks) FollowAssumptions(gpus(), *view.asks);
  return view;
}

std::vector<GpuRoom> PartPlugins::Rooms(PartResource resource, const std::vector<PartId>& available) const {
  const std::scoped_lock lock(mutex_);
  std::vector<GpuRoom> rooms;
  for (const SharedGpu& gpu : gpus_) {
    if (!gpu.is_healthy || held_otherwise_.contains(gpu.uuid)) continue;
    GpuRoom& room = rooms.emplace_back(GpuRoom{.uuid = gpu.uuid});
    for (const PartResource one : ResourcesOf(options_.mode)) room.total[one] = room.free[one] = gpu.count(one);
    // Of this resource the kubelet says itself what is free.
    room.free[resource] = std::ranges::count_if(
        available, [&](const PartId& id) { return id.gpu == gpu.uuid && id.number < gpu.count(resource); });
    room.total_mib = room.free_mib = gpu.memory_mib;
    const std::optional<PartResource> other = CounterpartOf(resource);
    for (const HeldParts& held : known_held_) {
      // Without PodResources, ended ones are among them; the kubelet says that theirs are free.
      const auto own = held.ids.find(resource);
      const bool has_ended = own != held.ids.end() && std::ranges::binary_search(available, own->second.front());
      if (!has_ended) room.free_mib -= MemoryMiBOf(held.amounts_on(gpu.uuid), gpu, held.memory_mib);
      const auto ids = other ? held.ids.find(*other) : held.ids.end();
      if (ids == held.ids.end()) continue;
      room.free[*other] -= std::ranges::count(ids->second, gpu.uuid, &PartId::gpu);
    }
  }
  return rooms;
}

kube::Result<std::vector<std::string>> PartPlugins::Prefer(PartResource resource,
                                                           const std::vector<std::string>& available,
                                                           const std::vector<std::string>& needed, int count) {
  if (count <= 0) return Refused(AmountText(count, resource) + ": ask for at least 1");
  std::vector<PartId> free = ParsePartIds(available), first = ParsePartIds(needed);
  ChooserView view = View(resource, count);
  view.gpus = Rooms(resource, free);
  // What ended init containers of the pod had comes first; the rest lies where that does.
  for (const PartId& id : first) view.needed.insert(id.gpu);
  if (!first.empty() && !IsForWholeGpus(resource, count)) {
    std::erase_if(view.gpus, [&](const GpuRoom& gpu) { return !view.needed.contains(gpu.uuid); });
  }
  kube::Result<GpuChoice> choice = ChooseGpu(view);
  const std::scoped_lock lock(mutex_);
  preferred_.reset();
  if (!choice) {
    if (last_) last_->is_refused = true;
    return Refused(choice.error().message() + HeldText(held_otherwise_));
  }
  std::erase_if(free, [&](const PartId& id) {
    const SharedGpu* const gpu = Find(gpus_, id.gpu);
    return std::ranges::count(choice->gpus, id.gpu) == 0 || gpu == nullptr || id.number >= gpu->count(resource) ||
           std::ranges::binary_search(first, id);
  });
  std::vector<std::string> ids;
  for (const PartId& id : first) ids.push_back(ToText(id));
  for (const PartId& id : free) {
    if (ids.size() < static_cast<std::size_t>(count)) ids.push_back(ToText(id));
  }
  preferred_ = {resource, count, *std::move(choice)};
  return ids;
}

kube::Result<ContainerSetup> PartPlugins::Allocate(PartResource resource, const std::vector<std::string>& ids) {
  kube::Result<std::vector<PartId>> checked = CheckIds(resource, ids, gpus());
  const auto amount = static_cast<std::int64_t>(ids.size());
  std::optional<Preferred> preferred;
  {
    const std::scoped_lock lock(mutex_);
    preferred = std::exchange(preferred_, std::nullopt);
    if (!checked && last_) last_->is_refused = true;
  }
  if (!checked) return std::move(checked).error();
  // Without a Prefer() the devices are those of an ended init container, or the agent has been started in between.
  const bool is_preferred = preferred && preferred->resource == resource && preferred->amount == amount;
  if (!is_preferred) {
    const ChooserView view = View(resource, amount);
    preferred = {resource, amount, {GpusOf(*checked), FindPartner(view), PodAmount(view), SaidMemory(view)}};
  }
  const std::optional<Partner>& partner = preferred->choice.partner;
  const std::vector<std::string> gpus = GpusOf(*checked);
  std::unique_lock lock(mutex_);
  if (partner && partner->is_sure && partner->gpu != gpus.front()) {
    if (last_) last_->is_refused = true;
    return Refused(partner->owner + ": " + AmountText(amount, resource) + " on " + gpus.front() +
                   ", but its other part lies on " + partner->gpu +
                   "; create the pod again, so that it gets both on one GPU");
  }
  std::vector<SharedGpu> on;
  for (const SharedGpu& gpu : gpus_) {
    if (std::ranges::count(gpus, gpu.uuid) == 0) continue;
    on.push_back(gpu);
    const auto other = held_otherwise_.find(gpu.uuid);
    if (other == held_otherwise_.end()) continue;
    return Refused(AmountText(amount, resource) + ": " + gpu.uuid + " is held by " + other->second +
                   "; let its pods end, and only one device plugin offer the GPUs of a node");
  }
  if (on.size() != gpus.size()) {
    return Refused(AmountText(amount, resource) + ": a GPU has just gone, of " + GpuNames(*checked));
  }
  NoteAnswered({.resource = resource,
                .ids = *checked,
                .at = clock_.Now(),
                .is_open = CounterpartOf(resource) && !partner,
                .memory_mib = preferred->choice.memory_mib});
  ContainerSetup setup = SetupOf(resource, *checked, preferred->choice, on, gpus_);
  if (!options_.enforcer) return setup;
  std::int64_t memory_mib = 0;
  for (const SharedGpu& gpu : on) memory_mib += MemoryMiBOn(gpu, resource, *checked, preferred->choice);
  lock.unlock();
  if (kube::Status given = options_.enforcer->Give({resource, *checked, memory_mib}, setup); !given) {
    return std::move(given).error().with(AmountText(amount, resource));
  }
  return setup;
}

void PartPlugins::NoteAnswered(Answered answered) {
  // Whoever had these before has ended.
  for (HeldParts& held : known_held_) {
    const auto ids = held.ids.find(answered.resource);
    if (ids == held.ids.end()) continue;
    std::erase_if(ids->second, [&](const PartId& id) { return std::ranges::binary_search(answered.ids, id); });
    if (ids->second.empty()) held.ids.erase(ids);
  }
  std::erase_if(known_held_, [](const HeldParts& held) { return held.ids.empty(); });
  known_held_.push_back({.ids = {{answered.resource, answered.ids}}, .memory_mib = answered.memory_mib});
  last_ = std::move(answered);
}

kube::Status PartPlugins::LetStart(const HeldParts& starting, const std::vector<HeldParts>& held) {
  const std::vector<PartAsk> asks = pending_.Asks().value_or(std::vector<PartAsk>());
  const std::scoped_lock lock(mutex_);
  std::vector<HeldParts> started;
  for (const HeldParts& other : held) {
    const auto has_started = [&](const PartAsk& ask) {
      return ask.has_started && IsOf({ask.pod, ask.container}, other);
    };
    if (IsOf({starting.pod, starting.container}, other)) continue;
    const bool is_let = let_start_.contains({other.pod, other.container});
    if (is_let || std::ranges::any_of(asks, has_started)) started.push_back(other);
  }
  // One that has run had room; what is handed out may be less now.
  const bool has_run = std::ranges::any_of(asks, [&](const PartAsk& ask) {
    return ask.has_started && IsOf({ask.pod, ask.container}, starting);
  });
  for (const std::string& uuid : starting.gpus()) {
    const SharedGpu* const gpu = Find(gpus_, uuid);
    if (gpu == nullptr || has_run) continue;
    if (kube::Status checked = CheckMemory(starting, started, *gpu); !checked) return checked;
  }
  let_start_.insert({starting.pod, starting.container});
  return {};
}

kube::Status PartPlugins::CheckStart(HeldParts holder) const {
  if (kube::Status checked = CheckHeld(holder); !checked) return checked;
  holder.enforcement = WayOf(holder);
  const std::scoped_lock lock(mutex_);
  return CheckPaging(holder, paging_, gpus_);
}

kube::Status PartPlugins::PreStart(PartResource resource, const std::vector<std::string>& ids) {
  const std::vector<PartId> parsed = ParsePartIds(ids);
  if (!AreOnOneGpu(parsed) && !AreWholeGpus(resource, parsed)) {
    return Refused(AmountText(static_cast<std::int64_t>(ids.size()), resource) +
                   " of a container lie on several GPUs (" + GpuNames(parsed) +
                   "); delete its pod, and create it again");
  }
  std::optional<std::vector<HeldParts>> held = Held();
  std::set<kube::ObjectKey> pods;  // Who starts, if what its pod says of memory counts.
  if (held && !parsed.empty()) {
    for (const HeldParts& one : *held) {
      if (!Holds(one, resource, parsed.front())) continue;
      if (options_.mode == SharingMode::kMilli || WayOf(one) == Enforcement::kCooperative) pods.insert(one.pod);
    }
  }
  if (!pods.empty()) {
    pending_.Await(pods);
    held = Held();
  }
  const HeldParts* holder = nullptr;
  if (held && !parsed.empty()) {
    for (const std::string& gpu : GpusOf(parsed)) {
      const std::string other = HolderOtherwise(gpu);
      if (!other.empty()) return Refused("GPU " + gpu + " is held by " + other + ": wait until that has ended");
    }
    const auto found =
        std::ranges::find_if(*held, [&](const HeldParts& one) { return Holds(one, resource, parsed.front()); });
    if (found != held->end()) holder = &*found;
  }
  if (holder != nullptr) {
    if (kube::Status checked = CheckStart(*holder); !checked) return checked;
  }
  if (options_.enforcer) {
    if (kube::Status may_start = options_.enforcer->MayStart(resource, parsed, holder); !may_start) return may_start;
  }
  if (holder != nullptr) {
    if (kube::Status let = LetStart(*holder, *held); !let) return let;
  }
  if (options_.on_start) options_.on_start();
  return {};
}

}  // namespace grus
