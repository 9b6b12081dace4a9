// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/pod_placer.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "controllers/cluster/owners.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/lone_part.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

constexpr std::size_t kNodesOfIndex = 4;  // To build one costs about as much for so many nodes as to score one.

}  // namespace

// One pod, while the account's lock is held.
class PodPlacer::Question {
 public:
  Question(ClusterAccount& account, const kube::Pod& pod)
      : ledger_(account.ledger_),
        uid_(pod.metadata.uid),
        owner_name_(OwnerOf(pod)),
        owner_(ledger_.FindOwner(owner_name_)),
        shape_(account.NeedOfLocked(pod)),
        asks_for_parts_(AsksForGpuParts(shape_->request)),
        is_stranger_(owner_ == 0 && ledger_.RequestOf(uid_) == nullptr),
        known_index_(ledger_.FindIndex(*shape_)) {}

  const PodShape& shape() const { return *shape_; }
  // Made at the first call for such a pod, by a look at all nodes.
  const FitIndex& index() const {
    if (!index_) index_ = ledger_.IndexFor(*shape_);
    known_index_ = index_.get();
    return *index_;
  }
  bool asks_for_parts() const { return asks_for_parts_; }
  const LedgerNode* Find(std::string_view name) const {
    const LedgerNode* const node = ledger_.FindNode(name);
    return node != nullptr && node->is_known ? node : nullptr;
  }

  // By others, on this node.
  Resources TakenOn(const LedgerNode& node) const {
    Resources taken = node.used;
    if (const NodeUse* const own = owner_ != 0 ? node.FindUse(owner_) : nullptr) taken -= own->unbound;
    if (const Resources* const held = ledger_.HeldOn(uid_, node)) taken -= *held;
    return taken;
  }
  std::string WhyNot(const LedgerNode& node) const {
    // What is reserved is taken to the index, so it knows where there is room and not where there is none.
    if (known_index_ != nullptr && known_index_->CopiesOn(node.id) > 0) return {};
    return is_stranger_ ? WhyNot(node, node.used) : WhyNot(node, TakenOn(node));
  }
  std::string WhyNot(const LedgerNode& node, const Resources& taken) const {
    const Resources& offered = node.state.allocatable;
    if (CopiesOnGpus(offered, taken, shape_->request, 1) > 0) return {};
    return LackOnGpus(offered, taken, shape_->request);
  }

  // Its gang or job keeps a place for such a pod there; null: it does not.
  const Place* PlaceOn(const LedgerNode& node) const {
    if (owner_ == 0) return nullptr;
    const std::vector<Place>& places = ledger_.PlacesOf(owner_name_);
    const auto place = std::ranges::find_if(places, [&](const Place& one) {
      return one.node == node.state.name && AreAlikeWithoutGpu(one.shape->request, shape_->request);
    });
    return place == places.end() ? nullptr : &*place;
  }
  // What was planned for the pod or its gang there, if it still has room; else a GPU by the node's placement.
  std::string GpusOn(const LedgerNode& node, std::string_view planned) const {
    const Resources taken = TakenOn(node);
    if (!planned.empty()) return node.GpuFor(*shape_, taken, planned);
    if (const Place* const place = PlaceOn(node)) return node.GpuFor(*shape_, taken, place->gpu);
    std::optional<LonePlace> best;
    if (Packs(node.PlacementOf(*shape_))) {
      best = LeastFragmentingOn(ledger_, *shape_, node, taken);
    }
    // That looks at thousandths alone; what else the pod asks for may not fit there.
    return node.GpuFor(*shape_, taken, best ? best->gpus : std::string());
  }
  RoomToShare RoomToShareOn(const LedgerNode& node) const {
    RoomToShare room;
    room.is_meant = node.PlacementOf(*shape_) == PoolPlacement::kInterference && asks_for_parts_ &&
                    WholeGpusOf(shape_->request) == 0 && PlaceOn(node) == nullptr;
    if (room.is_meant) room.gpus = GpusWithRoom(node.state.allocatable, TakenOn(node), shape_->request);
    return room;
  }
  // Anybody may name a gang.
  bool has_places() const { return owner_ != 0 && !ledger_.PlacesOf(owner_name_).empty(); }
  // A node of which others must not keep it: its own place, or its own room.
  bool IsAtHomeOn(const LedgerNode& node) const {
    return !is_stranger_ && (PlaceOn(node) != nullptr || ledger_.HeldOn(uid_, node) != nullptr);
  }
  bool HasRoomOfItsOwn() const {
    if (owner_ == 0) return false;
    return std::ranges::any_of(ledger_.PlacesOf(owner_name_), [&](const Place& place) {
      const LedgerNode* const node = ledger_.FindNode(place.node);
      return node != nullptr && node->CanHold(*shape_, TakenOn(*node));
    });
  }

