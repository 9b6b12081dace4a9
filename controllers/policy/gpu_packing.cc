// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gpu_packing.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <map>

namespace grus {
namespace {

constexpr std::size_t kBits = 64;

void SetBit(std::vector<std::uint64_t>& bits, std::size_t i, bool value) {
  const std::uint64_t bit = std::uint64_t{1} << (i % kBits);
  if (value) bits[i / kBits] |= bit;
  else bits[i / kBits] &= ~bit;
}

// At or behind `from`; bits.size() * kBits if there is none.
std::size_t FirstBit(const std::vector<std::uint64_t>& bits, std::size_t from) {
  for (std::size_t word = from / kBits; word < bits.size(); ++word) {
    std::uint64_t value = bits[word];
    if (word == from / kBits) value &= ~std::uint64_t{0} << (from % kBits);
    if (value != 0) return word * kBits + static_cast<std::size_t>(std::countr_zero(value));
  }
  return bits.size() * kBits;
}

int CommonestGpus(std::span<const PoolNode> nodes) {
  std::map<int, int> counts;
  for (const PoolNode& node : nodes) ++counts[node.gpus];
  int commonest = 0, most = 0;
  for (const auto& [gpus, count] : counts) {
    if (gpus > 0 && count >= most) {
      commonest = gpus;
      most = count;
    }
  }
  return commonest;
}

}  // namespace

GpuPacking::GpuPacking(std::span<const PoolNode> nodes)
    : nodes_(nodes), node_gpus_(CommonestGpus(nodes)), free_(nodes.size()), small_jobs_(nodes.size()) {
  int largest = 0;
  for (const PoolNode& node : nodes) largest = std::max(largest, node.gpus);
  const std::vector<std::uint64_t> none((nodes.size() + kBits - 1) / kBits);
  with_free_.assign(static_cast<std::size_t>(largest) + 1, none);
  empty_ = none;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    SetBit(with_free_[0], node, true);
    SetFree(node, std::max(nodes[node].gpus, 0));
  }
}

void GpuPacking::SetFree(std::size_t node, int gpus) {
  SetBit(with_free_[static_cast<std::size_t>(free_[node])], node, false);
  SetBit(with_free_[static_cast<std::size_t>(gpus)], node, true);
  SetBit(empty_, node, gpus == nodes_[node].gpus && gpus >= node_gpus_);
  free_gpus_ += gpus - free_[node];
  free_[node] = gpus;
}

std::size_t GpuPacking::FullestWith(int gpus, std::size_t but) const {
  for (auto free = static_cast<std::size_t>(gpus); free < with_free_.size(); ++free) {
    std::size_t node = FirstBit(with_free_[free], 0);
    if (node == but) node = FirstBit(with_free_[free], node + 1);
    if (node < nodes_.size()) return node;
  }
  return kNoNode;
}

std::size_t GpuPacking::NextEmpty(std::size_t from) const {
  const std::size_t node = FirstBit(empty_, from);
  return node < nodes_.size() ? node : kNoNode;
}

std::optional<std::vector<NodeWorkers>> GpuPacking::Find(const WorkerSet& set,
                                                         std::span<const NodeWorkers> preferred) const {
  const int per_node = WorkersPerNode(set.gpus_per_worker);
  if (per_node == 0) return std::nullopt;
  std::vector<NodeWorkers> places;
  int left = set.workers;
  if (left > per_node || (left == per_node && left * set.gpus_per_worker == node_gpus_)) {
    const auto take = [&](std::size_t node) {
      places.push_back({node, per_node});
      left -= per_node;
    };
    for (const NodeWorkers& place : preferred) {
      if (left >= per_node && NextEmpty(place.node) == place.node) take(place.node);
    }
    const auto is_taken = [&](std::size_t node) {
      return std::any_of(places.begin(), places.end(), [&](const NodeWorkers& place) { return place.node == node; });
    };
    for (std::size_t node = NextEmpty(0); left >= per_node; node = NextEmpty(node + 1)) {
      if (node == kNoNode) return std::nullopt;
      if (!is_taken(node)) take(node);
    }
  }
  if (left > 0) {
    const int gpus = left * set.gpus_per_worker;
    std::size_t node = kNoNode;
    const auto is_free = [&](std::size_t candidate) {
      return free_[candidate] >= gpus && std::none_of(places.begin(), places.end(), [&](const NodeWorkers& place) {
               return place.node == candidate;
             });
    };
    for (const NodeWorkers& place : preferred) {
      if (node == kNoNode && is_free(place.node)) node = place.node;
    }
    if (node == kNoNode) node = FullestWith(gpus, kNoNode);
    // The fullest may be an empty one that is taken for whole workers: any other empty one is as good.
    for (; node != kNoNode && !is_free(node); node = NextEmpty(node + 1)) {
    }
    if (node == kNoNode) return std::nullopt;
    places.push_back({node, left});
  }
  std::sort(places.begin(), places.end(), [](const NodeWorkers& a, const NodeWorkers& b) { return a.node < b.node; });
  return places;
}

