// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/placement.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "controllers/policy/fill.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/lone_part.h"
#include "controllers/policy/pod_constraints.h"

namespace grus {
namespace {

// What the members placed so far take, by node.
using Draft = std::unordered_map<NodeId, Resources>;

Resources Taken(const LedgerNode& node, const GangToPlace& gang, const Draft& draft) {
  Resources taken;
  if (!gang.on_empty_cluster) taken += node.used;
  if (!gang.on_empty_cluster && node.reserved.pods > 0) taken += node.ReservedBut(gang.may_use);
  if (const auto freed = gang.freed.find(node.id); freed != gang.freed.end()) taken -= freed->second;
  if (const auto drafted = draft.find(node.id); drafted != draft.end()) taken += drafted->second;
  return taken;
}

// Puts the member on the node, and on one of its GPUs if it asks for a part of one: `preferred` if it has room.
void Draw(const LedgerNode& node, const GangToPlace& gang, std::size_t member, Draft& draft, GangPlaces& places,
          std::string_view preferred = {}) {
  const PodShape& shape = *(*gang.members)[member];
  std::string gpu;
  if (IsOnGpus(shape.request)) gpu = node.GpuFor(shape, Taken(node, gang, draft), preferred);
  draft[node.id] += OnGpu(shape.request, gpu);
  if (gpu.empty()) return;
  if (places.gpus.size() <= member) places.gpus.resize(member + 1);
  places.gpus[member] = std::move(gpu);
}

FitOverrides OverridesFor(const ClusterLedger& ledger, const GangToPlace& gang, const FitIndex& index,
                          const Draft& draft) {
  FitOverrides overrides;
  const auto recount = [&](NodeId id) {
    if (const LedgerNode* node = ledger.NodeAt(id)) {
      overrides[id] = index.CopiesOn(id, Taken(*node, gang, draft));
    }
  };
  for (NodeId id = 0; gang.on_empty_cluster && id < ledger.node_limit(); ++id) recount(id);
  if (gang.may_use != nullptr) {
    for (const auto& [id, amount] : *gang.may_use) recount(id);
  }
  for (const auto& [id, amount] : draft) recount(id);
  for (const auto& [id, amount] : gang.freed) recount(id);
  for (const NodeId id : gang.avoid) overrides[id] = 0;
  return overrides;
}

// Places exactly the first `count` members, kind by kind; empty: they do not fit in this order.
GangPlaces PlaceKinds(const ClusterLedger& ledger, const GangToPlace& gang, int count,
                      const std::vector<const GangPart*>& order) {
  GangPlaces places;
  places.nodes.resize(static_cast<std::size_t>(count));
  Draft draft;
  for (const GangPart* part : order) {
    const int copies = part->CountBelow(count);
    if (copies == 0) continue;
    const FitOverrides overrides = OverridesFor(ledger, gang, *part->index, draft);
    const PoolPlacement placement = part->PlacementIn(gang);
    auto filled = Fill(*part->index, overrides, copies, placement);
    if (filled.empty()) return {};
    std::string preferred;
    // Whether there would be room is another question, which is asked more often.
    const bool is_for_now = !gang.on_empty_cluster && gang.freed.empty();
    if (copies == 1 && Packs(placement) && is_for_now) {
      const auto taken = [&](const LedgerNode& node) { return Taken(node, gang, draft); };
      if (auto alone = LeastFragmenting(ledger, *part->index, overrides, filled.front().first, taken)) {
        filled.front().first = alone->node;
        const bool is_packed = ledger.NodeAt(alone->node)->PlacementOf(part->index->shape()) == placement;
        if (is_packed) preferred = std::move(alone->gpus);
      }
    }
    auto member = part->members.begin();
    for (const auto& [id, on_node] : filled) {
      for (int i = 0; i < on_node; ++i, ++member) {
        const auto at = static_cast<std::size_t>(*member);
        places.nodes[at] = id;
        // Of a part of a GPU also which: not the one that is kept for another gang.
        if (order.size() > 1 || IsOnGpus((*gang.members)[at]->request))
          Draw(*ledger.NodeAt(id), gang, at, draft, places, preferred);
      }
    }
  }
  return places;
}

// The same without constraints between pods; empty: no place was found for one.
GangPlaces PlaceFirst(const ClusterLedger& ledger, const GangToPlace& gang, int count) {
  std::vector<const GangPart*> order;
  for (const GangPart& part : *gang.parts) order.push_back(&part);
  GangPlaces places = PlaceKinds(ledger, gang, count, order);
  // Large requests come first. If these take the only nodes that suit others, try those first.
  const auto suits = [](const GangPart* part) { return part->index->eligible_nodes(); };
  // Likewise if they take memory of GPUs of which others have said how much they need.
  const auto says = [](const GangPart* part) { return -part->index->shape().request.Extended(kSaidMemory); };
  const auto try_order = [&](const auto& first) {
    if (!places.nodes.empty() || std::ranges::is_sorted(order, {}, first)) return;
    std::ranges::stable_sort(order, {}, first);
    places = PlaceKinds(ledger, gang, count, order);
  };
  try_order(suits);
  try_order(says);
  return places;
}

// The number of the part that the member is in.
std::size_t PartOf(const GangToPlace& gang, int member) {
  std::size_t part = 0;
  while (!std::ranges::binary_search((*gang.parts)[part].members, member)) ++part;
  return part;
}

// A node that fits; nullopt: none does.
template <typename Fits>
std::optional<NodeId> FirstOf(const std::vector<NodeId>& nodes, const Fits& fits) {
  const auto first = std::ranges::find_if(nodes, fits);
  return first == nodes.end() ? std::nullopt : std::optional(*first);
}

template <typename Fits, typename TakenOn>
std::optional<NodeId> FreestOf(const std::vector<NodeId>& nodes, const Fits& fits, const TakenOn& taken_on,
                               const FitIndex& index) {
  std::optional<Freeness> best;
  for (const NodeId id : nodes) {
    if (!fits(id)) continue;
    const Freeness here{id, index.CopiesOn(id, taken_on(id)), index.CapacityOf(id), index.RankOf(id).fullness};
    if (!best || IsFreer(here, *best)) best = here;
  }
  return best ? std::optional(best->id) : std::nullopt;
}

// Places one member after the other; with a `key`, only on nodes whose label `key` is `domain`.
GangPlaces PlaceOneByOne(const ClusterLedger& ledger, const GangToPlace& gang, const std::string& key,
                         const std::string& domain) {
  PodConstraints constraints(ledger);
  Draft draft;
  GangPlaces places;
  std::vector<NodeId> touched;
  std::vector<std::vector<NodeId>> orders;
  for (const GangPart& part : *gang.parts) {
    const FitOverrides overrides = OverridesFor(ledger, gang, *part.index, draft);
    orders.push_back(InOrder(*part.index, overrides, static_cast<int>(part.members.size())));
  }
  for (std::size_t member = 0; member < gang.members->size(); ++member) {
    const ShapePtr& shape = (*gang.members)[member];
    const std::size_t part = PartOf(gang, static_cast<int>(member));
    const FitIndex& index = *(*gang.parts)[part].index;
    const PodConstraints::Rules& rules = constraints.RulesFor(shape);
    const auto fits = [&](NodeId id) {
      const LedgerNode& node = *ledger.NodeAt(id);
      if (!key.empty() && node.state.labels.Get(key) != domain) return false;
      return constraints.Allow(rules, node) && index.CopiesOn(id, Taken(node, gang, draft)) > 0;
    };
    const auto taken_on = [&](NodeId id) { return Taken(*ledger.NodeAt(id), gang, draft); };
    // To pack, first try nodes that have a member already, then the others in order.
    const bool is_spread = (*gang.parts)[part].PlacementIn(gang) == PoolPlacement::kSpread;
    std::optional<NodeId> found = is_spread ? FreestOf(orders[part], fits, taken_on, index) : FirstOf(touched, fits);
    if (!found && !is_spread) found = FirstOf(orders[part], fits);
    if (!found) break;
    const NodeId id = *found;
    if (!draft.contains(id)) touched.push_back(id);
    Draw(*ledger.NodeAt(id), gang, member, draft, places);
    constraints.Add(shape, *ledger.NodeAt(id));
    places.nodes.push_back(id);
  }
  return places;
}

// If members must be together, the first one picks the domain for all, perhaps one that is too small: try each domain,
// if there are few.
GangPlaces PlaceGreedily(const ClusterLedger& ledger, const GangToPlace& gang) {
  std::size_t domains_left = 64;
  GangPlaces best = PlaceOneByOne(ledger, gang, "", "");
  std::set<std::string> keys;
  for (const ShapePtr& shape : *gang.members) {
    for (const kube::PodAffinityTerm& term : shape->affinity) keys.insert(term.topology_key);
  }
  for (const std::string& key : keys) {
    std::set<std::string> domains;
    if (best.nodes.size() == gang.members->size()) break;
    for (NodeId id = 0; id < ledger.node_limit(); ++id) {
      const LedgerNode* node = ledger.NodeAt(id);
      if (node && gang.parts->front().index->CopiesOn(id) > 0) domains.emplace(node->state.labels.Get(key));
    }
    if (domains.size() > domains_left) continue;
    domains_left -= domains.size();
    for (const std::string& domain : domains) {
      GangPlaces places = PlaceOneByOne(ledger, gang, key, domain);
      if (places.nodes.size() > best.nodes.size()) best = std::move(places);
    }
  }
  return best;
}

}  // namespace

int GangPart::CountBelow(int limit) const {
  return static_cast<int>(std::ranges::lower_bound(members, limit) - members.begin());
}

PoolPlacement GangPart::PlacementIn(const GangToPlace& gang) const {
  if (index->device().empty()) return PoolPlacement::kBinPack;
  return (*gang.members)[static_cast<std::size_t>(members.front())]->placement.value_or(gang.placement);
}

std::vector<GangPart> PartsOf(ClusterLedger& ledger, const std::vector<ShapePtr>& members) {
  std::vector<GangPart> parts;
  const PodShape* last = nullptr;
  auto part = parts.end();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].get() != last) {
      last = members[i].get();
      part = std::ranges::find_if(parts, [&](const GangPart& p) {
        return p.index->shape().pool == last->pool && FitAlike(p.index->shape(), *last) &&
               members[static_cast<std::size_t>(p.members.front())]->placement == last->placement;
      });
      if (part == parts.end()) part = parts.insert(part, {ledger.IndexFor(*last), {}});
    }
    part->members.push_back(static_cast<int>(i));
  }
  std::stable_sort(parts.begin(), parts.end(), [](const GangPart& a, const GangPart& b) {
    const Resources &x = a.index->shape().request, &y = b.index->shape().request;
    const std::int64_t x_devices = x.Extended(x.Accelerator()), y_devices = y.Extended(y.Accelerator());
    return x_devices != y_devices ? x_devices > y_devices : x.milli_cpu > y.milli_cpu;
  });
  return parts;
}

