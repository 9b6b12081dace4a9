// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/cluster_ledger.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "controllers/policy/gpu_parts.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

// Each change of the ledger updates all indexes. In a cluster of 5,000 nodes each takes about a megabyte.
constexpr std::ptrdiff_t kMostUnheldIndexes = 12;

// A number that was given back, else the next one.
std::uint32_t TakeNumber(std::vector<std::uint32_t>& free, std::size_t next) {
  if (free.empty()) return static_cast<std::uint32_t>(next);
  const std::uint32_t number = free.back();
  free.pop_back();
  return number;
}

bool IsFor(const FitIndex& index, const PodShape& shape) {
  return index.shape().pool == shape.pool && FitAlike(index.shape(), shape);
}

// `taken` is the node's Taken().
void SetNode(FitIndex& index, const LedgerNode& node, const Resources& taken) {
  // Held devices count only while the shape may use the node, which may change here.
  for (const NodeUse& use : node.by_owner) index.ChangeHeld(node.id, use.owner, -1, use.held);
  index.SetNode(node.id, node.is_known ? &node.state : nullptr, taken);
  for (const NodeUse& use : node.by_owner) index.ChangeHeld(node.id, use.owner, 1, use.held);
}

}  // namespace

std::string Place::ToldGpu() const { return AsksForGpuParts(shape->request) ? gpu : std::string(); }

Resources Place::Request() const { return OnGpu(shape->request, gpu); }

ClusterLedger::ClusterLedger() : owners_(1) {}

LedgerNode& ClusterLedger::NodeNamed(const std::string& name) {
  const auto [it, is_new] = nodes_.try_emplace(name);
  LedgerNode& node = it->second;
  if (!is_new) return node;
  node.state.name = name;
  by_name_[it->first] = &node;
  node.id = TakeNumber(free_ids_, by_id_.size());
  if (node.id == by_id_.size()) by_id_.emplace_back();
  by_id_[node.id] = &node;
  return node;
}

