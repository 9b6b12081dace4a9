// SPDX-License-Identifier: Apache-2.0
// GpuQueue (gq): whose jobs get how many GPUs. Queues form trees; each has quotas in pools: what is guaranteed to it,
// the most that it may use, and its weight where idle GPUs are shared.
//
// A job is in the queue that it names; without a name, in the queue that selects its namespace; else in kDefaultQueue,
// which need not exist as an object.
//
// Counts are whole GPUs. What a queue holds in parts of GPUs is added up in each pool and rounded up. The counts of a
// queue include those of the queues below it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/condition.h"
#include "clientlib/model/kind.h"
#include "clientlib/model/label_selector.h"
#include "crds/types/node_pool.h"

namespace api {

inline constexpr char kDefaultQueue[] = "default";
inline constexpr std::int64_t kMaxQueueName = kMaxPoolName;
inline constexpr std::int64_t kMostQueueGpus = 1'000'000;  // Sums over a thousand queues stay below 2^31.
inline constexpr std::int64_t kLargestWeight = 1'000'000;
inline constexpr std::int64_t kLongestNotice = 3600;  // A queue that waits for its guarantee should not wait longer.
inline constexpr std::int64_t kMaxQuotas = 64;
inline constexpr std::int64_t kMaxQueuePools = 256;  // In the status: also pools without a quota.
inline constexpr std::int64_t kMaxFirstWaiting = 5;

// In one pool. A pool without a quota is as one whose quota has nothing but its name.
struct PoolQuota {
  std::string pool = {};
  std::optional<std::int32_t> guaranteed = {};  // Empty: that of the queues below it together, else 0.
  std::optional<std::int32_t> limit = {};       // Empty: none.
  std::optional<std::int32_t> lendable = {};    // Empty: all that is guaranteed.
  std::int32_t weight = 1;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const PoolQuota&, const PoolQuota&) = default;
};

enum class QueueOrder { kBestEffortFifo, kStrictFifo };
std::span<const std::string_view> EnumNames(QueueOrder);

enum class ReclaimPolicy { kAny, kLowerPriority, kNever };
std::span<const std::string_view> EnumNames(ReclaimPolicy);

enum class QueueStop { kNone, kHold, kDrain };
std::span<const std::string_view> EnumNames(QueueStop);

struct GpuQueueSpec {
  std::string parent = {};                      // Empty: none.
  kube::LabelSelector namespace_selector = {};  // Empty: it selects no namespace, and every namespace may name it.
  std::vector<PoolQuota> quotas = {};           // One for each pool.
  QueueOrder order = QueueOrder::kBestEffortFifo;
  ReclaimPolicy reclaim = ReclaimPolicy::kAny;
  QueueStop stop = QueueStop::kNone;
  std::int64_t minimum_runtime_seconds = 0;
  std::optional<std::int64_t> maximum_runtime_seconds = {};
  std::int64_t preemption_delay_seconds = 0;
  std::int64_t preemption_notice_seconds = 30;
  static std::span<const kube::FieldInfo> Fields();
};

// Why a condition of a GpuQueue is as it is: a closed list, so that a dashboard or a script can rely on it.
enum class GpuQueueReason {
  kPending,  // Not looked at yet.
  kReady,
  kHeld,                    // spec.stop is Hold.
  kDraining,                // spec.stop is Drain, and jobs still hold GPUs.
  kDrained,                 // spec.stop is Drain, and no job holds any.
  kParentMissing,           // There is no queue of that name.
  kParentCycle,             // The queue is above itself.
  kParentFaulty,            // A queue above it is at fault.
  kInvalidSpec,             // What the CRD refuses, too: an older one let it in.
  kGuaranteesExceedParent,  // The guarantees of the queues under one parent exceed the parent's.
  kGuaranteesExceedPool,    // The pool has fewer GPUs than are guaranteed.
  kPoolMissing,             // There is no pool of that name.
  kNamespaceInTwoQueues,    // Another queue selects the same namespace.
  kInvalidSelector,         // spec.namespaceSelector cannot be evaluated.
  kLimitBelowUse,           // Until jobs have yielded, the queue uses more than its limit.
  kNamespacesNotWatched,    // grus manages some namespaces only: GPUs that others hold look free.
  kNotPermitted,            // grus itself lacks a permission.
};
std::span<const std::string_view> EnumNames(GpuQueueReason);
std::string_view ToString(GpuQueueReason reason);

struct QueuePoolStatus {
  std::string pool = {};
  std::int32_t guaranteed = 0, used = 0, borrowed = 0, lent = 0, share = 0, waiting = 0;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const QueuePoolStatus&, const QueuePoolStatus&) = default;
};

// Sums over all pools, for the columns.
struct QueueTotals {
  std::int32_t guaranteed = 0, used = 0, borrowed = 0, lent = 0, waiting = 0;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const QueueTotals&, const QueueTotals&) = default;
};

struct WaitingJob {
  std::string kind = {}, ns = {}, name = {};
  std::int32_t gpus = 0;
  std::string reason = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const WaitingJob&, const WaitingJob&) = default;
};

struct GpuQueueStatus {
  std::int64_t observed_generation = 0;
  std::vector<kube::Condition> conditions = {};
  QueueTotals total = {};
  std::vector<QueuePoolStatus> pools = {};
  std::int32_t running_jobs = 0, waiting_jobs = 0;
  std::vector<WaitingJob> first_waiting = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const GpuQueueStatus&, const GpuQueueStatus&) = default;
};

struct GpuQueue : kube::Object {
  GpuQueueSpec spec;
  GpuQueueStatus status;
  static const kube::Kind& ResourceKind();
};

}  // namespace api
