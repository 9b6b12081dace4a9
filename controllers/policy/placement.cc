// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/placement.h"

#include <algorithm>
#include <unordered_map>

#include "controllers/policy/fill.h"
#include "controllers/policy/pod_constraints.h"

namespace grus {
namespace {

// What the members placed so far take, by node.
using Draft = std::unordered_map<NodeId, Resources>;

Resources Taken(const LedgerNode& node, const GangToPlace& gang, const Draft& draft) {
  Resources taken;
  if (!gang.on_empty_cluster) taken += node.used;
  if (!gang.on_empty_cluster && !gang.may_use_reserved) taken += node.reserved;
  if (const auto drafted = draft.find(node.id); drafted != draft.end()) taken += drafted->second;
  return taken;
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
  if (gang.may_use_reserved) {
    for (const auto& [id, amount] : ledger.reserved()) recount(id);
  }
  for (const auto& [id, amount] : draft) recount(id);
  for (const NodeId id : gang.avoid) overrides[id] = 0;
  return overrides;
}

// Exactly the first `count` members, without constraints between pods.
std::vector<NodeId> PlaceFirst(const ClusterLedger& ledger, const GangToPlace& gang, int count) {
  std::vector<NodeId> nodes(static_cast<std::size_t>(count));
  Draft draft;
  for (const GangPart& part : *gang.parts) {
    const int copies = part.CountBelow(count);
    if (copies == 0) continue;
    const auto filled = Fill(*part.index, OverridesFor(ledger, gang, *part.index, draft), copies);
    if (filled.empty()) return {};
    auto member = part.members.begin();
    for (const auto& [id, on_node] : filled) {
      for (int i = 0; i < on_node; ++i) nodes[static_cast<std::size_t>(*member++)] = id;
      if (gang.parts->size() == 1) continue;
      for (int i = 0; i < on_node; ++i) draft[id] += part.index->shape().request;
    }
  }
  return nodes;
}

// One member after the other; in `domain` only, if it is given.
class GreedySearch {
 public:
  GreedySearch(const ClusterLedger& ledger, const GangToPlace& gang) : ledger_(ledger), gang_(gang) {}

  std::vector<NodeId> Run(const std::string& key, const std::string& domain) {
    PodConstraints constraints(ledger_);
    Draft draft;
    std::vector<NodeId> nodes, touched;
    std::vector<std::vector<NodeId>> orders;
    for (const GangPart& part : *gang_.parts) {
      orders.push_back(InOrder(*part.index, OverridesFor(ledger_, gang_, *part.index, draft),
                               static_cast<int>(part.members.size())));
    }
    for (std::size_t member = 0; member < gang_.members->size(); ++member) {
      const ShapePtr& shape = (*gang_.members)[member];
      const std::size_t part = PartOf(static_cast<int>(member));
      const FitIndex& index = *(*gang_.parts)[part].index;
      const PodConstraints::Rules& rules = constraints.RulesFor(shape);
      const auto fits = [&](NodeId id) {
        const LedgerNode& node = *ledger_.NodeAt(id);
        if (!key.empty() && node.state.labels.Get(key) != domain) return false;
        return constraints.Allow(rules, node) && index.CopiesOn(id, Taken(node, gang_, draft)) > 0;
      };
      // Close together: where there is a member already, then in order.
      auto found = std::find_if(touched.begin(), touched.end(), fits);
      if (found == touched.end()) {
        found = std::find_if(orders[part].begin(), orders[part].end(), fits);
        if (found == orders[part].end()) break;
      }
      const NodeId id = *found;
      if (!draft.contains(id)) touched.push_back(id);
      draft[id] += shape->request;
      constraints.Add(shape, *ledger_.NodeAt(id));
      nodes.push_back(id);
    }
    return nodes;
  }

 private:
  std::size_t PartOf(int member) const {
    std::size_t part = 0;
    const auto has_member = [member](const GangPart& p) {
      return std::binary_search(p.members.begin(), p.members.end(), member);
    };
    while (!has_member((*gang_.parts)[part])) ++part;
    return part;
  }

