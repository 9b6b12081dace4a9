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

// One pod, while the account's lock is held.
class PodPlacer::Question {
 public:
  Question(ClusterAccount& account, const kube::Pod& pod)
      : ledger_(account.ledger_),
        uid_(pod.metadata.uid),
        owner_name_(OwnerOf(pod)),
        owner_(ledger_.FindOwner(owner_name_)),
        shape_(account.NeedOfLocked(pod)),
        asks_for_parts_(AsksForGpuParts(shape_->request)) {}

  const PodShape& shape() const { return *shape_; }
  // Made at the first call for such a pod, by a look at all nodes.
  const FitIndex& index() const {
    if (!index_) index_ = ledger_.IndexFor(*shape_);
    return *index_;
  }
  bool asks_for_parts() const { return asks_for_parts_; }
  const LedgerNode* Find(std::string_view name) const {
    const LedgerNode* const node = ledger_.FindNode(std::string(name));
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
    const bool is_stranger = owner_ == 0 && ledger_.HeldOn(uid_, node) == nullptr;
    return is_stranger ? WhyNot(node, node.used) : WhyNot(node, TakenOn(node));
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
    if (node.PlacementOf(*shape_) == PoolPlacement::kBinPack) {
      best = LeastFragmentingOn(ledger_, index(), node, taken);
    }
    // That looks at thousandths alone; what else the pod asks for may not fit there.
    return node.GpuFor(*shape_, taken, best ? best->gpus : std::string());
  }
  bool has_owner() const { return !owner_name_.empty(); }
  // A node of which others must not keep it: its own place, or its own room.
  bool IsAtHomeOn(const LedgerNode& node) const {
    return PlaceOn(node) != nullptr || ledger_.HeldOn(uid_, node) != nullptr;
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
  std::vector<NodeId> packed;  // And the places of these in `nodes`.
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const LedgerNode* const node = question.Find(nodes[i]);
    if (node == nullptr || node->state.allocatable.Extended(device) <= 0) continue;
    const auto free =
        static_cast<double>(RestOf(node->state.allocatable.Extended(device), node->used.Extended(device)));
    const PoolPlacement placement = node->PlacementOf(shape);
    ranks[i] = {placement, placement == PoolPlacement::kSpread ? free : -free, true};
    if (question.IsAtHomeOn(*node)) {
      ranks[i].rank = std::numeric_limits<double>::infinity();
      continue;
    }
    if (placement != PoolPlacement::kBinPack) continue;
    packed.push_back(node->id);
    at.push_back(i);
  }
  if (!question.asks_for_parts() || packed.empty()) return ranks;
  const auto scores = FragmentationScores(account_.ledger_, question.index(), packed);
  if (std::ranges::none_of(scores, [](const auto& score) { return score.has_value(); })) return ranks;
  for (std::size_t i = 0; i < packed.size(); ++i) {
    NodeRank& rank = ranks[at[i]];
    rank.is_known = scores[i].has_value();
    rank.rank = scores[i].value_or(0);
  }
  return ranks;
}

kube::Result<std::string> PodPlacer::Take(const kube::Pod& pod, const std::string& node) {
  std::string gpus, why;
  account_.Apply([&](auto& effects) {
    const Question question(account_, pod);
    const LedgerNode* const found = question.Find(node);
    if (found != nullptr && question.asks_for_parts()) {
      why = question.WhyNot(*found);
      if (!why.empty()) return;
      gpus = question.GpusOn(*found, pod.metadata.Annotation(api::kPlannedGpuAnnotation));
    }
    if (question.has_owner()) return;
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

}  // namespace grus
