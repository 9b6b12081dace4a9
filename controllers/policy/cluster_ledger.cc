// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/cluster_ledger.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace grus {

ClusterLedger::ClusterLedger() : owners_(1) {}

bool ClusterLedger::HasNode(const std::string& name) const {
  const auto it = nodes_.find(name);
  return it != nodes_.end() && it->second.is_known;
}

LedgerNode& ClusterLedger::NodeNamed(const std::string& name) {
  const auto [it, is_new] = nodes_.try_emplace(name);
  LedgerNode& node = it->second;
  if (!is_new) return node;
  node.state.name = name;
  if (free_ids_.empty()) {
    node.id = node_limit();
    by_id_.push_back(&node);
  } else {
    node.id = free_ids_.back();
    free_ids_.pop_back();
    by_id_[node.id] = &node;
  }
  return node;
}

const LedgerNode* ClusterLedger::FindNode(const std::string& name) const {
  const auto it = nodes_.find(name);
  return it == nodes_.end() ? nullptr : &it->second;
}

void ClusterLedger::Forget(LedgerNode& node) {
  for (const auto& index : indexes_) index->SetNode(node.id, nullptr, {});
  reserved_.erase(node.id);
  by_id_[node.id] = nullptr;
  free_ids_.push_back(node.id);
  nodes_.erase(nodes_.find(node.state.name));
}

Resources ClusterLedger::TakenOn(const LedgerNode& node) {
  Resources taken = node.used;
  taken += node.reserved;
  return taken;
}

void ClusterLedger::PutNode(NodeState state) {
  ++version_, ++nodes_version_, ++room_version_;
  LedgerNode& node = NodeNamed(state.name);
  node.state = std::move(state);
  node.is_known = true;
  const Resources taken = TakenOn(node);
  for (const auto& index : indexes_) {
    // Whose devices count for the index depends on whether its shape may use the node, which may change now.
    for (const NodeUse& h : node.by_owner) index->RemoveHeld(node.id, h.owner, h.held);
    index->SetNode(node.id, &node.state, taken);
    for (const NodeUse& h : node.by_owner) index->AddHeld(node.id, h.owner, h.held);
  }
}

void ClusterLedger::RemoveNode(const std::string& name) {
  const auto it = nodes_.find(name);
  if (it == nodes_.end()) return;
  ++version_, ++nodes_version_;
  LedgerNode& node = it->second;
  // Its pods are still bound to it until they are deleted; the entry keeps their sum.
  node.is_known = false;
  node.state = NodeState{};
  node.state.name = name;
  for (const auto& index : indexes_) {
    for (const NodeUse& h : node.by_owner) index->RemoveHeld(node.id, h.owner, h.held);
    index->SetNode(node.id, nullptr, {});
  }
  if (node.uses == 0) Forget(node);
}

OwnerId ClusterLedger::Intern(const std::string& owner) {
  if (owner.empty()) return 0;
  const auto [it, is_new] = owner_ids_.try_emplace(owner);
  if (!is_new) return it->second;
  if (free_owners_.empty()) {
    it->second = owner_limit();
    owners_.emplace_back();
  } else {
    it->second = free_owners_.back();
    free_owners_.pop_back();
  }
  owners_[it->second].name = owner;
  return it->second;
}

OwnerId ClusterLedger::FindOwner(const std::string& owner) const {
  const auto it = owner_ids_.find(owner);
  return it == owner_ids_.end() ? 0 : it->second;
}

void ClusterLedger::Reindex(LedgerNode& node, OwnerId owner, const Resources& request, bool is_taken) {
  ++version_;
  const bool is_reserved = !(node.reserved == Resources{});
  const Resources both = is_reserved ? TakenOn(node) : Resources{};
  for (const auto& index : indexes_) {
    index->SetTaken(node.id, is_reserved ? both : node.used);
    if (is_taken) index->AddHeld(node.id, owner, request);
    else index->RemoveHeld(node.id, owner, request);
  }
}

void ClusterLedger::Take(LedgerNode& node, OwnerId owner, const Resources& request, const ShapePtr& shape,
                         bool is_place) {
  node.used += request;
  ++node.uses;
  ++owners_[owner].holdings;
  auto use =
      std::find_if(node.by_owner.begin(), node.by_owner.end(), [owner](const NodeUse& h) { return h.owner == owner; });
  if (use == node.by_owner.end()) {
    use = node.by_owner.emplace(use);
    use->owner = owner;
  }
  ++use->pods;
  use->held += request;
  if (is_place) use->unbound += request;
  if (shape) {
    node.pods.push_back(shape);
    if (!shape->anti_affinity.empty()) {
      Guard& guard = guards_[shape.get()];
      if (!guard.shape) ++guards_version_;
      guard.shape = shape;
      ++guard.nodes[node.id];
    }
  }
  Reindex(node, owner, request, true);
}

