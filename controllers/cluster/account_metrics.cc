// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/account_metrics.h"

#include <chrono>
#include <utility>

namespace grus {
namespace {

double SecondsBetween(kube::TimePoint from, kube::TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

// From a second to three days.
const std::vector<double>& WaitBounds() {
  static const std::vector<double> kBounds = {1,    5,    15,   30,    60,    120,   300,   600,
                                              1800, 3600, 7200, 21600, 43200, 86400, 259200};
  return kBounds;
}

// Dense around what is promised: 1 ms with 2,048 GPUs, 5 ms with 16,384.
const std::vector<double>& DecisionBounds() {
  static const std::vector<double> kBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                              0.01,   0.025,   0.05,   0.1,   0.25,   1};
  return kBounds;
}

}  // namespace

AccountMetrics::AccountMetrics(kube::Registry* registry, ClusterQueues& queues, const kube::Clock& clock)
    : registry_(registry), queues_(queues), clock_(clock) {
  if (registry == nullptr) return;
  const auto of = [registry](const char* decision) {
    return &registry->GetHistogram("grus_decision_duration_seconds",
                                   "How long it took to decide who starts, where, and who yields (starts), and how "
                                   "large jobs of known speed should be (sizes).",
                                   DecisionBounds(), {"decision"}, {decision});
  };
  starts_ = of("starts");
  sizes_ = of("sizes");
}

std::string AccountMetrics::QueueOf(const std::string& owner) const {
  if (!queues_.is_active()) return kDefaultQueue;
  const kube::Result<QueueIndex> queue = queues_.QueueOf(owner);
  return queue ? queues_.tree().NameOf(*queue) : kDefaultQueue;
}

void AccountMetrics::NoteDemand(const GangDemand& demand) {
  const bool is_start = demand.needed > 0 && demand.waiting_since > 0;
  if (registry_ == nullptr || !is_start) waiting_.erase(demand.key);
  else waiting_.try_emplace(demand.key, clock_.Now());
}

void AccountMetrics::NotePlaced(const std::string& gang) {
  const auto waited = waiting_.extract(gang);
  if (!waited) return;
  registry_
      ->GetHistogram("grus_queue_wait_seconds",
                     "How long jobs and gangs waited for GPUs: from the first time that they asked for their nodes "
                     "until they had them, by queue.",
                     WaitBounds(), {"queue"}, {QueueOf(gang)})
      .Observe(SecondsBetween(waited.mapped(), clock_.Now()));
}

void AccountMetrics::NoteNotices(const std::vector<std::string>& owners) {
  if (registry_ == nullptr) return;
  for (const std::string& owner : owners) {
    const auto notice = queues_.yields().find(owner);
    if (notice == queues_.yields().end()) {
      told_.erase(owner);
      continue;
    }
    const int to = notice->second.to;
    const auto [known, is_new] = told_.try_emplace(owner, to);
    const int before = std::exchange(known->second, to);
    if (!is_new && to >= before) continue;
    registry_
        ->GetCounter("grus_queue_yield_notices_total",
                     "Notices to jobs and gangs to yield GPUs, by their queue and the reason. Kind: shrink (surplus "
                     "workers go) or preempt (all go, and the job waits again).",
                     {"queue", "reason", "kind"},
                     {QueueOf(owner), std::string(ToString(notice->second.reason)), to > 0 ? "shrink" : "preempt"})
        .Add();
  }
}

void AccountMetrics::NoteGone(const std::string& owner) {
  waiting_.erase(owner);
  told_.erase(owner);
}

void AccountMetrics::NoteResize(const std::string& owner, int from, int to) {
  if (registry_ == nullptr) return;
  registry_
      ->GetCounter("grus_elastic_resizes_total", "Changes of the number of workers of elastic jobs while they ran.",
                   {"queue", "direction"}, {QueueOf(owner), to > from ? "grow" : "shrink"})
      .Add();
}

void AccountMetrics::NoteDecision(Decision decision, kube::TimePoint began) {
  kube::Histogram* const histogram = decision == Decision::kStarts ? starts_ : sizes_;
  if (histogram != nullptr) histogram->Observe(SecondsBetween(began, clock_.Now()));
}

kube::Registry::Samples AccountMetrics::FreeGpus() const {
  kube::Registry::Samples samples;
  for (const PoolRoom& room : queues_.RoomByPool()) {
    for (const auto& [nodes, milli] :
         {std::pair{"empty", room.on_empty_nodes}, std::pair{"partly_used", room.on_used_nodes}}) {
      samples.push_back({{room.pool, nodes}, static_cast<double>(milli) / kOneGpu});
    }
  }
  return samples;
}

}  // namespace grus
