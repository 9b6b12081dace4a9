// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gpu_packing.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <functional>
#include <map>
#include <queue>
#include <utility>

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

bool IsAmong(const std::vector<NodeWorkers>& places, std::size_t node) {
  return std::any_of(places.begin(), places.end(), [&](const NodeWorkers& place) { return place.node == node; });
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
    : nodes_(nodes), node_gpus_(CommonestGpus(nodes)), free_(nodes.size()), first_small_(nodes.size(), kNone) {
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
  return kNone;
}

std::size_t GpuPacking::NextEmpty(std::size_t from) const {
  const std::size_t node = FirstBit(empty_, from);
  return node < nodes_.size() ? node : kNone;
}

bool GpuPacking::FindWhole(int count, int workers, std::span<const NodeWorkers> preferred,
                           std::vector<NodeWorkers>& places) const {
  const auto lacks_one = [&] { return static_cast<int>(places.size()) < count; };
  for (const NodeWorkers& place : preferred) {
    if (lacks_one() && NextEmpty(place.node) == place.node) places.push_back({place.node, workers});
  }
  for (std::size_t node = NextEmpty(0); lacks_one() && node != kNone; node = NextEmpty(node + 1)) {
    if (!IsAmong(places, node)) places.push_back({node, workers});
  }
  return !lacks_one();
}

std::size_t GpuPacking::FindPart(int gpus, std::span<const NodeWorkers> preferred,
                                 const std::vector<NodeWorkers>& taken) const {
  const auto has_room = [&](std::size_t node) { return free_[node] >= gpus && !IsAmong(taken, node); };
  for (const NodeWorkers& place : preferred) {
    if (has_room(place.node)) return place.node;
  }
  std::size_t node = FullestWith(gpus, kNone);
  // One that is taken is empty: any other empty one is as good.
  while (node != kNone && !has_room(node)) node = NextEmpty(node + 1);
  return node;
}

std::optional<std::vector<NodeWorkers>> GpuPacking::Find(const WorkerSet& set,
                                                         std::span<const NodeWorkers> preferred) const {
  const int per_node = WorkersPerNode(set.gpus_per_worker);
  if (per_node == 0) return std::nullopt;
  // Workers that leave a part of the node free can share it, unless there are more of them elsewhere.
  const bool fills_nodes = set.workers > per_node || set.workers * set.gpus_per_worker == node_gpus_;
  const int whole = fills_nodes ? set.workers / per_node : 0;
  const int left = set.workers - whole * per_node;
  std::vector<NodeWorkers> places;
  if (!FindWhole(whole, per_node, preferred, places)) return std::nullopt;
  if (left > 0) {
    const std::size_t node = FindPart(left * set.gpus_per_worker, preferred, places);
    if (node == kNone) return std::nullopt;
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
    AddSmall(job, places[0], places[0].workers * gpus_per_worker);
  }
}

void GpuPacking::AddSmall(std::size_t job, const NodeWorkers& place, int gpus) {
  if (job >= small_jobs_.size()) small_jobs_.resize(job + 1);
  small_jobs_[job] = {first_small_[place.node], place.workers, gpus};
  first_small_[place.node] = job;
}

void GpuPacking::RemoveSmall(std::size_t job, std::size_t node) {
  std::size_t* link = &first_small_[node];
  while (*link != job) link = &small_jobs_[*link].next;
  *link = small_jobs_[job].next;
}

std::vector<std::size_t> GpuPacking::SmallestFirst(std::size_t node) const {
  std::vector<std::size_t> jobs;
  for (std::size_t job = first_small_[node]; job != kNone; job = small_jobs_[job].next) jobs.push_back(job);
  std::sort(jobs.begin(), jobs.end(), [this](std::size_t a, std::size_t b) {
    return std::pair(small_jobs_[a].gpus, a) < std::pair(small_jobs_[b].gpus, b);
  });
  return jobs;
}

void GpuPacking::Apply(const Move& move) {
  RemoveSmall(move.job, move.from.node);
  AddSmall(move.job, move.to, move.gpus);
  SetFree(move.from.node, free_[move.from.node] + move.gpus);
  SetFree(move.to.node, free_[move.to.node] - move.gpus);
}

void GpuPacking::Undo(std::vector<Move>& moves, std::size_t kept) {
  for (; moves.size() > kept; moves.pop_back()) {
    const Move& last = moves.back();
    Apply({last.job, last.to, last.from, last.gpus});
  }
}

// Moves the smallest jobs away from `node` until `wanted` GPUs are free there.
bool GpuPacking::Clear(std::size_t node, int wanted, std::vector<Move>& moves) {
  const std::size_t before = moves.size();
  for (const std::size_t job : SmallestFirst(node)) {
    if (free_[node] >= wanted) break;
    const SmallJob small = small_jobs_[job];
    const std::size_t to = FullestWith(small.gpus, node);
    if (to == kNone || NextEmpty(to) == to) break;  // An empty node is no gain.
    moves.push_back({job, {node, small.workers}, {to, small.workers}, small.gpus});
    Apply(moves.back());
  }
  if (free_[node] >= wanted) return true;
  Undo(moves, before);
  return false;
}

bool GpuPacking::ClearOne(int wanted, std::vector<Move>& moves) {
  using Candidate = std::pair<int, std::size_t>;  // GPUs that have to go; the node.
  std::vector<Candidate> candidates;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (free_[node] >= wanted) continue;
    int movable = 0;
    for (std::size_t job = first_small_[node]; job != kNone; job = small_jobs_[job].next)
      movable += small_jobs_[job].gpus;
    if (free_[node] + movable >= wanted) candidates.emplace_back(wanted - free_[node], node);
  }
  // A heap, because the first will usually do.
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> cheapest({}, std::move(candidates));
  for (; !cheapest.empty(); cheapest.pop()) {
    if (Clear(cheapest.top().second, wanted, moves)) return true;
  }
  return false;
}

std::optional<std::vector<GpuPacking::Move>> GpuPacking::MakeRoom(const WorkerSet& set) {
  std::vector<Move> moves;
  if (set.workers * set.gpus_per_worker > free_gpus_) return std::nullopt;
  const int per_node = WorkersPerNode(set.gpus_per_worker);
  for (std::size_t cleared = 0; !Find(set, {}); ++cleared) {
    int empty = 0;
    for (std::size_t node = NextEmpty(0); node != kNone; node = NextEmpty(node + 1)) ++empty;
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
