// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/cluster_queues.h"

#include <algorithm>
#include <utility>

#include "controllers/policy/claimed_gpus.h"
#include "controllers/policy/gpu_parts.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

std::int64_t ToMilli(std::int64_t devices) {
  return std::clamp<std::int64_t>(devices, 0, kMostMilli / kOneGpu) * kOneGpu;
}

bool Selects(const PoolSpec& pool, const NodeState& node) {
  return std::ranges::all_of(pool.node_selector,
                             [&](const auto& label) { return node.labels.Get(label.first) == label.second.view(); });
}

// Another placement moves nothing that is there.
bool HasSameNodes(const PoolSpec& a, const PoolSpec& b) {
  return a.name == b.name && a.node_selector == b.node_selector && a.resource == b.resource;
}

}  // namespace

bool ClusterQueues::SetUp(QueueSetup setup) {
  if (setup_ == setup) return false;
  const bool are_other_pools = !std::ranges::equal(setup_.pools, setup.pools, HasSameNodes);
  const bool have_changed = setup_.pools != setup.pools;
  setup_ = std::move(setup);
  ++version_;
  is_stale_ = true;
  if (are_other_pools) {
    // Both are by the number of the pool.
    for (const auto& [owner, notice] : notices_) taken_back_.push_back(owner);
    notices_.clear();
    stays_.clear();
    claims_.clear();
    reserved_.clear();
  }
  for (NodeId id = 0; have_changed && id < ledger_.node_limit(); ++id) {
    const LedgerNode* node = ledger_.NodeAt(id);
    if (node != nullptr && node->is_known) ledger_.PutNode(node->state);  // It may be in another, or place otherwise.
  }
  return true;
}

bool ClusterQueues::PutHolder(const std::string& owner, const Holder& holder) {
  const auto [it, is_new] = holders_.try_emplace(owner);
  Holder& known = it->second;
  if (!is_new && known == holder) return false;
  const bool is_moved = is_new || known.queue_name != holder.queue_name;
  CountCurves((holder.curve ? 1 : 0) - (known.curve ? 1 : 0));
  known = holder;
  if (is_stale_ || !is_active()) return true;
  if (is_moved && (claims_.contains(owner) || reserved_.contains(owner))) is_stale_ = true;
  if (const auto account = count_.accounts.find(owner); account != count_.accounts.end()) {
    if (is_moved) is_stale_ = true;
    else Recount(owner, account->second);
  }
  return true;
}

std::optional<int> ClusterQueues::TargetOf(const std::string& owner) const {
  const auto it = targets_.find(owner);
  return it == targets_.end() ? std::nullopt : std::optional(it->second);
}

void ClusterQueues::CountCurves(int change) {
  const bool was_active = is_active();
  curves_ += change;
  if (is_active() == was_active) return;
  ++version_;
  is_stale_ = true;
}

void ClusterQueues::RemoveHolder(const std::string& owner) {
  const auto known = holders_.find(owner);
  if (known == holders_.end()) return;
  CountCurves(known->second.curve ? -1 : 0);
  holders_.erase(known);
  notices_.erase(owner);
  stays_.erase(owner);
  claims_.erase(owner);
  reserved_.erase(owner);
  is_stale_ = true;
}

const Holder& ClusterQueues::HolderOf(const std::string& owner) const {
  static const Holder kUnknown;
  const auto it = holders_.find(owner);
  return it == holders_.end() ? kUnknown : it->second;
}

bool ClusterQueues::IsPreemptible(const std::string& owner) const {
  const Holder& holder = HolderOf(owner);
  return grus::IsPreemptible(holder.job_class, holder.comes_back);
}

kube::Result<QueueIndex> ClusterQueues::FindQueue(const std::string& owner, const QueueTree& tree) const {
  const std::string ns(NamespaceOf(owner));
  QueueWish wish{.queue_name = HolderOf(owner).queue_name, .ns = ns};
  if (const auto it = count_.selected_by.find(ns); it != count_.selected_by.end()) wish.selected_by = it->second;
  return grus::QueueOf(tree, wish);
}

kube::Result<QueueIndex> ClusterQueues::QueueOf(const std::string& owner) {
  Counted();
  return FindQueue(owner, *count_.tree);
}

std::int64_t ClusterQueues::MilliOf(const Resources& request, PoolIndex pool) const {
  const auto index = static_cast<std::size_t>(pool);
  const std::string& resource = index < setup_.pools.size() ? setup_.pools[index].resource : default_resource_;
  const std::int64_t own = request.Extended(resource), claimed = ClaimedMilliOf(request), none = 0;
  if (resource == api::kGpuMilliResource) return std::min(kMostMilli, std::clamp(own, none, kMostMilli) + claimed);
  return std::min(kMostMilli, ToMilli(own) + (resource == kGpuResource ? MilliOfGpuParts(request) : none));
}

