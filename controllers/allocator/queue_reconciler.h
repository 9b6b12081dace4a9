// SPDX-License-Identifier: Apache-2.0
// Tells the account which queues and pools there are, and users how they are.
//
// One pass serves all GpuQueues and NodePools, as the statuses of all depend on all. It reads only caches and the
// account. Without queues and pools it writes nothing. A failed write of one status does not keep others from theirs.
// Thread-safe.
#pragma once

#include "clientlib/base/log.h"
#include "clientlib/client/client.h"
#include "clientlib/runtime/controller.h"
#include "clientlib/runtime/event_recorder.h"
#include "controllers/allocator/object_statuses.h"
#include "controllers/allocator/queue_metrics.h"
#include "controllers/cluster/cluster_account.h"
#include "controllers/frame/key_feed.h"

namespace grus {

struct QueueCaches {
  kube::Informer &queues, &pools, &namespaces;
  const kube::Informer* jobs = nullptr;                       // Null: nobody reconciles ElasticHorovodJobs.
  std::function<bool()> sees_all_pods = [] { return true; };  // False: only those of the managed namespaces.
};

class QueueReconciler final : public kube::Reconciler {
 public:
  // REQUIRES: the informers are not started yet.
  QueueReconciler(kube::Client& client, QueueCaches caches, ClusterAccount& account, kube::EventRecorder& events,
                  const kube::Clock& clock, const kube::Log& log, kube::Registry& metrics);

  // Call once, before the informers start.
  void FeedQueue(kube::WorkQueue& queue);

  // The same for every key.
  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override;

 private:
  QueuesView Observe(const Objects<api::GpuQueue>& queues, std::vector<QueueFault> faults) const;
  DeclaredQueues Declared(const Objects<api::GpuQueue>& queues, const Objects<api::NodePool>& pools) const;

  const QueueCaches caches_;
  ClusterAccount& account_;
  const kube::Clock& clock_;
  KeyFeed feed_;
  ObjectStatuses<api::GpuQueue> queue_statuses_;
  ObjectStatuses<api::NodePool> pool_statuses_;
  QueueMetrics metrics_;
};

}  // namespace grus
