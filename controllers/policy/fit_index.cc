// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/fit_index.h"

#include <algorithm>
#include <utility>

#include "controllers/policy/claimed_gpus.h"
#include "controllers/policy/gpu_parts.h"

namespace grus {
namespace {

// So many copies of a shape that asks for nothing fit on a node.
constexpr std::int64_t kMostCopies = 100'000;

}  // namespace

FitIndex::FitIndex(PodShape shape)
    : shape_(std::move(shape)), device_(shape_.request.Accelerator()), asks_for_gpu_parts_(IsOnGpus(shape_.request)) {
  const auto add = [this](std::string_view name, std::int64_t each) {
    if (each > 0) amounts_.push_back({std::string(name), each, 0, 0});
  };
  for (const auto& [name, each] : shape_.request.extended) {  // First: the scarce ones.
    if (!IsOfSingleGpus(name)) add(name, each);
  }
  for (const char* name : {"cpu", "memory", "pods"}) add(name, shape_.request.Amount(name));
}

std::int64_t FitIndex::DevicesIn(const Resources& from) const {
  return from.Extended(device_.empty() ? from.Accelerator() : std::string_view(device_));
}

int FitIndex::Count(NodeId id, const Resources& taken, std::vector<std::int64_t>* free) const {
  const std::size_t width = amounts_.size();
  std::int64_t copies = kMostCopies;
  for (std::size_t i = 0; i < width; ++i) {
    const std::int64_t rest = RestOf(offers_[id * width + i], taken.Amount(amounts_[i].name));
    if (free) (*free)[i] = rest;
    if (rest < amounts_[i].each) copies = 0;
    else if (copies > 1) copies = std::min(copies, rest / amounts_[i].each);
  }
  const int most = static_cast<int>(copies);
  return asks_for_gpu_parts_ ? CopiesOnGpus(*gpus_[id], taken, shape_.request, most) : most;
}

int FitIndex::CopiesOn(NodeId id, const Resources& taken) const {
  return IsEligible(id) ? Count(id, taken, nullptr) : 0;
}

std::int64_t FitIndex::FreeOn(NodeId id, std::size_t amount, const Resources& taken) const {
  return RestOf(offers_[id * amounts_.size() + amount], taken.Amount(amounts_[amount].name));
}

void FitIndex::Place(NodeId id, const FitRank& rank) {
  Slot& slot = slots_[id];
  if (slot.rank == rank) return;
  if (slot.rank.copies > 0) {
    std::vector<NodeId>& bucket = buckets_.find(slot.rank)->second;
    bucket[slot.at] = bucket.back();
    slots_[bucket[slot.at]].at = slot.at;
    bucket.pop_back();
  }
  copies_ += rank.copies - slot.rank.copies;
  slot.rank = rank;
  if (rank.copies == 0) return;
  std::vector<NodeId>& bucket = buckets_[rank];
  slot.at = static_cast<std::uint32_t>(bucket.size());
  bucket.push_back(id);
}

std::optional<double> FitIndex::ScoreOf(NodeId id, std::uint64_t version,
                                        const std::function<std::optional<double>()>& compute) const {
  if (std::exchange(scores_version_, version) != version) scores_.clear();
  if (scores_.size() < slots_.size()) scores_.resize(slots_.size());
  Score& known = scores_[id];
  if (!known.is_known) known = {true, compute()};
  return known.score;
}

void FitIndex::ForgetScore(NodeId id) {
  if (id < scores_.size()) scores_[id] = {};
}

void FitIndex::SetTaken(NodeId id, const Resources& taken) {
  if (!IsEligible(id)) return;
  ForgetScore(id);
  Slot& slot = slots_[id];
  const std::size_t width = amounts_.size();
  scratch_.resize(width);
  const int copies = Count(id, taken, &scratch_);
  for (std::size_t i = 0; i < width; ++i) {
    amounts_[i].free += scratch_[i] - free_[id * width + i];
    free_[id * width + i] = scratch_[i];
  }
  const std::int64_t devices = slot.devices > 0 ? DevicesIn(taken) : 0;
  slot.is_whole = slot.devices > 0 && devices <= 0;
  Place(id, {!device_.empty() || slot.devices == 0 ? 1 : 0, copies, -RestOf(slot.devices, devices)});
}

void FitIndex::SetNode(NodeId id, const NodeState* state, const Resources& taken) {
  const std::size_t width = amounts_.size();
  if (id >= slots_.size()) {
    slots_.resize(id + 1);
    offers_.resize((id + 1) * width);
    free_.resize((id + 1) * width);
    if (asks_for_gpu_parts_) gpus_.resize(id + 1);
  }
  if (Slot& slot = slots_[id]; slot.capacity > 0) {
    Place(id, {});
    capacity_ -= slot.capacity;
    --eligible_nodes_;
    for (std::size_t i = 0; i < width; ++i) {
      amounts_[i].total -= offers_[id * width + i];
      amounts_[i].free -= free_[id * width + i];
    }
  }
  slots_[id] = {};
  ForgetScore(id);
  if (!state || !Accepts(*state, shape_)) return;
  for (std::size_t i = 0; i < width; ++i) {
    offers_[id * width + i] = std::max<std::int64_t>(0, state->allocatable.Amount(amounts_[i].name));
    free_[id * width + i] = 0;
  }
  if (asks_for_gpu_parts_) gpus_[id] = &state->allocatable;
  Slot& slot = slots_[id];
  slot.capacity = Count(id, {}, nullptr);
  if (slot.capacity == 0) return;
  slot.devices = DevicesIn(state->allocatable);
  capacity_ += slot.capacity;
  largest_capacity_ = std::max(largest_capacity_, slot.capacity);
  ++eligible_nodes_;
  for (std::size_t i = 0; i < width; ++i) amounts_[i].total += offers_[id * width + i];
  SetTaken(id, taken);
}

void FitIndex::ChangeHeld(NodeId id, OwnerId owner, int sign, const Resources& held) {
  const std::int64_t devices = held.Extended(device_);
  if (devices == 0 || !IsEligible(id)) return;
  if (owner >= held_.size()) held_.resize(owner + 1);
  held_[owner] += sign * devices;
}

std::vector<FitIndex::OwnerDevices> FitIndex::LargestUses(std::size_t count) const {
  std::vector<OwnerDevices> largest;
  if (count == 0) return largest;
  for (OwnerId owner = 0; owner < held_.size(); ++owner) {
    const std::int64_t devices = held_[owner];
    if (devices <= 0 || (largest.size() == count && largest.back().devices >= devices)) continue;
    if (largest.size() == count) largest.pop_back();
    const auto has_less = [devices](const OwnerDevices& other) { return other.devices < devices; };
    largest.insert(std::ranges::find_if(largest, has_less), {owner, devices});
  }
  return largest;
}

}  // namespace grus
