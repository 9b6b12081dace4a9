// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/planned_gang.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "controllers/policy/gang_standing.h"

namespace grus {
namespace {

// Members alike share a shape here, too.
std::vector<ShapePtr> InPool(const std::vector<ShapePtr>& members, const std::string& pool, const ClusterQueues& queues,
                             PoolIndex index) {
  std::vector<ShapePtr> in_pool;
  const PodShape* last = nullptr;
  for (const ShapePtr& member : members) {
    if (member.get() == last) {
      in_pool.push_back(in_pool.back());
      continue;
    }
    last = member.get();
    if (queues.MilliOf(member->request, index) == 0 && member->request.Accelerator().empty()) {
      in_pool.push_back(member);
      continue;
    }
    auto shape = std::make_shared<PodShape>(*member);
    shape->pool = pool;
    in_pool.push_back(std::move(shape));
  }
  return in_pool;
}

}  // namespace

bool PoolVariant::HasNodes() const {
  return std::ranges::all_of(parts, [](const GangPart& part) { return part.index->eligible_nodes() > 0; });
}

GangRank RankOf(const GangDemand& demand, const ClusterQueues& queues) {
  constexpr double kMost = 1e12;  // A status can say anything.
  const Holder& holder = queues.HolderOf(demand.key);
  std::int64_t served_since = demand.waiting_since;
  if (served_since > 0) {
    served_since += static_cast<std::int64_t>(std::clamp(holder.attained_gpu_seconds, 0.0, kMost));
  }
  return {holder.job_class, -demand.priority, demand.needed <= 0, served_since, demand.key};
}

void MakeVariants(PlannedGang& gang, ClusterLedger& ledger, ClusterQueues& queues) {
  gang.variants.clear();
  gang.at = 0;
  gang.nodes_version = 0;
  gang.setup_version = queues.version();
  if (!queues.is_active()) {
    PoolVariant& anywhere = gang.variants.emplace_back();
    anywhere.members = gang.demand.members;
    anywhere.parts = PartsOf(ledger, anywhere.members);
    return;
  }
  const QueueTree& tree = queues.tree();
  for (PoolIndex pool = 0; pool < tree.pool_count(); ++pool) {
    PoolVariant variant;
    variant.pool = pool;
    variant.placement = queues.PlacementIn(pool);
    variant.members = InPool(gang.demand.members, tree.PoolAt(pool).name, queues, pool);
    variant.milli.push_back(0);
    for (const ShapePtr& member : gang.demand.members) {
      variant.milli.push_back(variant.milli.back() + queues.MilliOf(member->request, pool));
    }
    variant.parts = PartsOf(ledger, variant.members);
    gang.variants.push_back(std::move(variant));
    if (gang.variants.back().members == gang.demand.members) return;  // It asks for no GPUs: pools do not matter.
  }
}

GangToPlace QueryOf(const PlannedGang& gang, const PoolVariant& variant, const ClusterLedger& ledger) {
  GangToPlace query;
  query.members = &variant.members;
  query.parts = &variant.parts;
  query.placement = variant.placement;
  query.needed = gang.demand.needed;
  for (const std::string& name : gang.demand.avoid) {
    if (const LedgerNode* node = ledger.FindNode(name)) query.avoid.push_back(node->id);
  }
  query.is_constrained = gang.is_constrained;
  return query;
}

// Nodes that would hold members, were they not closed; empty if they would not hold so many more.
std::vector<std::string> ClosedNodes(const PlannedGang& gang, const ClusterLedger& ledger, int missing) {
  std::set<ShapePtr> shapes(gang.demand.members.begin(), gang.demand.members.end());
  std::vector<std::string> names;
  int more = 0;
  for (NodeId id = 0; id < ledger.node_limit(); ++id) {
    const LedgerNode* node = ledger.NodeAt(id);
    if (node == nullptr || !node->is_known || !IsClosed(node->state)) continue;
    const NodeState open = Opened(node->state);
    int copies = 0;
    for (const ShapePtr& shape : shapes) {
      if (!Accepts(open, *shape) || Accepts(node->state, *shape)) continue;
      copies = std::max(copies, CopiesThatFit(node->state.allocatable, {}, shape->request, missing));
    }
    if (copies > 0) names.push_back(node->state.name);
    more += copies;
  }
  return more >= missing ? names : std::vector<std::string>();
}

void UpdateCapacity(PlannedGang& gang, const ClusterLedger& ledger, bool is_thorough) {
  if (gang.nodes_version == ledger.nodes_version() && (gang.is_capacity_thorough || !is_thorough)) return;
  // The first count is thorough; after changes of nodes a rough one does, until the gang asks for a reservation.
  is_thorough = is_thorough || gang.nodes_version == 0;
  gang.nodes_version = ledger.nodes_version();
  gang.is_capacity_thorough = is_thorough;
  int most = 0;
  for (PoolVariant& variant : gang.variants) {
    const GangCapacity capacity = CapacityFor(ledger, QueryOf(gang, variant, ledger), is_thorough);
    variant.capacity = capacity.members;
    variant.is_missed = capacity.is_missed;
    most = std::max(most, capacity.members);
  }
  if (gang.in_pool().capacity < gang.needed()) {
    const auto other = std::ranges::max_element(gang.variants, {}, &PoolVariant::capacity);
    gang.at = static_cast<std::size_t>(other - gang.variants.begin());
  }
  gang.is_changed |= Update(gang.standing.capacity, most);
  std::vector<std::string> closed =
      most < gang.needed() ? ClosedNodes(gang, ledger, gang.needed() - most) : std::vector<std::string>();
  gang.is_changed |= Update(gang.standing.can_never_fit, most < gang.needed());
  gang.is_changed |= Update(gang.standing.closed, std::move(closed));
}

bool HasRoomWithout(const PlannedGang& gang, const std::set<OwnerId>& owners, const ClusterLedger& ledger) {
  GangToPlace query = QueryOf(gang, gang.in_pool(), ledger);
  query.may_use = &ledger.reserved();
  for (NodeId id = 0; id < ledger.node_limit(); ++id) {
    const LedgerNode* node = ledger.NodeAt(id);
    if (node == nullptr) continue;
    for (const NodeUse& use : node->by_owner) {
      if (use.owner != 0 && owners.contains(use.owner)) query.freed[id] += use.held;
    }
  }
  return !PlaceGang(ledger, query).nodes.empty();
}

std::set<std::string> OwnersInTheWay(const PlannedGang& gang, const std::set<std::string>& may_end,
                                     const ClusterLedger& ledger) {
  constexpr std::size_t kMostNodes = 64;
  const FitIndex& index = *gang.in_pool().parts.front().index;
  std::vector<NodeId> nodes;
  for (NodeId id = 0; id < ledger.node_limit(); ++id) {
    if (ledger.NodeAt(id) != nullptr && index.IsEligible(id)) nodes.push_back(id);
  }
  // Those with most room first: least must end there.
  std::stable_sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return index.RankOf(a) > index.RankOf(b); });
  GangToPlace query = QueryOf(gang, gang.in_pool(), ledger);
  query.may_use = &ledger.reserved();
  std::set<std::string> owners;
  std::size_t freed = 0;
  for (const NodeId id : nodes) {
    if (freed == kMostNodes) break;
    bool frees = false;
    for (const NodeUse& use : ledger.NodeAt(id)->by_owner) {
      if (use.owner == 0) continue;
      const std::string& owner = ledger.OwnerName(use.owner);
      if (!may_end.contains(WithoutLauncher(owner))) continue;
      query.freed[id] += use.held;
      owners.insert(WithoutLauncher(owner));
      frees = true;
    }
    if (!frees) continue;
    ++freed;
    if (!PlaceGang(ledger, query).nodes.empty()) return owners;
  }
  return {};
}

