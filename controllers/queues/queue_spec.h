// SPDX-License-Identifier: Apache-2.0
// What the policy of queues is told of queues, pools and jobs. Plain values.
//
// "milli" is a thousandth of a GPU: parts of a GPU count exactly, and three queues share ten GPUs as 3.334, 3.333 and
// 3.333. In whole GPUs the first by name would be entitled to four, and would take the fourth from another queue that
// has as good a right to it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace grus {

inline constexpr std::int64_t kOneGpu = 1000;  // Thousandths.
// More than any cluster has. What a spec says above it counts as this, so that sums stay in range.
inline constexpr std::int64_t kMostMilli = 1'000'000 * kOneGpu;
inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
inline constexpr char kDefaultQueue[] = "default";

enum class QueueOrder { kBestEffortFifo, kStrictFifo };
// From whose jobs a queue below its guarantee or share may take GPUs.
enum class ReclaimPolicy { kAny, kLowerPriority, kNever };
enum class QueueStop { kNone, kHold, kDrain };

// In the order in which jobs of one queue are served. The last ones yield first.
enum class JobClass { kInteractive, kInference, kUnattended, kIdleOnly };

// Whether grus may stop such a job for another queue. `comes_back`: somebody makes its pods again.
inline bool IsPreemptible(JobClass job_class, bool comes_back) {
  return comes_back && job_class != JobClass::kInteractive && job_class != JobClass::kInference;
}

// A queue without a quota in a pool has no limit there and weight 1, and is guaranteed what the queues below it are.
struct PoolQuota {
  std::string pool;
  std::optional<std::int64_t> guaranteed_milli = {};  // Empty: what the queues below it are guaranteed, else 0.
  std::optional<std::int64_t> limit_milli = {};       // Empty: none.
  std::optional<std::int64_t> lendable_milli = {};    // Of the guarantee, while it is idle. Empty: all.
  std::int64_t weight = 1;
  friend bool operator==(const PoolQuota&, const PoolQuota&) = default;
};

struct QueueSpec {
  std::string name;         // Not empty.
  std::string parent = {};  // Empty: none.
  std::vector<PoolQuota> quotas = {};
  bool selects_namespaces = false;  // Then jobs of other namespaces may not name it.
  QueueOrder order = QueueOrder::kBestEffortFifo;
  ReclaimPolicy reclaim = ReclaimPolicy::kAny;
  QueueStop stop = QueueStop::kNone;
  std::int64_t minimum_runtime_seconds = 0;
  std::optional<std::int64_t> maximum_runtime_seconds = {};  // Empty: none.
  std::int64_t preemption_notice_seconds = 30;               // Before a job of it is stopped for another.
  std::int64_t preemption_delay_seconds = 0;                 // Before a job of it makes others yield.
  friend bool operator==(const QueueSpec&, const QueueSpec&) = default;
};

// To which nodes of a pool pods with GPUs go first.
enum class PoolPlacement {
  kBinPack,  // Those in use, so that whole nodes stay free.
  kSpread,   // Those of which most is free.
  // As a scheduler's extender scores them by what was measured; for all that is planned, as kBinPack.
  kUtilSched,
  // Likewise, by how fast the pods on each GPU are predicted to be beside each other.
  kInterference,
};

// Whether pods go where others are.
constexpr bool Packs(PoolPlacement placement) { return placement != PoolPlacement::kSpread; }

struct PoolSize {
  std::string name;        // Unique.
  std::int64_t milli = 0;  // Of all its nodes, whoever uses them.
};

}  // namespace grus