bool HasConstraints(const ClusterLedger& ledger, const std::vector<ShapePtr>& members) {
  const PodShape* last = nullptr;
  for (const ShapePtr& shape : members) {
    if (shape.get() == last) continue;
    last = shape.get();
    if (shape->has_pod_constraints()) return true;
    for (const auto& [key, guard] : ledger.guards()) {
      for (const kube::PodAffinityTerm& term : guard.shape->anti_affinity) {
        if (TermMatches(term, guard.shape->ns, *shape, true)) return true;
      }
    }
  }
  return false;
}

int RoomForMembers(const ClusterLedger& ledger, const GangToPlace& gang, int limit) {
  int room = limit;
  for (const GangPart& part : *gang.parts) {
    const bool is_plain = !gang.on_empty_cluster && gang.avoid.empty() && gang.freed.empty() &&
                          (gang.may_use == nullptr || gang.may_use->empty());
    const std::int64_t copies =
        is_plain ? part.index->copies() : CopiesWith(*part.index, OverridesFor(ledger, gang, *part.index, {}));
    // Members count in order: the first one without a place ends the count.
    if (copies < part.CountBelow(room)) room = part.members[static_cast<std::size_t>(copies)];
  }
  return room;
}

GangPlaces PlaceGang(const ClusterLedger& ledger, const GangToPlace& gang) {
  const int needed = std::max(gang.needed, 1);
  int most = RoomForMembers(ledger, gang, std::min(gang.at_most, static_cast<int>(gang.members->size())));
  if (most < needed) return {{}, {}, most};
  GangPlaces places;
  if (gang.is_constrained) {
    places = PlaceGreedily(ledger, gang);
    places.nodes.resize(std::min(places.nodes.size(), static_cast<std::size_t>(most)));
    places.fitting = static_cast<int>(places.nodes.size());
    return places.fitting < needed ? GangPlaces{.nodes = {}, .fitting = places.fitting} : places;
  }
  places = PlaceFirst(ledger, gang, most);
  const bool is_cut = places.nodes.empty();
  // If several kinds do not all fit together, find the most members that do, by bisection.
  for (int least = needed; is_cut && least < most;) {
    const int middle = least + (most - least) / 2;
    GangPlaces fewer = PlaceFirst(ledger, gang, middle);
    if (fewer.nodes.empty()) {
      most = middle;
    } else {
      places = std::move(fewer);
      least = middle + 1;
    }
  }
  places.fitting = places.nodes.empty() ? needed - 1 : static_cast<int>(places.nodes.size());
  return places;
}

std::vector<NodeId> PlacesFor(ClusterLedger& ledger, const ShapePtr& shape, int at_most, const ReservedRoom* may_use,
                              PoolPlacement placement) {
  if (at_most <= 0) return {};
  const std::vector<ShapePtr> members(static_cast<std::size_t>(at_most), shape);
  const std::vector<GangPart> parts = PartsOf(ledger, members);
  const GangToPlace gang{.members = &members,
                         .parts = &parts,
                         .placement = placement,
                         .is_constrained = HasConstraints(ledger, members),
                         .may_use = may_use};
  return PlaceGang(ledger, gang).nodes;
}

void KeepChosenPlaces(ClusterLedger& ledger, const std::string& owner, const ShapePtr& shape, int count,
                      PoolPlacement placement) {
  if (ledger.HasExactly(owner, *shape, count)) return;
  ledger.DropPlaces(owner);
  for (const NodeId id : PlacesFor(ledger, shape, count, &ledger.reserved(), placement)) {
    ledger.AddPlace(owner, ledger.NodeAt(id)->state.name, shape);
  }
}

}  // namespace grus
