// SPDX-License-Identifier: Apache-2.0
// Finds the jobs that yield to one request after the other, as reclaim.h says.
//
// Jobs are numbers: indices into the span that it is made with. The result does not depend on their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "controllers/queues/reclaim.h"
#include "controllers/queues/reclaim_rights.h"

namespace grus {

class ReclaimSearch {
 public:
  struct Pick {
    std::size_t job = 0;
    int workers = 0;  // That yield.
    int level = 0;    // See ReclaimRights; 0: a job of the queue of the request.
    bool is_whole = false;
    bool is_for_guarantee = false;
  };

  // All must outlive it.
  ReclaimSearch(const QueueUse& use, PoolIndex pool, std::span<const std::int64_t> shares,
                std::span<const ReclaimJob> jobs);

  // If it succeeds, the request has its GPUs from then on, and `picks` the jobs that yield for it.
  ReclaimAnswer Find(const ReclaimRequest& request, std::vector<Pick>& picks);

 private:
  // What is asked of queues, one pass after the other.
  struct Pass {
    bool is_whole = false;          // Whole jobs; else surplus.
    bool is_for_guarantee = false;  // Queues yield down to their guarantees, not only to their shares.
    bool may_straddle = false;      // What yields may be partly what the queue is to keep.
  };
  struct Candidate {
    std::size_t job = 0;
    std::int64_t milli = 0;  // That it can yield.
  };
  struct Counts {
    int for_guarantee = 0, for_share = 0;
  };
  // The jobs of a queue that may yield.
  struct OfQueue {
    std::vector<std::size_t> elastic;      // With surplus at first.
    std::vector<std::size_t> preemptible;  // By TierOf().
    int with_surplus = 0;                  // Now.
    bool is_asked = false;                 // A job of it yields for the request.
  };

  void Begin(const ReclaimRequest& request);
  void TakeFromOthers();
  void TakeFromOwn();
  void TakeAt(int level, const Pass& pass);
  void TakeSurplusAt(int level, const Pass& pass);
  void TakeWholeAt(int level, const Pass& pass);
  // The one that is enough; without such a one, from the largest on, until one is. `target`: what is still to be taken.
  template <typename Target>
  void TakeFrom(std::span<Candidate> candidates, const Pass& pass, int level, const Target& target);
  std::size_t BestWith(std::int64_t milli, std::span<const Candidate> candidates, const Pass& pass, int level) const;
  std::pair<int, int> TierOf(std::size_t job) const;  // Lower classes, then lower priorities are less.
  std::int64_t AboveIn(QueueIndex queue, int level, const Pass& pass) const;
  bool MayYield(std::size_t job, const Pass& pass, int level) const;
  int WorkersToTake(std::size_t job, const Pass& pass, int level) const;
  bool YieldsBefore(std::size_t a, std::size_t b) const;

  void Take(std::size_t job, int workers, const Pass& pass, int level);
  void Move(Pick& pick, int workers);
  Counts& CountsOf(const Pick& pick) { return counts_[static_cast<std::size_t>(pick.level)]; }
  bool IsEntitled(int level, const Pass& pass) const;
  bool IsEntitledAnywhere() const;
  bool ArePicksEntitled() const;
  bool TryGiveBack(Pick& pick, int workers);
  void GiveBackNeedless();
  void GiveBackAll();
  void ForgetPicks();
  OfQueue& OfQueueAt(QueueIndex queue) { return of_queue_[static_cast<std::size_t>(queue)]; }

  const QueueTree& tree_;
  const PoolIndex pool_;
  const std::span<const ReclaimJob> jobs_;
  QueueUse use_;  // Once all that yields is gone, and with what requests were given.
  ReclaimRights rights_;
  std::vector<int> workers_;  // By job: those that do not yield.
  std::vector<OfQueue> of_queue_;

  // Of the request:
  const ReclaimRequest* request_ = nullptr;
  std::vector<std::vector<QueueIndex>> victims_;  // By level: queues with jobs that may be asked.
  std::vector<Pick> picks_;
  std::vector<int> pick_of_;    // By job: index in picks_; -1: none.
  std::vector<Counts> counts_;  // Of picks, by level.
};

}  // namespace grus