PoolPlacement ClusterQueues::PlacementIn(PoolIndex pool) const {
  const auto index = static_cast<std::size_t>(pool);
  return pool != kNoPool && index < setup_.pools.size() ? setup_.pools[index].placement : PoolPlacement::kBinPack;
}

std::optional<RuntimeLimit> ClusterQueues::RuntimeLimitOf(const std::string& owner) {
  const auto has_limit = [](const QueueSpec& spec) { return spec.maximum_runtime_seconds.has_value(); };
  if (std::ranges::none_of(setup_.queues, has_limit)) return std::nullopt;
  const kube::Result<QueueIndex> queue = QueueOf(owner);
  if (!queue) return std::nullopt;
  const auto spec = std::ranges::find(setup_.queues, tree().NameOf(*queue), &QueueSpec::name);
  if (spec == setup_.queues.end() || !has_limit(*spec)) return std::nullopt;
  return RuntimeLimit{spec->name, *spec->maximum_runtime_seconds};
}

std::map<std::string, RuntimeLimit> ClusterQueues::RuntimeLimits() {
  std::map<std::string, RuntimeLimit> limits;
  for (const auto& [owner, holder] : holders_) {
    if (auto limit = RuntimeLimitOf(owner)) limits.emplace(owner, *std::move(limit));
  }
  return limits;
}

PoolIndex ClusterQueues::HomeOf(const std::string& owner) {
  Counted();
  const auto it = count_.accounts.find(WithoutLauncher(owner));
  if (it == count_.accounts.end()) return kNoPool;
  const auto most = std::ranges::max_element(it->second.held);
  return *most > 0 ? static_cast<PoolIndex>(most - it->second.held.begin()) : kNoPool;
}

std::int64_t ClusterQueues::HeadroomOf(const std::string& owner, PoolIndex pool, bool is_preemptible) {
  const std::string key = WithoutLauncher(owner);
  const kube::Result<QueueIndex> queue = QueueOf(key);
  if (!queue) return 0;
  const std::optional<PoolNeed> claim = ChargeOf(claims_, key), reserved = ChargeOf(reserved_, key);
  ClaimFor(key, std::nullopt);
  SetReserved(key, std::nullopt);
  const std::int64_t headroom = grus::HeadroomOf(use(), *queue, pool, is_preemptible);
  ClaimFor(key, claim);
  SetReserved(key, reserved);
  return headroom;
}

void ClusterQueues::Charge(Charges& charges, const std::string& owner, std::optional<PoolNeed> need) {
  if (!need && !charges.contains(owner)) return;
  const kube::Result<QueueIndex> queue = QueueOf(owner);  // May count anew, and drop charges.
  const auto it = charges.find(owner);
  if (it == charges.end() ? !need : need == it->second) return;
  const auto add = [&](PoolIndex pool, std::int64_t milli) {
    if (queue) count_.use->Add(*queue, pool, {.used = milli, .claimed = milli});
  };
  if (it != charges.end()) {
    add(it->second.pool, -it->second.milli);
    charges.erase(it);
  }
  if (!need || !queue) return;
  add(need->pool, need->milli);
  charges[owner] = *need;
}

void ClusterQueues::SetYield(const std::string& owner, std::optional<YieldNotice> notice) {
  Account& account = AccountOf(owner);
  if (!notice) {
    notices_.erase(owner);
    stays_.erase(owner);
  } else {
    std::vector<std::int64_t>& stays = stays_[owner];
    stays.resize(account.held.size());
    for (std::size_t pool = 0; pool < stays.size(); ++pool) {
      const std::int64_t each = WorkerMilli(account, static_cast<PoolIndex>(pool));
      const std::int64_t of_launcher = notice->to > 0 ? account.of_launcher[pool] : 0;
      const std::int64_t left = std::min(account.held[pool], each * notice->to + of_launcher);
      stays[pool] = notices_.contains(owner) ? std::min(stays[pool], left) : left;
    }
    notices_[owner] = *std::move(notice);
  }
  Recount(owner, account);
}

bool ClusterQueues::HasYielded(const std::string& owner) {
  const auto stays = stays_.find(owner);
  const auto account = Counted().accounts.find(owner);
  if (stays == stays_.end() || account == count_.accounts.end()) return true;
  for (std::size_t pool = 0; pool < account->second.held.size(); ++pool) {
    if (pool < stays->second.size() && account->second.held[pool] > stays->second[pool]) return false;
  }
  return true;
}

