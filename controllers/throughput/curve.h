// SPDX-License-Identifier: Apache-2.0
// The throughput of a job over a list of sizes, and the sizes to recommend.
//
// Throughput counts samples, not steps. The batch may stay the same per replica, so that steps hold more samples as the
// job grows (as with Horovod and an unchanged script), or in total, so that the result of training stays the same:
// the local batch size is then the total over the replicas. A size where that is less than one sample is Unknown.
//
// Pure functions, deterministic.
#pragma once

#include <optional>
#include <vector>

#include "clientlib/base/result.h"
#include "controllers/throughput/throughput_fit.h"

namespace grus {

enum class FixedBatch { kPerReplica, kTotal };

struct CurveSize {
  int nodes = 1;
  int replicas = 1;
};

struct CurveQuestion {
  std::vector<CurveSize> sizes;  // Ascending by replicas; one node count for each number of replicas.
  FixedBatch fixed = FixedBatch::kPerReplica;
  double batch_size = 1;  // Samples per replica, or in total.
};

// Which size is the knee is surer than how fast it is: with the same batch for each replica, what is not known of a
// network makes all large sizes slower together. So in its choice bands of this many times the limit of FitOptions
// count, if at least so many different numbers of nodes were measured. accuracy_test.cc has the figures: with twice the
// limit, or two numbers of nodes, laws of networks that grow faster than nodes fool it.
constexpr double kKneeBandFactor = 1.5;
constexpr std::size_t kNodeCountsForKnee = 3;

// Throughput in samples per second. Where the source is Unknown, `throughput`, `speed_up` and `efficiency` are guesses.
struct CurvePoint {
  JobSize size;
  PredictionSource source = PredictionSource::kUnknown;
  bool counts_for_knee = false;  // Though the source is Unknown: see kKneeBandFactor.
  double throughput = 0, low = 0, high = 0;
  double speed_up = 0;    // Times the throughput of one replica, if the first size is one; else see CurveOf().
  double efficiency = 0;  // speed_up / replicas
};

// Sizes that double from one replica to `most`, which is always the last, on as few nodes as can hold them.
std::vector<CurveSize> DoublingSizes(int most, int gpus_per_node);

// Speed-up is relative to the first size, taken to be as efficient as one replica where it has several.
// Error kInvalidArgument: a size or batch size that cannot be, sizes that do not ascend, or none.
kube::Result<std::vector<CurvePoint>> CurveOf(const ThroughputFit& fit, const CurveQuestion& question);

constexpr double kKneeShare = 0.9;

enum class Goal {
  kFastest,   // Most samples per second.
  kCheapest,  // Most samples per GPU second.
  kKnee,      // The smallest with kKneeShare of the most samples per second.
};

// Points of the curve; of equal ones the smallest. `best_known` is the best of the sizes with an answer. It is also
// `best`, unless a size without an answer might be better: then `rival` is the first such size, and `best` is nullopt,
// Unknown to users, as it is if there is nothing to choose from. For the fastest and the knee, the upper end of the
// unknown size's band counts: it might be faster, or so fast that the knee would have less than kKneeShare of it. For
// the cheapest, the middle counts: work per GPU second falls as a job grows, whatever the upper end of a band says.
struct Recommendation {
  Goal goal = Goal::kFastest;
  std::optional<CurvePoint> best;
  std::optional<CurvePoint> best_known;
  std::optional<CurvePoint> rival;
};

// Chooses among the sizes of at most `max_replicas` with at least one sample per replica. In the order of Goal.
std::vector<Recommendation> Recommend(const std::vector<CurvePoint>& curve, int max_replicas);

}  // namespace grus
