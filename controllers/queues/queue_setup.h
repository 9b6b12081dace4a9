// SPDX-License-Identifier: Apache-2.0
// What users declared of queues and pools, and what is reported back to them. Plain values.
//
// All amounts are thousandths of a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/model/string_map.h"
#include "controllers/queues/queue_choice.h"
#include "controllers/queues/queue_fault.h"
#include "controllers/queues/queue_spec.h"
#include "controllers/queues/reclaim.h"

namespace grus {

struct SpeedPoint;  // controllers/policy/allocation.h

// The pool of nodes that no PoolSpec selects.
inline constexpr char kDefaultPool[] = "default";

struct PoolSpec {
  std::string name;
  kube::StringMap node_selector;  // A node is in the pool if it has all these labels.
  std::string resource;           // Its GPUs: "nvidia.com/gpu".
  PoolPlacement placement = PoolPlacement::kBinPack;
  int least_speed_percent = 0;  // With kInterference: what pods on shared GPUs are to keep of their speed alone.
  friend bool operator==(const PoolSpec&, const PoolSpec&) = default;
};

// Empty: no queues and no pools. Everybody is in one queue, and uses what is idle.
struct QueueSetup {
  std::vector<PoolSpec> pools;  // A node is in the first one that selects it: list the oldest first.
  std::vector<QueueSpec> queues;
  std::vector<SelectedNamespace> namespaces = {};  // Those that a queue selects.
  friend bool operator==(const QueueSetup&, const QueueSetup&) = default;
};

// What a queue must know of a job or gang, apart from the GPUs that it has. Whoever does not say is Unattended, is in
// the queue of its namespace, and is not asked to yield.
struct Holder {
  std::string queue_name = {};  // The queue that it names; empty: none.
  JobClass job_class = JobClass::kUnattended;
  int priority = 0;
  bool comes_back = false;         // Its pods are made again when they are deleted, and then wait for room.
  int workers = 0;                 // That may run now; 0: it waits.
  std::int64_t worker_milli = 0;   // Of GPUs, of each worker; 0: what it has, divided by its workers.
  int min_workers = 0;             // It goes on with so many; `workers`: it yields as a whole.
  std::int64_t grows_from = 0;     // Unix seconds: not before, for its cooldown.
  int wanted_workers = 0;          // That it would use if it got them; `workers` or fewer: no more.
  std::int64_t running_since = 0;  // Unix seconds; 0: it waits.
  double attained_gpu_seconds = 0;
  // Of jobs whose speed is known by size. Only these are sized by what a GPU is worth in each.
  std::shared_ptr<const std::vector<SpeedPoint>> curve = {};  // Null or not empty.
  std::string pool = {};          // The only one whose nodes accept its workers; empty: not known.
  std::int64_t queued_since = 0;  // Unix seconds.
  int resizes = 0;
  friend bool operator==(const Holder&, const Holder&) = default;
};

// How long a job may run, all its runs together.
struct RuntimeLimit {
  std::string queue;  // Whose spec.maximumRuntimeSeconds it is.
  std::int64_t seconds = 0;
  friend bool operator==(const RuntimeLimit&, const RuntimeLimit&) = default;
};

// To a job or gang that must give GPUs up. It stands until they are free, or nobody needs them any more.
struct YieldNotice {
  int to = 0;  // Workers that stay. 0: all go, and it waits for room again.
  YieldReason reason = YieldReason::kGuaranteeOfOther;
  std::string for_owner;  // Who gets them; empty: its queue drains.
  std::int64_t by = 0;    // Unix seconds: until then it may save its state. Surplus workers go at once.
  friend bool operator==(const YieldNotice&, const YieldNotice&) = default;
};

// What came of asking others to yield to a job that waits.
struct YieldAnswer {
  ReclaimOutcome outcome = ReclaimOutcome::kFree;
  std::vector<std::string> givers = {};  // Jobs that yield to it, by name.
  std::int64_t by = 0;                   // Unix seconds: then the last of them ends; 0: they give workers up at once.
  friend bool operator==(const YieldAnswer&, const YieldAnswer&) = default;
};

struct QueuePoolReport {
  std::string pool;
  std::int64_t guaranteed = 0, used = 0, borrowed = 0, lent = 0, share = 0, waiting = 0;
};

struct WaitingReport {
  std::string owner;  // Its name in the ledger.
  std::int64_t milli = 0;
  std::string reason;  // One PascalCase word.
};

// With the queues below it; waiting jobs are its own alone.
struct QueueReport {
  std::string queue;
  std::vector<QueuePoolReport> pools = {};  // Those where it has a quota, uses, or wants GPUs.
  int running = 0, waiting = 0;             // Jobs and gangs.
  std::vector<WaitingReport> first_waiting = {};
};

struct PoolReport {
  std::string pool;
  int nodes = 0;
  int taken_by_older = 0;  // Nodes that it selects, too, but that are in an older pool.
  std::int64_t milli = 0, used = 0, free = 0;
};

// Free GPUs of a pool. A job that needs whole nodes has no use for those beside others.
struct PoolRoom {
  std::string pool;
  std::int64_t on_empty_nodes = 0, on_used_nodes = 0;  // A used node has GPUs that somebody holds.
  friend bool operator==(const PoolRoom&, const PoolRoom&) = default;
};

struct QueuesReport {
  std::vector<QueueReport> queues = {};  // By name.
  std::vector<PoolReport> pools = {};    // As in the setup, and last the default pool.
  std::vector<QueueFault> faults = {};
  std::optional<double> look_again_seconds = {};  // Sizes of jobs may be worth a change by then, whatever happens.
};

}  // namespace grus