const LedgerNode* ClusterLedger::FindNode(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

void ClusterLedger::Forget(LedgerNode& node) {
  for (const auto& index : indexes_) index->SetNode(node.id, nullptr, {});
  reserved_.erase(node.id);
  by_id_[node.id] = nullptr;
  free_ids_.push_back(node.id);
  by_name_.erase(node.state.name);
  nodes_.erase(nodes_.find(node.state.name));
}

void ClusterLedger::PutNode(NodeState state) {
  ++version_, ++nodes_version_, ++room_version_;
  LedgerNode& node = NodeNamed(state.name);
  if (observer_ != nullptr) state.pool = observer_->PoolOf(state);
  const PoolPlacement in_pool = observer_ == nullptr ? PoolPlacement::kBinPack : observer_->PlacementIn(state.pool);
  state.placement = PlacementNamed(state.labels.Get(api::kPartPlacementKey)).value_or(in_pool);
  node.state = std::move(state);
  node.is_known = true;
  if (observer_ != nullptr) observer_->OnNode(node);
  const Resources taken = node.Taken();
  for (const auto& index : indexes_) SetNode(*index, node, taken);
}

void ClusterLedger::RemoveNode(const std::string& name) {
  const auto it = nodes_.find(name);
  if (it == nodes_.end()) return;
  ++version_, ++nodes_version_;
  LedgerNode& node = it->second;
  // Its pods stay bound to it until they are deleted; the entry keeps their sum.
  node.is_known = false;
  node.state = NodeState{};
  node.state.name = name;
  if (observer_ != nullptr) observer_->OnNode(node);
  const Resources taken = node.Taken();
  for (const auto& index : indexes_) SetNode(*index, node, taken);
  if (node.uses == 0) Forget(node);
}

OwnerId ClusterLedger::Intern(const std::string& owner) {
  if (owner.empty()) return 0;
  const auto [it, is_new] = owner_ids_.try_emplace(owner);
  if (!is_new) return it->second;
  it->second = TakeNumber(free_owners_, owners_.size());
  if (it->second == owners_.size()) owners_.emplace_back();
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
  const Resources both = is_reserved ? node.Taken() : Resources{};
  for (const auto& index : indexes_) {
    index->SetTaken(node.id, is_reserved ? both : node.used);
    index->ChangeHeld(node.id, owner, is_taken ? 1 : -1, request);
  }
}

void ClusterLedger::Take(LedgerNode& node, OwnerId owner, const Resources& request, const ShapePtr& shape,
                         bool is_place) {
  node.used += request;
  ++node.uses;
  ++owners_[owner].holdings;
  auto use = std::ranges::find(node.by_owner, owner, &NodeUse::owner);
  if (use == node.by_owner.end()) use = node.by_owner.insert(use, {owner, 0, {}, {}});
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
  part_mix_.Count(request, shape.get(), 1);
  if (observer_ != nullptr) observer_->OnHeld(node, owners_[owner].name, request, 1);
  Reindex(node, owner, request, true);
}

void ClusterLedger::GiveBack(LedgerNode& node, OwnerId owner, const Resources& request, const ShapePtr& shape,
                             bool is_place) {
  node.used -= request;
  const auto use = std::ranges::find(node.by_owner, owner, &NodeUse::owner);
  use->held -= request;
  if (is_place) use->unbound -= request;
  if (--use->pods == 0) node.by_owner.erase(use);
  if (shape) {
    node.pods.erase(std::ranges::find(node.pods, shape));
    if (const auto guard = guards_.find(shape.get()); guard != guards_.end()) {
      const auto at = guard->second.nodes.find(node.id);
      if (--at->second == 0) guard->second.nodes.erase(at);
      if (guard->second.nodes.empty()) guards_.erase(guard);
    }
  }
  part_mix_.Count(request, shape.get(), -1);
  if (observer_ != nullptr) observer_->OnHeld(node, owners_[owner].name, request, -1);
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
  const auto known = bindings_.find(pod_uid);
  const bool is_new = known == bindings_.end(), is_ending = !is_new && known->second.is_ending;
  // Until its GPU is told, it is taken for the one that it had so far.
  const bool keeps_gpu = !is_new && known->second.node->state.name == node && !NamesGpu(request) &&
                         AreAlikeWithoutGpu(known->second.request, request);
  Resources held = keeps_gpu ? known->second.request : request;
  Release(pod_uid);
  const OwnerId id = Intern(owner);
  std::optional<Place> ended;
  if (std::vector<Place>& places = owners_[id].places; is_new && id != 0 && !places.empty()) {
    const auto is_here = [&](const Place& p) { return p.node == node; };
    const auto is_alike = [&](const Place& p) { return AreAlikeWithoutGpu(request, p.shape->request); };
    const auto has_its_gpu = [&](const Place& p) { return p.gpu.empty() || IsOnGpu(request, p.gpu); };
    auto place =
        std::ranges::find_if(places, [&](const Place& p) { return is_here(p) && is_alike(p) && has_its_gpu(p); });
    if (place == places.end()) {
      place = std::ranges::find_if(places, [&](const Place& p) { return is_here(p) && is_alike(p); });
    }
    if (place == places.end()) place = std::ranges::find_if(places, is_alike);
    if (place == places.end()) place = std::ranges::find_if(places, is_here);
    if (place == places.end()) place = places.end() - 1;
    ended = std::move(*place);
    places.erase(place);
    if (!shape) shape = ended->shape;
  }
  LedgerNode& at = NodeNamed(node);
  if (ended && ended->node == node && request == ended->shape->request) held = ended->Request();  // Likewise.
  Take(at, id, held, shape, false);
  bindings_[pod_uid] = {&at, id, held, std::move(shape)};
  if (is_ending) NoteEnding(pod_uid);
  if (!ended) return;
  GiveBack(nodes_.at(ended->node), id, ended->Request(), ended->shape, true);
  if (ended->node == node) return;
  ++room_version_;  // There: the pod was not bound where it had its place.
  PassOn(at, ended->node);
}

void ClusterLedger::PassOn(LedgerNode& from, const std::string& to) {
  const auto freed = nodes_.find(to);  // Gone with its last use if it was no node of the cluster.
  if (freed == nodes_.end()) return;
  for (const NodeUse& use : from.by_owner) {
    for (Place& place : owners_[use.owner].places) {
      if (place.node != from.state.name) continue;
      Resources others = from.used;
      others -= place.Request();
      const bool has_room = CopiesThatFit(from.state.allocatable, others, place.shape->request, 1) > 0;
      if (has_room || !freed->second.CanHold(*place.shape, freed->second.Taken())) continue;
      const OwnerId owner = use.owner;  // `use` may go with its last place.
      const Resources had = place.Request();
      place.node = to;
      place.gpu = freed->second.GpuFor(*place.shape, freed->second.Taken());
      Take(freed->second, owner, place.Request(), place.shape, true);
      GiveBack(from, owner, had, place.shape, true);
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
  if (binding.is_ending && observer_ != nullptr) {
    observer_->OnEnding(*binding.node, owners_[binding.owner].name, binding.request, -1);
  }
  GiveBack(*binding.node, binding.owner, binding.request, binding.shape, false);
}

void ClusterLedger::NoteEnding(const std::string& pod_uid) {
  const auto it = bindings_.find(pod_uid);
  if (it == bindings_.end() || std::exchange(it->second.is_ending, true) || observer_ == nullptr) return;
  observer_->OnEnding(*it->second.node, owners_[it->second.owner].name, it->second.request, 1);
}

void ClusterLedger::ForEachEnding(
    const std::function<void(const LedgerNode&, const std::string& owner, const Resources&)>& tell) const {
  for (const auto& [uid, binding] : bindings_) {
    if (binding.is_ending) tell(*binding.node, owners_[binding.owner].name, binding.request);
  }
}

const Resources* ClusterLedger::HeldOn(const std::string& pod_uid, const LedgerNode& node) const {
  const auto it = bindings_.find(pod_uid);
  return it == bindings_.end() || it->second.node != &node ? nullptr : &it->second.request;
}

const Resources* ClusterLedger::RequestOf(const std::string& pod_uid) const {
  const auto it = bindings_.find(pod_uid);
  return it == bindings_.end() ? nullptr : &it->second.request;
}

void ClusterLedger::AddPlace(const std::string& owner, const std::string& node, ShapePtr shape, std::string gpu) {
  const OwnerId id = Intern(owner);
  LedgerNode& at = NodeNamed(node);
  gpu = at.GpuFor(*shape, at.used, gpu);
  const Place place{node, std::move(shape), std::move(gpu)};
  Take(at, id, place.Request(), place.shape, true);
  owners_[id].places.push_back(place);
}

const std::vector<Place>& ClusterLedger::PlacesOf(const std::string& owner) const {
  static const std::vector<Place> kNone;
  const OwnerId id = FindOwner(owner);
  return id == 0 ? kNone : owners_[id].places;
}

bool ClusterLedger::HasExactly(const std::string& owner, const PodShape& shape, int count) const {
  const std::vector<Place>& places = PlacesOf(owner);
  return static_cast<int>(places.size()) == std::max(0, count) &&
         std::ranges::all_of(places, [&](const Place& place) { return *place.shape == shape; });
}

void ClusterLedger::DropPlaces(const std::string& owner) {
  const OwnerId id = FindOwner(owner);
  if (id == 0) return;
  const std::vector<Place> places = std::exchange(owners_[id].places, {});
  if (!places.empty()) ++room_version_;
  for (const Place& place : places) GiveBack(nodes_.at(place.node), id, place.Request(), place.shape, true);
}

int ClusterLedger::KeepPlaces(const std::string& owner, const PodShape& shape, int count) {
  if (HasExactly(owner, shape, count)) return std::max(0, count);
  DropPlaces(owner);
  if (count <= 0 || owner.empty()) return 0;
  struct Candidate {
    std::string_view node;
    int own = 0;   // Pods of the owner.
    int room = 0;  // `count` at most.
  };
  std::vector<Candidate> candidates;
  const OwnerId id = FindOwner(owner);
  for (const auto& [name, node] : nodes_) {
    if (!node.is_known || !Accepts(node.state, shape)) continue;
    const int room = CopiesThatFit(node.state.allocatable, node.used, shape.request, count);
    const NodeUse* own = id == 0 ? nullptr : node.FindUse(id);
    if (room > 0) candidates.push_back({name, own ? own->pods : 0, room});
  }
  const auto shared = std::make_shared<const PodShape>(shape);
  int left = count;
  while (left > 0 && !candidates.empty()) {
    // All that fits beside its own pods, else the least room that is enough, else the most.
    const auto key = [left](const Candidate& c) {
      return std::tuple(-c.own, c.room < left, c.room < left ? -c.room : c.room);
    };
    const auto best = std::ranges::min_element(candidates, {}, key);
    const int here = std::min(best->room, left);
    const std::string node(best->node);
    for (int i = 0; i < here; ++i) AddPlace(owner, node, shared);
    left -= here;
    candidates.erase(best);
  }
  return count - left;
}

Room ClusterLedger::RoomFor(const std::string& owner, const PodShape& shape, int at_most,
                            const ReservedRoom* may_use) const {
  Room room;
  const OwnerId id = FindOwner(owner);
  for (const auto& [name, node] : nodes_) {
    if (!node.CanHold(shape, {})) continue;
    ++room.nodes;
    if (room.copies >= at_most) continue;
    Resources used = node.used;
    if (node.reserved.pods > 0) used += node.ReservedBut(may_use);
    if (const NodeUse* own = node.FindUse(id)) used -= own->unbound;
    room.copies += CopiesThatFit(node.state.allocatable, used, shape.request, at_most - room.copies);
  }
  return room;
}

const FitIndex* ClusterLedger::FindIndex(const PodShape& shape) const {
  const auto found = std::ranges::find_if(indexes_, [&](const auto& index) { return IsFor(*index, shape); });
  return found == indexes_.end() ? nullptr : found->get();
}

std::shared_ptr<const FitIndex> ClusterLedger::IndexFor(const PodShape& shape) {
  const auto found = std::ranges::find_if(indexes_, [&](const auto& index) { return IsFor(*index, shape); });
  if (found != indexes_.end()) {
    std::rotate(found, found + 1, indexes_.end());
    return indexes_.back();
  }
  // Jobs that start one after another are often alike, and an index of many nodes takes long to build.
  auto unheld = std::ranges::count_if(indexes_, [](const auto& index) { return index.use_count() == 1; });
  std::erase_if(indexes_, [&](const auto& index) { return index.use_count() == 1 && unheld-- > kMostUnheldIndexes; });
  const auto index = std::make_shared<FitIndex>(AloneOf(shape));
  Resources copy;
  for (const auto& [name, node] : nodes_) SetNode(*index, node, node.TakenBy(copy));
  indexes_.push_back(index);
  return index;
}

void ClusterLedger::Reserve(ReservedRoom reserved) {
  const auto set = [this](NodeId id, const Resources& amount) {
    LedgerNode* node = by_id_[id];
    if (!node || node->reserved == amount) return;
    node->reserved = amount;
    const Resources taken = node->Taken();
    for (const auto& index : indexes_) index->SetTaken(id, taken);
  };
  for (const auto& [id, amount] : reserved_) {
    if (!reserved.contains(id)) set(id, {});
  }
  for (const auto& [id, amount] : reserved) set(id, amount);
  reserved_ = std::move(reserved);
}

}  // namespace grus
