// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/queue_admission.h"

#include <algorithm>
#include <optional>

#include "controllers/queues/wording.h"

namespace grus {
namespace {

// The highest queue on the way to the root for which `holds` is true.
template <typename Predicate>
QueueIndex Highest(const QueueTree& tree, QueueIndex queue, const Predicate& holds) {
  QueueIndex highest = queue;
  for (; queue != kRootQueue; queue = tree.ParentOf(queue)) {
    if (holds(queue)) highest = queue;
  }
  return highest;
}

// Why the queue starts nothing at all in any pool.
std::optional<Admission> WhyStopped(const QueueTree& tree, QueueIndex queue) {
  const Queue& at = tree.At(queue);
  const auto refuse = [&](AdmissionReason reason, const auto& holds) {
    return Admission{.reason = reason, .queue = Highest(tree, queue, holds)};
  };
  if (at.is_left_out) {
    return refuse(AdmissionReason::kLeftOut, [&](QueueIndex above) { return tree.At(above).is_left_out; });
  }
  if (at.stop != QueueStop::kNone) {
    const bool drains = at.stop == QueueStop::kDrain;
    return refuse(drains ? AdmissionReason::kDraining : AdmissionReason::kHeld,
                  [&](QueueIndex above) { return tree.At(above).stop == at.stop; });
  }
  if (!at.children.empty()) return Admission{.reason = AdmissionReason::kHasChildren, .queue = queue};
  return std::nullopt;
}

// The queue right below `queue` that has most withheld, and so on down to the one whose quota says so.
QueueIndex WithholderBelow(const QueueUse& use, QueueIndex queue, PoolIndex pool) {
  const QueueTree& tree = use.tree();
  for (;;) {
    QueueIndex most = kNoQueue;
    std::int64_t sum = 0;
    for (const QueueIndex child : tree.At(queue).children) {
      sum += use.withheld(child, pool);
      if (most == kNoQueue || use.withheld(child, pool) > use.withheld(most, pool)) most = child;
    }
    if (sum < use.withheld(queue, pool) || sum == 0) return queue;
    queue = most;
  }
}

// Of the queues that the request does not pass on its way to the root.
QueueIndex WithholderFrom(const QueueUse& use, QueueIndex queue, PoolIndex pool) {
  const QueueTree& tree = use.tree();
  QueueIndex most = kRootQueue;
  for (; queue != kRootQueue; queue = tree.ParentOf(queue)) {
    for (const QueueIndex sibling : tree.At(tree.ParentOf(queue)).children) {
      if (sibling == queue || use.withheld(sibling, pool) == 0) continue;
      if (most == kRootQueue || use.withheld(sibling, pool) > use.withheld(most, pool)) most = sibling;
    }
  }
  return most == kRootQueue ? most : WithholderBelow(use, most, pool);
}

// The bound that a need meets first; nullopt: none. Bounds of use come before what is idle now, because these waits end
// only when somebody changes a queue or this queue's own jobs end.
std::optional<Admission> WhyRefused(const QueueUse& use, QueueIndex queue, const PoolNeed& need, bool is_preemptible) {
  const QueueTree& tree = use.tree();
  Admission refusal{.queue = queue, .pool = need.pool, .needed = need.milli};
  const auto refuse = [&](AdmissionReason reason, std::int64_t used, std::int64_t bound) {
    refusal.reason = reason;
    refusal.used = used;
    refusal.bound = bound;
    return refusal;
  };
  if (tree.QuotaOf(queue, need.pool).is_closed) {
    refusal.queue = Highest(tree, queue, [&](QueueIndex above) { return tree.QuotaOf(above, need.pool).is_closed; });
    return refuse(AdmissionReason::kQuotaFaulty, 0, 0);
  }
  const std::int64_t fixed = use.Of(queue, need.pool).fixed, guaranteed = tree.QuotaOf(queue, need.pool).guaranteed;
  if (!is_preemptible && tree.IsShared(need.pool) && need.milli > guaranteed - fixed) {
    return refuse(AdmissionReason::kMustBeGuaranteed, fixed, guaranteed);
  }
  for (QueueIndex above = queue; above != kRootQueue; above = tree.ParentOf(above)) {
    const std::int64_t used = use.used(above, need.pool), limit = tree.QuotaOf(above, need.pool).limit;
    if (need.milli <= limit - used) continue;
    refusal.queue = above;
    return refuse(AdmissionReason::kLimit, used, limit);
  }
  if (const std::int64_t idle = use.Idle(need.pool); need.milli > idle) {
    refusal.queue = kRootQueue;
    refusal.coming = use.Of(kRootQueue, need.pool).yielding;
    return refuse(AdmissionReason::kNothingIdle, use.used(kRootQueue, need.pool), std::max<std::int64_t>(0, idle));
  }
  if (const std::int64_t available = use.Available(queue, need.pool); need.milli > available) {
    refusal.queue = WithholderFrom(use, queue, need.pool);
    return refuse(AdmissionReason::kWithheld, use.used(refusal.queue, need.pool), std::max<std::int64_t>(0, available));
  }
  return std::nullopt;
}

void AddLoans(const QueueUse& use, QueueIndex queue, const PoolNeed& need, std::vector<Loan>& loans) {
  const QueueTree& tree = use.tree();
  const std::int64_t left = tree.QuotaOf(queue, need.pool).guaranteed - use.used(queue, need.pool);
  std::int64_t borrowed = need.milli - std::clamp<std::int64_t>(left, 0, need.milli);
  for (; queue != kRootQueue && borrowed > 0; queue = tree.ParentOf(queue)) {
    for (const Lender& lender : LendersBelow(use, tree.ParentOf(queue), need.pool)) {
      const std::int64_t milli = std::min(borrowed, lender.idle - lender.lent);
      if (milli <= 0 || lender.queue == queue) continue;
      loans.push_back({need.pool, lender.queue, milli});
      borrowed -= milli;
    }
  }
}

std::string Now(const Admission& admission) {
  return GpuCount(admission.bound) + (admission.bound == kOneGpu ? " is" : " are");
}

}  // namespace

std::string_view ToString(AdmissionReason reason) {
  switch (reason) {
    case AdmissionReason::kWithinGuarantee: return "WithinGuarantee";
    case AdmissionReason::kBorrowing: return "Borrowing";
    case AdmissionReason::kUnshared: return "Unshared";
    case AdmissionReason::kLeftOut: return "QueueFaulty";
    case AdmissionReason::kQuotaFaulty: return "QuotaFaulty";
    case AdmissionReason::kHeld: return "QueueHeld";
    case AdmissionReason::kDraining: return "QueueDraining";
    case AdmissionReason::kHasChildren: return "QueueHasChildren";
    case AdmissionReason::kLimit: return "AtLimit";
    case AdmissionReason::kMustBeGuaranteed: return "MustBeGuaranteed";
    case AdmissionReason::kNothingIdle: return "NothingIdle";
    case AdmissionReason::kWithheld: return "NotLent";
  }
  return "";
}

Admission Admit(const QueueUse& use, const StartRequest& request) {
  const QueueTree& tree = use.tree();
  if (auto refusal = WhyStopped(tree, request.queue)) return *std::move(refusal);
  Admission admission{.reason = AdmissionReason::kUnshared, .queue = request.queue};
  for (const PoolNeed& need : request.needs) {
    if (auto refusal = WhyRefused(use, request.queue, need, request.is_preemptible)) return *std::move(refusal);
    if (!tree.IsShared(need.pool)) continue;
    if (admission.reason == AdmissionReason::kUnshared) admission.reason = AdmissionReason::kWithinGuarantee;
    if (use.used(request.queue, need.pool) + need.milli > tree.QuotaOf(request.queue, need.pool).guaranteed) {
      admission.reason = AdmissionReason::kBorrowing;
      AddLoans(use, request.queue, need, admission.loans);
    }
  }
  return admission;
}

std::int64_t HeadroomOf(const QueueUse& use, QueueIndex queue, PoolIndex pool, bool is_preemptible) {
  const QueueTree& tree = use.tree();
  if (WhyStopped(tree, queue) || tree.QuotaOf(queue, pool).is_closed) return 0;
  std::int64_t room = std::min(use.Idle(pool), use.Available(queue, pool));
  if (!is_preemptible && tree.IsShared(pool)) {
    room = std::min(room, tree.QuotaOf(queue, pool).guaranteed - use.Of(queue, pool).fixed);
  }
  for (QueueIndex above = queue; above != kRootQueue; above = tree.ParentOf(above)) {
    room = std::min(room, tree.QuotaOf(above, pool).limit - use.used(above, pool));
  }
  return std::max<std::int64_t>(0, room);
}

std::string Explain(const QueueTree& tree, const Admission& admission) {
  const std::string queue = admission.queue == kNoQueue ? "" : "queue " + tree.NameOf(admission.queue);
  const std::string pool = admission.pool == kNoPool ? "" : "pool " + tree.PoolAt(admission.pool).name;
  const std::string needed = GpuCount(admission.needed);
  const std::string are_needed = admission.needed == kOneGpu ? " is needed" : " are needed";
  const bool can_never = admission.needed > admission.bound;
  switch (admission.reason) {
    case AdmissionReason::kWithinGuarantee: return "within the guarantee of " + queue;
    case AdmissionReason::kUnshared: return "no queue has a quota there";
    case AdmissionReason::kBorrowing: {
      std::string text;
      for (const Loan& loan : admission.loans) {
        text += (text.empty() ? "borrows " : ", ") + GpuCount(loan.milli) + " of pool " + tree.PoolAt(loan.pool).name +
                (loan.lender == kRootQueue ? " that are guaranteed to no queue"
                                           : " from queue " + tree.NameOf(loan.lender));
      }
      return text.empty() ? "borrows" : text;
    }
    case AdmissionReason::kLeftOut: return queue + " is faulty: see its status";
    case AdmissionReason::kQuotaFaulty: return "the quota of " + queue + " in " + pool + " is faulty: see its status";
    case AdmissionReason::kHeld: return queue + " is held: set its spec.stop to None to start jobs";
    case AdmissionReason::kDraining: return queue + " drains: set its spec.stop to None to start jobs";
    case AdmissionReason::kHasChildren: return queue + " has queues below it: name one of these in queueName";
    case AdmissionReason::kLimit:
      return queue + " may use " + GpuCount(admission.bound) + " of " + pool +
             (can_never ? " at most, and " + needed + are_needed + ": ask for fewer, or raise its limit"
                        : "; it uses " + GpuNumber(admission.used) + ", and " + GpuNumber(admission.needed) + " more" +
                              are_needed);
    case AdmissionReason::kMustBeGuaranteed:
      return "it cannot be preempted, and starts only within the guarantee of " + queue + ": " +
             GpuCount(admission.bound) + " of " + pool + ", of which such jobs use " + GpuNumber(admission.used) +
             "; " + needed + are_needed;
    case AdmissionReason::kNothingIdle:
      if (const std::int64_t size = tree.PoolAt(admission.pool).milli; admission.needed > size) {
        return needed + " of " + pool + are_needed + ", and the pool has " + GpuNumber(size) +
               " in all: ask for fewer, or add nodes";
      }
      return needed + " of " + pool + are_needed + "; " + Now(admission) + " idle" +
             (admission.coming > 0 ? ", and jobs are giving up " + GpuNumber(admission.coming) : "");
    case AdmissionReason::kWithheld:
      return needed + " of " + pool + are_needed + "; " + Now(admission) + " idle that " + "others lend, and " + queue +
             " does not lend all that it is guaranteed";
  }
  return "";
}

}  // namespace grus
