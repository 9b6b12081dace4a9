// SPDX-License-Identifier: Apache-2.0
#include "controllers/allocator/queue_reconciler.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "controllers/frame/retry_times.h"

namespace grus {
namespace {

using kube::Action;
using kube::Result;

// Every start and end of a pod changes what queues use: one pass, and so one write of each status, in this time.
constexpr kube::Duration kReportWait = std::chrono::seconds(1);

// The one key, which stands for all queues and pools.
kube::ObjectKey TheKey() { return {"", "queues"}; }

bool IsNewsOfNamespace(const kube::Change& change) {
  return !change.before || !change.after || change.before->metadata.labels != change.after->metadata.labels;
}

// Writes the statuses of all of `objects`; returns the first error. `look_again` is brought forward where needed.
template <typename T>
kube::Status WriteAll(ObjectStatuses<T>& statuses, const Objects<T>& objects, const QueuesView& view,
                      std::optional<kube::Duration>& look_again, const std::stop_token& stop) {
  kube::Status all;
  for (const auto& object : objects) {
    if (stop.stop_requested()) return kube::Error(kube::ErrorCode::kCancelled, "the pass over queues was stopped");
    auto written = statuses.Write(*object, PlanStatus(*object, view), stop);
    if (written) LookAgain(look_again, *written);
    else if (all) all = std::move(written).error();
  }
  return all;
}

}  // namespace

QueueReconciler::QueueReconciler(kube::Client& client, QueueCaches caches, ClusterAccount& account,
                                 kube::EventRecorder& events, const kube::Clock& clock, const kube::Log& log,
                                 kube::Registry& metrics)
    : caches_(caches),
      account_(account),
      clock_(clock),
      feed_(kReportWait),
      queue_statuses_(client, caches.queues, events, clock, log),
      pool_statuses_(client, caches.pools, events, clock, log),
      metrics_(metrics) {}

void QueueReconciler::FeedQueue(kube::WorkQueue& queue) {
  feed_.Open(queue);
  const auto feed = [this](bool is_initial) { feed_.Add(TheKey(), News::kNow, is_initial); };
  queue_statuses_.OnChange(feed);
  pool_statuses_.OnChange(feed);
  caches_.namespaces.AddHandler([feed](const kube::Change& change, bool is_initial) {
    if (IsNewsOfNamespace(change)) feed(is_initial);
  });
  account_.OnQueues([this] { feed_.Add(TheKey(), News::kSoon); });
  account_.BeforePlanning([this] {
    account_.SetQueues(Declared(caches_.queues.List<api::GpuQueue>(), caches_.pools.List<api::NodePool>()).setup);
  });
}

DeclaredQueues QueueReconciler::Declared(const Objects<api::GpuQueue>& queues,
                                         const Objects<api::NodePool>& pools) const {
  return ReadQueues(queues, pools, caches_.namespaces.List<kube::Namespace>());
}

QueuesView QueueReconciler::Observe(const Objects<api::GpuQueue>& queues, std::vector<QueueFault> faults) const {
  QueuesView view;
  for (const auto& queue : queues) view.queues[queue->metadata.name] = queue.get();
  view.report = account_.Queues();
  std::ranges::move(faults, std::back_inserter(view.report.faults));
  view.now = kube::Time{clock_.WallNow()};
  view.sees_all_pods = caches_.sees_all_pods();
  view.sees_namespaces = caches_.namespaces.HasList();
  view.is_job = [this](const kube::ObjectKey& key) { return caches_.jobs && caches_.jobs->store().Get(key); };
  return view;
}

Result<Action> QueueReconciler::Reconcile(const kube::ObjectKey&, std::stop_token stop) {
  const auto queues = caches_.queues.List<api::GpuQueue>();
  const auto pools = caches_.pools.List<api::NodePool>();
  DeclaredQueues declared = Declared(queues, pools);
  account_.SetQueues(std::move(declared.setup));
  const QueuesView view = Observe(queues, std::move(declared.faults));
  metrics_.Put(view.report.queues);
  std::optional<kube::Duration> look_again = kSafetyResync;
  if (const auto& seconds = view.report.look_again_seconds) {
    LookAgain(look_again, std::chrono::duration_cast<kube::Duration>(std::chrono::duration<double>(*seconds)));
  }
  kube::Status of_queues = WriteAll(queue_statuses_, queues, view, look_again, stop);
  kube::Status of_pools = WriteAll(pool_statuses_, pools, view, look_again, stop);
  if (!of_queues) return std::move(of_queues).error();
  if (!of_pools) return std::move(of_pools).error();
  return Action::After(*look_again);
}

}  // namespace grus