 private:
  ClusterLedger& ledger_;
  const std::string uid_, owner_name_;
  const OwnerId owner_;
  const ShapePtr shape_;
  mutable std::shared_ptr<const FitIndex> index_;
  const bool asks_for_parts_;
  const bool is_stranger_;  // Nothing is held for it anywhere.
  mutable const FitIndex* known_index_;
};

std::vector<std::string> PodPlacer::WhyNot(const kube::Pod& pod, std::span<const std::string_view> nodes) const {
  std::vector<std::string> answers(nodes.size());
  const std::lock_guard lock(account_.mutex_);
  const Question question(account_, pod);
  if (!question.asks_for_parts()) return answers;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (const LedgerNode* const node = question.Find(nodes[i])) answers[i] = question.WhyNot(*node);
  }
  return answers;
}

bool PodPlacer::HasRoom(const kube::Pod& pod) const {
  const std::lock_guard lock(account_.mutex_);
  const Question question(account_, pod);
  return question.index().copies() > 0 || question.HasRoomOfItsOwn();
}

std::string PodPlacer::WhyNotWithout(const kube::Pod& pod, std::string_view node,
                                     std::span<const std::string> gone) const {
  const std::lock_guard lock(account_.mutex_);
  const Question question(account_, pod);
  const LedgerNode* const found = question.Find(node);
  if (found == nullptr || !question.asks_for_parts()) return {};
  Resources taken = question.TakenOn(*found);
  for (const std::string& uid : gone) {
    if (uid == std::string(pod.metadata.uid)) continue;
    if (const Resources* const held = account_.ledger_.HeldOn(uid, *found)) taken -= *held;
  }
  return question.WhyNot(*found, taken);
}

std::vector<NodeRank> PodPlacer::Rank(const kube::Pod& pod, std::span<const std::string_view> nodes) const {
  std::vector<NodeRank> ranks(nodes.size());
  const std::lock_guard lock(account_.mutex_);
  const Question question(account_, pod);
  const PodShape& shape = question.shape();
  const std::string device(shape.request.Accelerator());
  if (device.empty()) return ranks;
  const auto rank_by_sum = [&](NodeRank& rank, const LedgerNode& node) {
    const std::int64_t offered = node.state.allocatable.Extended(device);
    const auto free = static_cast<double>(RestOf(offered, node.used.Extended(device)));
    rank.is_known = true;
    rank.rank = rank.placement == PoolPlacement::kSpread ? free : -free;
  };
  std::vector<NodeId> packed;  // And the places of these in `nodes`.
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const LedgerNode* const node = question.Find(nodes[i]);
    if (node == nullptr || node->state.allocatable.Extended(device) <= 0) continue;
    ranks[i].placement = node->PlacementOf(shape);
    if (question.IsAtHomeOn(*node)) {
      ranks[i].is_known = true;
      ranks[i].rank = std::numeric_limits<double>::infinity();
    } else if (question.asks_for_parts() && Packs(ranks[i].placement)) {
      packed.push_back(node->id);
      at.push_back(i);
    } else {
      rank_by_sum(ranks[i], *node);
    }
  }
  // An index pays where a good part of all nodes is looked at, and the next such pod finds it.
  if (packed.size() * kNodesOfIndex > account_.ledger_.node_limit()) (void)question.index();
  const auto scores = FragmentationScores(account_.ledger_, shape, packed);
  const bool are_scored = std::ranges::any_of(scores, [](const auto& score) { return score.has_value(); });
  for (std::size_t i = 0; i < packed.size(); ++i) {
    NodeRank& rank = ranks[at[i]];
    if (!are_scored) {
      rank_by_sum(rank, *account_.ledger_.NodeAt(packed[i]));
    } else {
      rank.is_known = scores[i].has_value();
      rank.rank = scores[i].value_or(0);
    }
  }
  return ranks;
}