std::int64_t ClusterQueues::WorkerMilli(const Account& account, PoolIndex pool) {
  const auto at = static_cast<std::size_t>(pool);
  const std::int64_t held = account.held[at] - account.of_launcher[at];
  if (held == 0 || account.holder->worker_milli == 0) return held / std::max(1, account.holder->workers);
  return account.holder->worker_milli;
}

ClusterQueues::Count& ClusterQueues::Counted() {
  if (is_stale_) CountAnew();
  return count_;
}

// Different devices are not worth the same: those of other kinds need a pool of their own.
void ClusterQueues::FindDefaultResource() {
  std::map<std::string, std::int64_t> devices;
  for (NodeId id = 0; id < ledger_.node_limit(); ++id) {
    const LedgerNode* node = ledger_.NodeAt(id);
    if (node == nullptr || node->state.pool != kDefaultPool) continue;
    for (const auto& [name, amount] : node->state.allocatable.extended) {
      if (IsAccelerator(name)) devices[name] += amount;
    }
  }
  const auto most = std::ranges::max_element(devices, {}, [](const auto& of) { return of.second; });
  default_resource_ = devices.empty() || devices.contains(kGpuResource) ? kGpuResource : most->first;
}

void ClusterQueues::CountNodes() {
  count_.pools.clear();
  FindDefaultResource();
  for (const PoolSpec& pool : setup_.pools) count_.pools.push_back({.pool = pool.name});
  count_.pools.push_back({.pool = kDefaultPool});
  for (NodeId id = 0; id < ledger_.node_limit(); ++id) {
    const LedgerNode* node = ledger_.NodeAt(id);
    if (node == nullptr || !node->is_known) continue;
    for (std::size_t pool = 0; pool < count_.pools.size(); ++pool) {
      PoolReport& report = count_.pools[pool];
      if (report.pool != node->state.pool) {
        const bool is_older = std::ranges::find(count_.pools, node->state.pool, &PoolReport::pool) <
                              count_.pools.begin() + static_cast<std::ptrdiff_t>(pool);
        if (pool < setup_.pools.size() && is_older && Selects(setup_.pools[pool], node->state)) ++report.taken_by_older;
        continue;
      }
      const std::int64_t all = MilliOf(node->state.allocatable, static_cast<PoolIndex>(pool)),
                         used = MilliOf(node->used, static_cast<PoolIndex>(pool));
      // A pool without a selector of its own has all other nodes: those without GPUs do not matter there.
      if (pool < setup_.pools.size() || all > 0) ++report.nodes;
      report.milli += IsClosed(node->state) ? std::min(all, used) : all;
      report.used += used;
      report.free += IsClosed(node->state) ? 0 : std::max<std::int64_t>(0, all - used);
    }
  }
}

void ClusterQueues::CountAnew() {
  is_stale_ = false;
  CountNodes();
  count_.selected_by.clear();
  for (const SelectedNamespace& selected : setup_.namespaces) count_.selected_by[selected.ns] = selected.selected_by;
  std::vector<PoolSize> sizes;
  for (const PoolReport& pool : count_.pools) sizes.push_back({pool.pool, pool.milli});
  count_.accounts.clear();
  count_.use.reset();
  count_.tree.emplace(QueueTree::Build(setup_.queues, sizes));
  count_.use.emplace(*count_.tree);
  for (NodeId id = 0; id < ledger_.node_limit(); ++id) {
    const LedgerNode* node = ledger_.NodeAt(id);
    if (node == nullptr) continue;
    const PoolIndex pool = count_.tree->FindPool(node->state.pool);
    for (const NodeUse& held : node->by_owner) {
      const std::int64_t milli = pool == kNoPool ? 0 : MilliOf(held.held, pool);
      if (milli <= 0) continue;
      Account& account = AddHeld(ledger_.OwnerName(held.owner), pool, milli);
      account.is_on_closed_node |= IsClosed(node->state);
    }
  }
  ledger_.ForEachEnding([this](const LedgerNode& node, const std::string& owner, const Resources& request) {
    const PoolIndex pool = count_.tree->FindPool(node.state.pool);
    // What ends on a closed node comes free for nobody.
    if (pool == kNoPool || IsClosed(node.state) || MilliOf(request, pool) == 0) return;
    AccountOf(WithoutLauncher(owner)).ending[static_cast<std::size_t>(pool)] += MilliOf(request, pool);
  });
  for (auto& [owner, stays] : stays_) stays.resize(sizes.size());
  for (auto& [owner, account] : count_.accounts) Recount(owner, account);
  CountCharges(claims_);
  CountCharges(reserved_);
}

// Drops those whose queue or pool is gone.
void ClusterQueues::CountCharges(Charges& charges) {
  std::erase_if(charges, [this](const auto& charge) {
    const auto& [owner, need] = charge;
    const kube::Result<QueueIndex> queue = FindQueue(owner, *count_.tree);
    if (!queue || need.pool >= count_.tree->pool_count()) return true;
    count_.use->Add(*queue, need.pool, {.used = need.milli, .claimed = need.milli});
    return false;
  });
}