const std::string& ClaimantBefore(const PlannedGang& gang, const ClusterQueues& queues) {
  static const std::string kNobody;
  if (!queues.is_active() || !gang.is_entitled || gang.standing.fitting < gang.needed()) return kNobody;
  for (const auto& [owner, claim] : queues.claims()) {
    if (claim.pool == gang.in_pool().pool && owner != gang.demand.key) return owner;
  }
  return kNobody;
}

std::string WhyNoTurn(const PlannedGang& gang, const std::string& before, ClusterQueues& queues) {
  const kube::Result<QueueIndex> queue = queues.QueueOf(gang.demand.key);
  if (!queue) return queue.error().message();
  return "queue " + queues.tree().NameOf(*queue) + " starts its jobs strictly in order, and " + before +
         " before it waits";
}

bool IsWithinGuarantee(const PlannedGang& gang, const PoolVariant& variant, ClusterQueues& queues) {
  const std::vector<PoolNeed> needs = NeedsOf(gang, variant);
  return gang.queue != kNoQueue && !needs.empty() &&
         queues.use().used(gang.queue, variant.pool) + needs.front().milli <=
             queues.tree().QuotaOf(gang.queue, variant.pool).guaranteed;
}

std::vector<PoolNeed> NeedsOf(const PlannedGang& gang, const PoolVariant& variant) {
  if (variant.milli.empty()) return {};
  const std::int64_t milli =
      variant.milli[std::min<std::size_t>(static_cast<std::size_t>(gang.needed()), variant.milli.size() - 1)];
  return milli > 0 ? std::vector{PoolNeed{variant.pool, milli}} : std::vector<PoolNeed>();
}

std::optional<std::string> WhyNotAdmitted(PlannedGang& gang, const PoolVariant& variant, ClusterQueues& queues) {
  gang.is_entitled = true;
  if (!queues.is_active()) return std::nullopt;
  // Members beyond the minimum are surplus, which can be taken back.
  const bool is_preemptible = gang.IsExtra() || queues.IsPreemptible(gang.demand.key);
  const Admission admission = Admit(queues.use(), {gang.queue, NeedsOf(gang, variant), is_preemptible});
  gang.is_entitled = admission.is_admitted() || admission.reason == AdmissionReason::kNothingIdle;
  if (admission.is_admitted()) return std::nullopt;
  return Explain(queues.tree(), admission);
}

int MostAdmitted(const PlannedGang& gang, const PoolVariant& variant, ClusterQueues& queues) {
  if (variant.milli.empty() || variant.milli.back() == 0) return std::numeric_limits<int>::max();
  const std::int64_t room = HeadroomOf(queues.use(), gang.queue, variant.pool);
  const auto beyond = std::ranges::upper_bound(variant.milli, room);
  return std::max(gang.needed(), static_cast<int>(beyond - variant.milli.begin()) - 1);
}

}  // namespace grus