bool GpuPacking::HasRoom(std::span<const NodeWorkers> places, int gpus_per_worker) const {
  return std::all_of(places.begin(), places.end(),
                     [&](const NodeWorkers& place) { return free_[place.node] >= place.workers * gpus_per_worker; });
}

bool GpuPacking::IsSmall(std::span<const NodeWorkers> places, int gpus_per_worker) const {
  return places.size() == 1 && places[0].workers * gpus_per_worker < node_gpus_;
}

void GpuPacking::Take(std::size_t job, std::span<const NodeWorkers> places, int gpus_per_worker) {
  assert(HasRoom(places, gpus_per_worker));
  for (const NodeWorkers& place : places) SetFree(place.node, free_[place.node] - place.workers * gpus_per_worker);
  if (IsSmall(places, gpus_per_worker)) {
    small_jobs_[places[0].node].push_back({job, places[0].workers, places[0].workers * gpus_per_worker});
  }
}

void GpuPacking::Release(std::size_t job, std::span<const NodeWorkers> places, int gpus_per_worker) {
  for (const NodeWorkers& place : places) SetFree(place.node, free_[place.node] + place.workers * gpus_per_worker);
  if (IsSmall(places, gpus_per_worker)) {
    std::erase_if(small_jobs_[places[0].node], [&](const SmallJob& small) { return small.job == job; });
  }
}

void GpuPacking::Apply(const Move& move) {
  std::erase_if(small_jobs_[move.from.node], [&](const SmallJob& small) { return small.job == move.job; });
  small_jobs_[move.to.node].push_back({move.job, move.to.workers, move.gpus});
  SetFree(move.from.node, free_[move.from.node] + move.gpus);
  SetFree(move.to.node, free_[move.to.node] - move.gpus);
}

void GpuPacking::Undo(std::vector<Move>& moves, std::size_t but) {
  for (; moves.size() > but; moves.pop_back()) {
    const Move& last = moves.back();
    Apply({last.job, last.to, last.from, last.gpus});
  }
}

// Moves the smallest jobs away from `node` until `wanted` GPUs are free there.
bool GpuPacking::Clear(std::size_t node, int wanted, std::vector<Move>& moves) {
  const std::size_t before = moves.size();
  std::vector<SmallJob> leaving = small_jobs_[node];
  std::sort(leaving.begin(), leaving.end(),
            [](const SmallJob& a, const SmallJob& b) { return a.gpus != b.gpus ? a.gpus < b.gpus : a.job < b.job; });
  for (const SmallJob& small : leaving) {
    if (free_[node] >= wanted) break;
    const std::size_t to = FullestWith(small.gpus, node);
    if (to == kNoNode || NextEmpty(to) == to) break;  // An empty node is no gain.
    moves.push_back({small.job, {node, small.workers}, {to, small.workers}, small.gpus});
    Apply(moves.back());
  }
  if (free_[node] >= wanted) return true;
  Undo(moves, before);
  return false;
}

bool GpuPacking::ClearOne(int wanted, std::vector<Move>& moves) {
  std::vector<std::pair<int, std::size_t>> candidates;  // GPUs that have to go; the node.
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (free_[node] >= wanted) continue;
    int movable = 0;
    for (const SmallJob& small : small_jobs_[node]) movable += small.gpus;
    if (free_[node] + movable >= wanted) candidates.emplace_back(wanted - free_[node], node);
  }
  std::sort(candidates.begin(), candidates.end());
  return std::any_of(candidates.begin(), candidates.end(),
                     [&](const auto& candidate) { return Clear(candidate.second, wanted, moves); });
}

std::optional<std::vector<GpuPacking::Move>> GpuPacking::MakeRoom(const WorkerSet& set) {
  std::vector<Move> moves;
  if (set.workers * set.gpus_per_worker > free_gpus_) return std::nullopt;
  const int per_node = WorkersPerNode(set.gpus_per_worker);
  for (std::size_t cleared = 0; !Find(set, {}); ++cleared) {
    int empty = 0;
    for (std::size_t node = NextEmpty(0); node != kNoNode; node = NextEmpty(node + 1)) ++empty;
    const bool lacks_whole_node = empty < set.workers / per_node;
    const int wanted = lacks_whole_node ? node_gpus_ : set.workers % per_node * set.gpus_per_worker;
    if (wanted == 0 || cleared == nodes_.size() || !ClearOne(wanted, moves)) {
      Undo(moves, 0);
      return std::nullopt;
    }
  }
  return moves;
}

}  // namespace grus