void ClusterLedger::GiveBack(LedgerNode& node, OwnerId owner, const Resources& request, const ShapePtr& shape,
                             bool is_place) {
  node.used -= request;
  const auto use =
      std::find_if(node.by_owner.begin(), node.by_owner.end(), [owner](const NodeUse& h) { return h.owner == owner; });
  use->held -= request;
  if (is_place) use->unbound -= request;
  if (--use->pods == 0) node.by_owner.erase(use);
  if (shape) {
    node.pods.erase(std::find(node.pods.begin(), node.pods.end(), shape));
    if (const auto guard = guards_.find(shape.get()); guard != guards_.end()) {
      const auto at = guard->second.nodes.find(node.id);
      if (--at->second == 0) guard->second.nodes.erase(at);
      if (guard->second.nodes.empty()) guards_.erase(guard);
    }
  }
  Reindex(node, owner, request, false);
  if (--owners_[owner].holdings == 0 && owner != 0) {
    owner_ids_.erase(owners_[owner].name);
    owners_[owner] = {};
    free_owners_.push_back(owner);
  }
  if (--node.uses == 0 && !node.is_known) Forget(node);
}

void ClusterLedger::Bind(const std::string& pod_uid, const std::string& node, const Resources& request,
                         const std::string& owner, ShapePtr shape) {
  const bool is_new = !bindings_.contains(pod_uid);
  Release(pod_uid);
  const OwnerId id = Intern(owner);
  std::optional<Place> ended;
  if (std::vector<Place>& places = owners_[id].places; is_new && id != 0 && !places.empty()) {
    const auto is_here = [&](const Place& p) { return p.node == node; };
    const auto is_alike = [&](const Place& p) { return p.shape->request == request; };
    auto place = std::find_if(places.begin(), places.end(), [&](const Place& p) { return is_here(p) && is_alike(p); });
    if (place == places.end()) place = std::find_if(places.begin(), places.end(), is_alike);
    if (place == places.end()) place = std::find_if(places.begin(), places.end(), is_here);
    if (place == places.end()) place = places.end() - 1;
    ended = std::move(*place);
    places.erase(place);
    if (!shape) shape = ended->shape;
  }
  LedgerNode& at = NodeNamed(node);
  Take(at, id, request, shape, false);
  bindings_[pod_uid] = {&at, id, request, std::move(shape)};
  if (!ended) return;
  GiveBack(nodes_.at(ended->node), id, ended->shape->request, ended->shape, true);
  if (ended->node == node) return;
  ++room_version_;  // There, not here, as was planned.
  PassOn(at, ended->node);
}

void ClusterLedger::PassOn(LedgerNode& from, const std::string& to) {
  const auto freed = nodes_.find(to);  // Gone with its last use if it was no node of the cluster.
  if (freed == nodes_.end() || !freed->second.is_known) return;
  for (const NodeUse& use : from.by_owner) {
    for (Place& place : owners_[use.owner].places) {
      if (place.node != from.state.name) continue;
      Resources others = from.used;
      others -= place.shape->request;
      if (CopiesThatFit(from.state.allocatable, others, place.shape->request, 1) > 0)
        continue;  // It has its room still.
      if (!Accepts(freed->second.state, *place.shape) ||
          CopiesThatFit(freed->second.state.allocatable, TakenOn(freed->second), place.shape->request, 1) == 0) {
        continue;
      }
      const OwnerId owner = use.owner;  // `use` may go with its last place.
      place.node = to;
      Take(freed->second, owner, place.shape->request, place.shape, true);
      GiveBack(from, owner, place.shape->request, place.shape, true);
      return;
    }
  }
}

void ClusterLedger::Release(const std::string& pod_uid) {
  const auto it = bindings_.find(pod_uid);
  if (it == bindings_.end()) return;
  ++room_version_;
  const Binding binding = std::move(it->second);
  bindings_.erase(it);
  GiveBack(*binding.node, binding.owner, binding.request, binding.shape, false);
}

const Resources* ClusterLedger::RequestOf(const std::string& pod_uid) const {
  const auto it = bindings_.find(pod_uid);
  return it == bindings_.end() ? nullptr : &it->second.request;
}

