// SPDX-License-Identifier: Apache-2.0
// What a Prometheus measures of the GPUs and CPUs of nodes, asked every 15 seconds, and the scores that follow
// (utilization_score.h). Of GPUs by grus-node-agent or dcgm-exporter, of CPUs by the node exporter.
//
// Samples older than two minutes count for nothing; so does an answer of that age, where Prometheus no longer answers.
// A query that fails is one line in the log until it is answered again. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/base/log.h"
#include "clientlib/runtime/controller.h"
#include "controllers/cluster/pod_placer.h"
#include "controllers/extender/utilization_score.h"
#include "controllers/prometheus/prometheus.h"

namespace grus {

struct UtilizationSource {
  std::string url = {};       // Of the Prometheus, which the client may ask.
  std::string selector = {};  // Matchers that all series must have: 'job="mine"'.
  ModelWeights weights = {};
};

class UtilizationWatch final : public kube::Reconciler {
 public:
  static constexpr kube::Duration kEvery = std::chrono::seconds(15), kOldest = std::chrono::minutes(2);

  // All must outlive it.
  UtilizationWatch(Prometheus& prometheus, UtilizationSource source, const kube::Clock& clock, const kube::Log& log);

  // Call once: from then on it asks by itself.
  void FeedQueue(kube::WorkQueue& queue);
  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override;

  // Ranks nodes whose placement is kUtilSched by their scores; those without one are not known. All stay as they are
  // where no node has a score, or the scores are too old. `ranks`: of each node, in their order.
  void Rank(std::span<const std::string_view> nodes, std::vector<NodeRank>& ranks) const;

 private:
  // False: it is not known.
  bool Ask(const char* what, const std::string& query, const OnSample& on_sample, std::stop_token stop);

  Prometheus& prometheus_;
  const UtilizationSource source_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  std::set<std::string> failing_;  // Queries; of the one pass.

  mutable std::mutex mutex_;                           // Guards what follows.
  std::map<std::string, double, std::less<>> scores_;  // By node.
  kube::TimePoint asked_{};
};

}  // namespace grus
