// SPDX-License-Identifier: Apache-2.0
// Which GPUs of a pool's nodes are taken, by how many workers of which jobs. Finds places for one job at a time: on one
// node if its workers fit there, on the fullest such; else on whole nodes, and what is left over on one more.
//
// Not thread-safe. Jobs are numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "controllers/policy/allocation.h"

namespace grus {

// Workers of one size, to be placed together.
struct WorkerSet {
  int workers = 0;
  int gpus_per_worker = 1;
};

class GpuPacking {
 public:
  explicit GpuPacking(std::span<const PoolNode> nodes);

  int free_gpus() const { return free_gpus_; }
  int WorkersPerNode(int gpus_per_worker) const { return node_gpus_ / gpus_per_worker; }

  // Nodes of `preferred` first, where that is as good. None: there is no room.
  std::optional<std::vector<NodeWorkers>> Find(const WorkerSet& set, std::span<const NodeWorkers> preferred) const;

  bool HasRoom(std::span<const NodeWorkers> places, int gpus_per_worker) const;

  // REQUIRES: HasRoom().
  void Take(std::size_t job, std::span<const NodeWorkers> places, int gpus_per_worker);

  // A job that holds part of one node, and its place on another one.
  struct Move {
    std::size_t job = 0;
    NodeWorkers from, to;
    int gpus = 0;
  };

  // Moves jobs that hold a part of one node closer together until `set` has room, and says which. Few GPUs move: of the
  // nodes that can be cleared, those with the least on them. None, and nothing has changed: it cannot be done. O(nodes)
  // for each node of the set.
  std::optional<std::vector<Move>> MakeRoom(const WorkerSet& set);

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  // A job that holds part of one node only. Those of a node are a list, because a vector for each node costs more than
  // all else.
  struct SmallJob {
    std::size_t next = kNone;  // On its node.
    int workers = 0;
    int gpus = 0;
  };

  // `count` nodes of which nothing is taken, each with this many workers. False: there are fewer.
  bool FindWhole(int count, int workers, std::span<const NodeWorkers> preferred,
                 std::vector<NodeWorkers>& places) const;
  // The fullest node with room that is not among `taken`; kNone if there is none.
  std::size_t FindPart(int gpus, std::span<const NodeWorkers> preferred, const std::vector<NodeWorkers>& taken) const;
  bool IsSmall(std::span<const NodeWorkers> places, int gpus_per_worker) const;
  std::size_t FullestWith(int gpus, std::size_t but) const;  // Enough free GPUs; kNone if none has.
  std::size_t NextEmpty(std::size_t from) const;  // At or behind `from`, with node_gpus_ free and nothing taken.
  void SetFree(std::size_t node, int gpus);
  bool Clear(std::size_t node, int wanted, std::vector<Move>& moves);
  bool ClearOne(int wanted, std::vector<Move>& moves);
  void AddSmall(std::size_t job, const NodeWorkers& place, int gpus);
  void RemoveSmall(std::size_t job, std::size_t node);
  std::vector<std::size_t> SmallestFirst(std::size_t node) const;
  void Apply(const Move& move);
  void Undo(std::vector<Move>& moves, std::size_t kept);  // The last ones, until `kept` are left.

  std::span<const PoolNode> nodes_;
  int node_gpus_ = 0;  // Of most nodes; of equally many the larger number. What is a whole node for jobs.
  int free_gpus_ = 0;
  std::vector<int> free_;                              // By node.
  std::vector<std::vector<std::uint64_t>> with_free_;  // Bit N of entry G: node N has exactly G free GPUs.
  std::vector<std::uint64_t> empty_;                   // Bit N: node N is whole, and nothing on it is taken.
  std::vector<std::size_t> first_small_;               // By node; kNone: no small job.
  std::vector<SmallJob> small_jobs_;                   // By job.
};

}  // namespace grus
