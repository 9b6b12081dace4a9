// SPDX-License-Identifier: Apache-2.0
// What each queue is entitled to in one pool, from what all queues want of it: its fair share.
//
//  1. Guarantee: each queue has its guarantee, or all that it wants if that is less. Of a guarantee that is idle, what
//     the queue does not lend stays idle, too.
//  2. Weight: from the top of the tree, what is left of the parent's part is divided among its children by weighted
//     max-min fairness, up to what each wants and to the limits of all queues. The weight counts for what a queue gets
//     above its guarantee, as in KAI and in Kueue's fair sharing.
// So no GPU is idle that a queue within its limits could use and that another one lends; and of two children of one
// parent that both want more, neither can get it but from one that has more above its guarantee for its weight.
//
// Shares are for the order of service and for reclaiming. Nothing is refused because of them: who wants idle GPUs may
// borrow them.
//
// Pure. All amounts are thousandths of a GPU. O(queues log queues).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "controllers/queues/queue_tree.h"

namespace grus {

// Of the queue's own jobs, in one pool.
struct QueueDemand {
  std::int64_t used = 0;
  std::int64_t wanted = 0;  // What they use, and more that they could use: jobs that wait, and elastic ones that grow.
};

// By queue; the share of a queue with others below it includes theirs. Integers: the shares of the queues without
// parent add up to all that is wanted, or to the pool without what is withheld.
//
// A queue in which nothing new may start (held, left out, closed in this pool, or with queues below it) wants what it
// uses; one that drains wants nothing. What jobs use that are in a queue with others below it counts like one more such
// queue of weight 1.
// REQUIRES: `demands` has one for each queue of the tree.
std::vector<std::int64_t> FairShares(const QueueTree& tree, PoolIndex pool, std::span<const QueueDemand> demands);

}  // namespace grus