void ClusterLedger::AddPlace(const std::string& owner, const std::string& node, ShapePtr shape) {
  const OwnerId id = Intern(owner);
  Take(NodeNamed(node), id, shape->request, shape, true);
  owners_[id].places.push_back({node, std::move(shape)});
}

const std::vector<Place>& ClusterLedger::PlacesOf(const std::string& owner) const {
  static const std::vector<Place> kNone;
  const OwnerId id = FindOwner(owner);
  return id == 0 ? kNone : owners_[id].places;
}

bool ClusterLedger::HasPlaces(const std::function<bool(const std::string& owner)>& of) const {
  return std::any_of(owners_.begin(), owners_.end(),
                     [&](const Owner& owner) { return !owner.places.empty() && of(owner.name); });
}

void ClusterLedger::DropPlaces(const std::string& owner) {
  const OwnerId id = FindOwner(owner);
  if (id == 0) return;
  const std::vector<Place> places = std::exchange(owners_[id].places, {});
  if (!places.empty()) ++room_version_;
  for (const Place& place : places) GiveBack(nodes_.at(place.node), id, place.shape->request, place.shape, true);
}

int ClusterLedger::KeepPlaces(const std::string& owner, const PodShape& shape, int count) {
  const std::vector<Place>& earlier = owners_[FindOwner(owner)].places;  // Of nobody: none.
  if (!earlier.empty() && earlier.size() == static_cast<std::size_t>(std::max(0, count)) &&
      std::all_of(earlier.begin(), earlier.end(), [&](const Place& place) { return *place.shape == shape; })) {
    return count;
  }
  DropPlaces(owner);
  if (count <= 0 || owner.empty()) return 0;
  const auto shared = std::make_shared<const PodShape>(shape);
  std::vector<std::string> places;
  for (const auto& [name, node] : nodes_) {
    const int wanted = count - static_cast<int>(places.size());
    if (wanted == 0) break;
    if (!node.is_known || !Accepts(node.state, shape)) continue;
    places.insert(places.end(),
                  static_cast<std::size_t>(CopiesThatFit(node.state.allocatable, node.used, shape.request, wanted)),
                  name);
  }
  for (const std::string& place : places) AddPlace(owner, place, shared);
  return static_cast<int>(places.size());
}

Room ClusterLedger::RoomFor(const std::string& owner, const PodShape& shape, int at_most, bool may_use_reserved) const {
  Room room;
  const OwnerId id = FindOwner(owner);
  for (const auto& [name, node] : nodes_) {
    if (!node.is_known || !Accepts(node.state, shape) ||
        CopiesThatFit(node.state.allocatable, {}, shape.request, 1) == 0) {
      continue;
    }
    ++room.nodes;
    if (room.copies >= at_most) continue;
    Resources used = may_use_reserved ? node.used : TakenOn(node);
    if (id != 0) {
      const auto own =
          std::find_if(node.by_owner.begin(), node.by_owner.end(), [id](const NodeUse& h) { return h.owner == id; });
      if (own != node.by_owner.end()) used -= own->unbound;
    }
    room.copies += CopiesThatFit(node.state.allocatable, used, shape.request, at_most - room.copies);
  }
  return room;
}

std::shared_ptr<const FitIndex> ClusterLedger::IndexFor(const PodShape& shape) {
  std::erase_if(indexes_, [](const auto& index) { return index.use_count() == 1; });
  for (const auto& index : indexes_) {
    if (FitAlike(index->shape(), shape)) return index;
  }
  const auto index = std::make_shared<FitIndex>(AloneOf(shape));
  for (const auto& [name, node] : nodes_) {
    index->SetNode(node.id, node.is_known ? &node.state : nullptr, TakenOn(node));
    for (const NodeUse& h : node.by_owner) index->AddHeld(node.id, h.owner, h.held);
  }
  indexes_.push_back(index);
  return index;
}

void ClusterLedger::Reserve(std::map<NodeId, Resources> reserved) {
  const auto set = [this](NodeId id, const Resources& amount) {
    LedgerNode* node = by_id_[id];
    if (!node || node->reserved == amount) return;
    node->reserved = amount;
    const Resources taken = TakenOn(*node);
    for (const auto& index : indexes_) index->SetTaken(id, taken);
  };
  for (const auto& [id, amount] : reserved_) {
    if (!reserved.contains(id)) set(id, {});
  }
  for (const auto& [id, amount] : reserved) set(id, amount);
  reserved_ = std::move(reserved);
}

}  // namespace grus
