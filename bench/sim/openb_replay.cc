// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/openb_replay.h"

#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

namespace grus {
namespace {

constexpr double kCoverage = 0.95;  // Of the pods by the typical ones, in the published runs.
constexpr std::int64_t kArrivingPercent = 130;

// What is added to the seed for all that is drawn beside the arrivals.
constexpr std::uint64_t kNamesStream = 1'000'003, kTiesStream = 2'000'003;

using Random = std::mt19937_64;

// From 0 to count - 1. The distributions of the standard library differ from one to the next; this does not.
std::size_t Draw(Random& random, std::size_t count) { return random() % count; }

std::vector<std::size_t> Shuffled(std::size_t count, Random& random) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  for (std::size_t left = count; left > 1; --left) std::swap(all[left - 1], all[Draw(random, left)]);
  return all;
}

// The cluster while pods arrive.
class Cluster {
 public:
  Cluster(const OpenbTrace& trace, const OpenbPolicy& policy, Ties ties, std::uint64_t seed)
      : trace_(trace), policy_(policy), ties_(ties), random_(seed + kTiesStream), nodes_(trace.nodes) {
    std::vector<GpuRequest> requests;
    std::map<std::pair<GpuRequest, std::int64_t>, std::size_t> shapes;
    for (const OpenbPod& pod : trace.pods) {
      requests.push_back(pod.request);
      shape_of_.push_back(shapes.emplace(std::pair(pod.request, pod.memory_mib), shapes.size()).first->second);
    }
    typical_ = TypicalPods(requests, kCoverage);
    scores_.assign(shapes.size() * nodes_.size(), {});
    changes_.assign(nodes_.size(), 0);
    order_ = OpenbNodeOrder(trace, seed);
  }

  // Nullopt: no room.
  std::optional<OpenbPlacement> Place(std::size_t pod) {
    const std::optional<std::size_t> node = Choose(pod);
    if (!node) return std::nullopt;
    const OpenbPod& arriving = trace_.pods[pod];
    OpenbNode& chosen = nodes_[*node];
    std::vector<int> devices = policy_.place(chosen.free, arriving.request, typical_)->devices;
    chosen.free = After(std::move(chosen.free), arriving.request, devices);
    chosen.memory_mib -= arriving.memory_mib;
    ++changes_[*node];
    return OpenbPlacement{pod, *node, std::move(devices)};
  }

 private:
  // What a pod of one shape scored on a node, and after how many changes of the node.
  struct Score {
    int changes = -1;
    std::optional<double> score;
  };

  std::optional<std::size_t> Choose(std::size_t pod) {
    std::optional<std::size_t> best;
    double best_score = 0;
    std::size_t equal = 0;
    for (const std::size_t node : order_) {
      const std::optional<double> score = ScoreOf(pod, node);
      if (!score) continue;
      if (!best || *score > best_score) {
        best = node;
        best_score = *score;
        equal = 1;
      } else if (*score == best_score && ties_ == Ties::kRandom && Draw(random_, ++equal) == 0) {
        best = node;
      }
    }
    return best;
  }

  std::optional<double> ScoreOf(std::size_t pod, std::size_t node) {
    Score& known = scores_[shape_of_[pod] * nodes_.size() + node];
    if (known.changes == changes_[node]) return known.score;
    known = {changes_[node], std::nullopt};
    const OpenbPod& arriving = trace_.pods[pod];
    if (nodes_[node].memory_mib < arriving.memory_mib) return std::nullopt;
    const std::optional<GpuPlacement> placement = policy_.place(nodes_[node].free, arriving.request, typical_);
    if (placement) known.score = placement->score;
    return known.score;
  }

  const OpenbTrace& trace_;
  const OpenbPolicy& policy_;
  const Ties ties_;
  Random random_;
  std::vector<OpenbNode> nodes_;
  std::vector<TypicalPod> typical_;
  std::vector<std::size_t> order_;     // Of nodes by name, after renaming.
  std::vector<std::size_t> shape_of_;  // By pod: the number of its request and memory.
  std::vector<int> changes_;           // By node.
  // By shape and node. A pod changes one node, so of the others nearly all scores are known: 25 us a pod instead of
  // 5 ms, on the list `default` and 1,213 nodes.
  std::vector<Score> scores_;
};

}  // namespace

std::vector<std::size_t> OpenbArrivals(const OpenbTrace& trace, std::uint64_t seed) {
  Random random(seed);
  const std::vector<std::size_t> shuffled = Shuffled(trace.pods.size(), random);
  const std::int64_t most = trace.gpu_milli() * kArrivingPercent / 100;
  std::vector<std::size_t> arrivals;
  std::int64_t asked = 0;
  for (;;) {
    const std::size_t i = arrivals.size();
    const std::size_t pod = i < shuffled.size() ? shuffled[i] : Draw(random, shuffled.size());
    asked += trace.pods[pod].gpu_milli();
    if (asked > most) return arrivals;
    arrivals.push_back(pod);
  }
}

std::vector<std::size_t> OpenbNodeOrder(const OpenbTrace& trace, std::uint64_t seed) {
  Random random(seed + kNamesStream);
  return Shuffled(trace.nodes.size(), random);
}

OpenbOutcome ReplayOpenb(const OpenbTrace& trace, const OpenbPolicy& policy, Ties ties, std::uint64_t seed) {
  Cluster cluster(trace, policy, ties, seed);
  return PlaceArrivals(trace, seed, [&](std::size_t pod) { return cluster.Place(pod); });
}

OpenbOutcome PlaceArrivals(const OpenbTrace& trace, std::uint64_t seed,
                           const std::function<std::optional<OpenbPlacement>(std::size_t pod)>& place) {
  const std::int64_t capacity = trace.gpu_milli();
  OpenbOutcome outcome;
  std::int64_t asked = 0, allocated = 0;
  for (const std::size_t pod : OpenbArrivals(trace, seed)) {
    ++outcome.arrived;
    asked += trace.pods[pod].gpu_milli();
    if (std::optional<OpenbPlacement> placement = place(pod)) {
      allocated += trace.pods[pod].gpu_milli();
      outcome.placed.push_back(*std::move(placement));
    }
    const double percent = 100.0 * static_cast<double>(allocated) / static_cast<double>(capacity);
    if (asked <= capacity) outcome.allocated_percent_100 = percent;
    outcome.allocated_percent_130 = percent;
  }
  return outcome;
}

}  // namespace grus