ClusterQueues::Account& ClusterQueues::AccountOf(const std::string& owner) {
  Counted();
  const auto [it, is_new] = count_.accounts.try_emplace(owner);
  if (!is_new) return it->second;
  Account& account = it->second;
  const kube::Result<QueueIndex> queue = FindQueue(owner, *count_.tree);
  account.queue = queue ? *queue : count_.tree->default_queue();
  account.is_misplaced = !queue;
  account.holder = &HolderOf(owner);
  const auto pools = static_cast<std::size_t>(count_.tree->pool_count());
  account.held.resize(pools);
  account.ending.resize(pools);
  account.of_launcher.resize(pools);
  account.counted.resize(pools);
  return account;
}

void ClusterQueues::Recount(const std::string& owner, Account& account) {
  const Holder& holder = *account.holder;
  const auto stays = stays_.find(owner);
  const bool is_fixed = !grus::IsPreemptible(holder.job_class, holder.comes_back);
  for (std::size_t pool = 0; pool < account.held.size(); ++pool) {
    const std::int64_t held = account.held[pool];
    const std::int64_t surplus =
        WorkerMilli(account, static_cast<PoolIndex>(pool)) * std::max(0, holder.workers - holder.min_workers);
    UsedGpus now{.used = held, .fixed = is_fixed ? std::max<std::int64_t>(0, held - surplus) : 0};
    const std::int64_t told = stays == stays_.end() ? 0 : std::max<std::int64_t>(0, held - stays->second[pool]);
    // A job shrinks on paper first: its pods leave the training before they end.
    const bool is_shrinking = holder.workers > 0 && holder.worker_milli > 0;
    const std::int64_t of_workers = held - account.of_launcher[pool];
    const std::int64_t leaving = is_shrinking ? of_workers - holder.worker_milli * holder.workers : 0;
    now.yielding = std::max({told, std::min(held, account.ending[pool]), leaving});
    UsedGpus& counted = account.counted[pool];
    if (now == counted) continue;
    count_.use->Add(account.queue, static_cast<PoolIndex>(pool),
                    {now.used - counted.used, now.fixed - counted.fixed, now.yielding - counted.yielding});
    counted = now;
  }
}

std::string ClusterQueues::PoolOf(const NodeState& node) const {
  const auto pool = std::ranges::find_if(setup_.pools, [&](const PoolSpec& spec) { return Selects(spec, node); });
  return pool == setup_.pools.end() ? kDefaultPool : pool->name;
}

PoolPlacement ClusterQueues::PlacementIn(const std::string& pool) const {
  const auto spec = std::ranges::find(setup_.pools, pool, &PoolSpec::name);
  return spec == setup_.pools.end() ? PoolPlacement::kBinPack : spec->placement;
}

void ClusterQueues::OnNode(const LedgerNode&) { is_stale_ = true; }

void ClusterQueues::OnHeld(const LedgerNode& node, const std::string& owner, const Resources& request, int sign) {
  if (is_stale_ || !is_active()) return;
  const PoolIndex pool = count_.tree->FindPool(node.state.pool);
  if (pool == kNoPool || IsClosed(node.state)) {
    is_stale_ = true;
    return;
  }
  const std::int64_t milli = sign * MilliOf(request, pool);
  if (milli == 0) return;
  PoolReport& report = count_.pools[static_cast<std::size_t>(pool)];
  report.used += milli;
  report.free -= milli;
  Recount(WithoutLauncher(owner), AddHeld(owner, pool, milli));
}

ClusterQueues::Account& ClusterQueues::AddHeld(const std::string& owner, PoolIndex pool, std::int64_t milli) {
  const std::string key = WithoutLauncher(owner);
  Account& account = AccountOf(key);
  account.held[static_cast<std::size_t>(pool)] += milli;
  if (key != owner) account.of_launcher[static_cast<std::size_t>(pool)] += milli;
  return account;
}

void ClusterQueues::OnEnding(const LedgerNode& node, const std::string& owner, const Resources& request, int sign) {
  if (is_stale_ || !is_active()) return;
  const PoolIndex pool = count_.tree->FindPool(node.state.pool);
  const std::int64_t milli = pool == kNoPool || IsClosed(node.state) ? 0 : sign * MilliOf(request, pool);
  if (milli == 0) return;
  const std::string key = WithoutLauncher(owner);
  Account& account = AccountOf(key);
  account.ending[static_cast<std::size_t>(pool)] += milli;
  Recount(key, account);
}

}  // namespace grus