std::vector<RoomToShare> PodPlacer::RoomsToShare(const kube::Pod& pod, std::span<const std::string_view> nodes,
                                                 bool only_with_least_speed) const {
  std::vector<RoomToShare> rooms(nodes.size());
  const std::lock_guard lock(account_.mutex_);
  const std::vector<PoolSpec>& pools = account_.queues_.setup().pools;
  const auto is_meant = [&](const PoolSpec& pool) {
    return pool.placement == PoolPlacement::kInterference && (pool.least_speed_percent > 0 || !only_with_least_speed);
  };
  if (std::ranges::none_of(pools, is_meant)) return rooms;
  const Question question(account_, pod);
  if (!question.asks_for_parts()) return rooms;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const LedgerNode* const node = question.Find(nodes[i]);
    if (node == nullptr) continue;
    const auto pool = std::ranges::find(pools, node->state.pool, &PoolSpec::name);
    if (pool == pools.end() || !is_meant(*pool)) continue;
    rooms[i] = question.RoomToShareOn(*node);
    rooms[i].least_speed = pool->least_speed_percent / 100.0;
  }
  return rooms;
}

kube::Result<std::string> PodPlacer::Take(const kube::Pod& pod, const std::string& node, std::string_view chosen) {
  std::string gpus, why;
  account_.Apply([&](auto& effects) {
    const Question question(account_, pod);
    const LedgerNode* const found = question.Find(node);
    if (found != nullptr && question.asks_for_parts()) {
      why = question.WhyNot(*found);
      if (!why.empty()) return;
      gpus = question.GpusOn(*found, chosen.empty() ? pod.metadata.Annotation(api::kPlannedGpuAnnotation) : chosen);
      if (!chosen.empty() && gpus != chosen) {
        why = "the part on the GPU that was chosen";
        return;
      }
    }
    if (question.has_places()) return;
    Resources request = question.shape().request;
    if (!gpus.empty()) request = OnGpu(std::move(request), gpus);
    account_.BindLocked(pod, node, request);
    effects.has_used = true;
  });
  if (!why.empty()) return kube::Error(kube::ErrorCode::kConflict, "node " + node + " has no room for " + why);
  return gpus;
}

void PodPlacer::GiveBack(const kube::Pod& pod, const std::string& node) {
  account_.Apply([&](auto& effects) {
    const std::string uid(pod.metadata.uid);
    const LedgerNode* const found = account_.ledger_.FindNode(node);
    if (found == nullptr || account_.ledger_.HeldOn(uid, *found) == nullptr) return;
    account_.ledger_.Release(uid);
    // The cache may know better by now, or the scheduler keeps room for it.
    const auto now = account_.pods_.Get<kube::Pod>(pod.metadata.Key());
    if (now && now->metadata.uid == pod.metadata.uid) account_.CountLocked(*now);
    effects.has_used = effects.has_freed = true;
  });
}

bool PodPlacer::IsTaken(const kube::Pod& pod) const {
  const std::lock_guard lock(account_.mutex_);
  return pod.spec.node_name.empty() && account_.ledger_.RequestOf(std::string(pod.metadata.uid)) != nullptr;
}

void PodPlacer::NoteBound(const kube::Pod& live) {
  account_.Apply([&](auto& effects) {
    // What the cache still has is released by an event that is yet to come; anything else would never be.
    const auto now = account_.pods_.Get<kube::Pod>(live.metadata.Key());
    const bool is_seen = !now || now->metadata.uid != live.metadata.uid || !now->spec.node_name.empty();
    if (is_seen || HasEnded(live) || !OwnerOf(live).empty()) return;
    account_.CountLocked(live);
    effects.has_used = true;
  });
}

HoldingsLook PodPlacer::LookAt(std::span<const std::shared_ptr<const kube::Node>> nodes,
                               std::span<const std::shared_ptr<const kube::Pod>> pods) const {
  HoldingsLook look{std::vector<Resources>(nodes.size()), std::vector<Resources>(nodes.size()),
                    std::vector<Resources>(pods.size()), std::vector<std::string>(pods.size())};
  const std::lock_guard lock(account_.mutex_);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const LedgerNode* const node = account_.ledger_.FindNode(nodes[i]->metadata.name);
    if (node == nullptr) continue;
    look.offered[i] = node->state.allocatable;
    look.taken[i] = node->used;
  }
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const std::string uid(pods[i]->metadata.uid);
    const Resources* const held = account_.ledger_.RequestOf(uid);
    if (held == nullptr || !NamesGpu(*held)) continue;
    look.held[i] = *held;
    look.held_on[i] = pods[i]->spec.node_name;
    if (!look.held_on[i].empty()) continue;
    // The cache does not know the node of a pod that is being bound.
    for (const auto& node : nodes) {
      const LedgerNode* const found = account_.ledger_.FindNode(node->metadata.name);
      if (found != nullptr && account_.ledger_.HeldOn(uid, *found) != nullptr) look.held_on[i] = node->metadata.name;
    }
  }
  return look;
}

}  // namespace grus
