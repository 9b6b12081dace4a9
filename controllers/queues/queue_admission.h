// SPDX-License-Identifier: Apache-2.0
// Whether a queue may start a job now, and on whose GPUs; or why not, as numbers.
//
// A job may start if in each pool that it needs GPUs of
//  - nothing is wrong with the queue, and neither it nor a queue above it is held or drains;
//  - no queue on the way to the root gets above its limit;
//  - it is preemptible, or its queue has guaranteed what all such jobs of the queue use. Others could get their
//    guarantee back from a job that borrows only by stopping it;
//  - so many GPUs are idle, beside those that other queues do not lend.
// It borrows what its queue then uses above its guarantee. Where the GPUs are is for placement.
//
// Pure. All amounts are thousandths of a GPU. O(levels) for each pool; more only where it borrows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "controllers/queues/queue_use.h"

namespace grus {

// In one pool.
struct PoolNeed {
  PoolIndex pool = 0;
  std::int64_t milli = 0;  // More than 0.
  friend bool operator==(const PoolNeed&, const PoolNeed&) = default;
};

struct StartRequest {
  QueueIndex queue = kNoQueue;
  std::vector<PoolNeed> needs = {};
  bool is_preemptible = true;
};

enum class AdmissionReason {
  kWithinGuarantee,
  kBorrowing,
  kUnshared,  // No queue has a quota in the pool, so everybody may use what is idle.
  // Refused:
  kLeftOut,           // Its queue, or one above it, has a fault.
  kQuotaFaulty,       // Its quota in this pool has a fault, or that of a queue above it.
  kHeld,              // By spec.stop of the queue, or of one above it.
  kDraining,          // Likewise.
  kHasChildren,       // Jobs belong into the queues below it.
  kLimit,             // Of its queue, or of one above it.
  kMustBeGuaranteed,  // It cannot be preempted, and would use more than its queue is guaranteed.
  kNothingIdle,
  kWithheld,  // GPUs are idle, and guaranteed to queues that do not lend them.
};
std::string_view ToString(AdmissionReason reason);

struct Loan {
  PoolIndex pool = 0;
  QueueIndex lender = kNoQueue;  // See Lender.
  std::int64_t milli = 0;
  friend bool operator==(const Loan&, const Loan&) = default;
};

struct Admission {
  AdmissionReason reason = AdmissionReason::kNothingIdle;
  // Of a refusal, the queue whose fault, stop, limit, guarantee or withheld GPUs it is; the root: the pool itself.
  QueueIndex queue = kNoQueue;
  PoolIndex pool = kNoPool;  // The first one that refuses; kNoPool: the reason is not about a pool.
  std::int64_t needed = 0;   // Of that pool.
  std::int64_t used = 0;     // By that queue: of what counts against `bound`.
  std::int64_t bound = 0;    // Its limit or guarantee; or how much the job could use now.
  std::int64_t coming = 0;   // Where nothing is idle: what yields.
  std::vector<Loan> loans = {};

  bool is_admitted() const { return reason <= AdmissionReason::kUnshared; }
};

Admission Admit(const QueueUse& use, const StartRequest& request);

// The most of one pool that this queue could start now, by the same rules: what Admit() admits, and nothing above.
std::int64_t HeadroomOf(const QueueUse& use, QueueIndex queue, PoolIndex pool, bool is_preemptible = true);

// "queue nlp may use 8 GPUs of pool a100; it uses 6, and 4 more are needed".
std::string Explain(const QueueTree& tree, const Admission& admission);

}  // namespace grus