  const ClusterLedger& ledger_;
  const GangToPlace& gang_;
};

// Where members must be together, the first one decides for all: a domain too small for them is tried in vain, so
// each one is tried, if they are few.
std::vector<NodeId> PlaceGreedily(const ClusterLedger& ledger, const GangToPlace& gang) {
  std::size_t domains_left = 64;
  GreedySearch search(ledger, gang);
  std::vector<NodeId> best = search.Run("", "");
  std::set<std::string> keys;
  for (const ShapePtr& shape : *gang.members) {
    for (const kube::PodAffinityTerm& term : shape->affinity) keys.insert(term.topology_key);
  }
  for (const std::string& key : keys) {
    std::set<std::string> domains;
    if (best.size() == gang.members->size()) break;
    for (NodeId id = 0; id < ledger.node_limit(); ++id) {
      const LedgerNode* node = ledger.NodeAt(id);
      if (node && gang.parts->front().index->CopiesOn(id) > 0) domains.emplace(node->state.labels.Get(key));
    }
    if (domains.size() > domains_left) continue;
    domains_left -= domains.size();
    for (const std::string& domain : domains) {
      std::vector<NodeId> nodes = search.Run(key, domain);
      if (nodes.size() > best.size()) best = std::move(nodes);
    }
  }
  return best;
}

}  // namespace

int GangPart::CountBelow(int limit) const {
  return static_cast<int>(std::lower_bound(members.begin(), members.end(), limit) - members.begin());
}

std::vector<GangPart> PartsOf(ClusterLedger& ledger, const std::vector<ShapePtr>& members) {
  std::vector<GangPart> parts;
  const PodShape* last = nullptr;
  std::size_t part = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].get() != last) {
      last = members[i].get();
      part = 0;
      while (part < parts.size() && !FitAlike(parts[part].index->shape(), *last)) ++part;
      if (part == parts.size()) parts.push_back({ledger.IndexFor(*last), {}});
    }
    parts[part].members.push_back(static_cast<int>(i));
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
    const bool is_plain =
        !gang.on_empty_cluster && gang.avoid.empty() && (!gang.may_use_reserved || ledger.reserved().empty());
    const std::int64_t copies =
        is_plain ? part.index->copies() : CopiesWith(*part.index, OverridesFor(ledger, gang, *part.index, {}));
    // The first member without a place ends it.
    if (copies < part.CountBelow(room)) room = part.members[static_cast<std::size_t>(copies)];
  }
  return room;
}

GangPlaces PlaceGang(const ClusterLedger& ledger, const GangToPlace& gang) {
  const int needed = std::max(gang.needed, 1);
  int most = RoomForMembers(ledger, gang, static_cast<int>(gang.members->size()));
  if (most < needed) return {{}, most};
  GangPlaces places;
  if (gang.is_constrained) {
    places.nodes = PlaceGreedily(ledger, gang);
    places.fitting = static_cast<int>(places.nodes.size());
    if (places.fitting < needed) places.nodes.clear();
    return places;
  }
  places.nodes = PlaceFirst(ledger, gang, most);
  const bool is_cut = places.nodes.empty();
  // Several kinds that do not all fit together: the most members for which it works, by halving.
  for (int least = needed; is_cut && least < most;) {
    const int middle = least + (most - least) / 2;
    std::vector<NodeId> nodes = PlaceFirst(ledger, gang, middle);
    if (nodes.empty()) {
      most = middle;
    } else {
      places.nodes = std::move(nodes);
      least = middle + 1;
    }
  }
  places.fitting = places.nodes.empty() ? needed - 1 : static_cast<int>(places.nodes.size());
  return places;
}

std::vector<NodeId> PlacesFor(ClusterLedger& ledger, const ShapePtr& shape, int at_most, bool may_use_reserved) {
  if (at_most <= 0) return {};
  const std::vector<ShapePtr> members(static_cast<std::size_t>(at_most), shape);
  const std::vector<GangPart> parts = PartsOf(ledger, members);
  GangToPlace gang;
  gang.members = &members;
  gang.parts = &parts;
  gang.is_constrained = HasConstraints(ledger, members);
  gang.may_use_reserved = may_use_reserved;
  return PlaceGang(ledger, gang).nodes;
}

void KeepConstrainedPlaces(ClusterLedger& ledger, const std::string& owner, const ShapePtr& shape, int count) {
  const std::vector<Place>& earlier = ledger.PlacesOf(owner);
  if (static_cast<int>(earlier.size()) == count &&
      std::all_of(earlier.begin(), earlier.end(), [&](const Place& place) { return *place.shape == *shape; })) {
    return;
  }
  ledger.DropPlaces(owner);
  for (const NodeId id : PlacesFor(ledger, shape, count, true)) {
    ledger.AddPlace(owner, ledger.NodeAt(id)->state.name, shape);
  }
}

}  // namespace grus
