// SPDX-License-Identifier: Apache-2.0
#include "controllers/allocator/queue_status.h"

#include <algorithm>
#include <utility>

#include "clientlib/model/label_selector.h"
#include "controllers/cluster/owners.h"
#include "controllers/frame/kstatus.h"
#include "controllers/queues/wording.h"
#include "crds/types/elastic_horovod_job.h"
#include "crds/types/pod_group.h"

namespace grus {
namespace {

using api::GpuQueueReason;
using api::NodePoolReason;

constexpr std::size_t kMostFaultsTold = 8;  // In a message.

std::int32_t WholeGpus(std::int64_t milli) {
  return static_cast<std::int32_t>((std::max<std::int64_t>(milli, 0) + kOneGpu - 1) / kOneGpu);
}

std::string TextOf(const std::vector<ObjectFault>& faults) {
  std::string text;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (i == kMostFaultsTold)
      return text + "; and " + Count(static_cast<std::int64_t>(faults.size() - i), "more fault");
    if (i > 0) text += "; ";
    text += TextOf(faults[i]);
  }
  return text;
}

void PutWarningsLast(std::vector<ObjectFault>& faults) {
  std::ranges::stable_partition(faults, [](const ObjectFault& fault) { return !fault.is_warning; });
}

// --- GpuQueue

std::vector<ObjectFault> FaultsOf(const api::GpuQueue& queue, const QueuesView& view) {
  std::vector<ObjectFault> faults;
  for (const QueueFault& fault : view.report.faults) {
    if (fault.queue != queue.metadata.name) continue;
    faults.push_back({ToString(ReasonOf(fault.kind)), fault.field, fault.message, IsWarning(fault.kind)});
  }
  if (!view.sees_namespaces && !queue.spec.namespace_selector.empty()) {
    faults.push_back({ToString(GpuQueueReason::kNotPermitted), "",
                      "grus may not list namespaces, so that the queue selects none of them, and no job is in it: "
                      "upgrade the chart of grus, whose ClusterRole permits it"});
  }
  PutWarningsLast(faults);
  return faults;
}

// The strictest of its own stop and of those above it.
struct EffectiveStop {
  api::QueueStop stop = api::QueueStop::kNone;
  const api::GpuQueue* of = nullptr;
};

EffectiveStop StopOf(const api::GpuQueue& queue, const QueuesView& view) {
  EffectiveStop strictest{queue.spec.stop, &queue};
  const api::GpuQueue* at = &queue;
  for (std::size_t steps = 0; steps < view.queues.size(); ++steps) {  // Parents may be a cycle.
    const auto parent = view.queues.find(at->spec.parent);
    if (parent == view.queues.end()) break;
    at = parent->second;
    if (at->spec.stop > strictest.stop) strictest = {at->spec.stop, at};
  }
  return strictest;
}

void SayStopped(Kstatus& conditions, const api::GpuQueue& queue, const EffectiveStop& stop, std::int64_t used,
                const std::string& warnings) {
  const bool is_own = stop.of == &queue;
  const std::string who =
      is_own ? "spec.stop is " : "spec.stop of the queue " + stop.of->metadata.name + " above it is ";
  const std::string more = warnings.empty() ? "" : "; " + warnings;
  if (stop.stop == api::QueueStop::kHold) {
    return conditions.Say(Standing::kSuspended, ToString(GpuQueueReason::kHeld),
                          who + "Hold: no job starts or grows, and those that run go on" + more);
  }
  const std::string says = who + "Drain: no job starts or grows, ";
  if (used == 0) {
    return conditions.Say(Standing::kSuspended, ToString(GpuQueueReason::kDrained),
                          says + "and none holds GPUs" + more);
  }
  const std::string message = says + "and those that run give back the " + GpuCount(used) + " that they hold" + more;
  conditions.Say(Standing::kReconciling, ToString(GpuQueueReason::kDraining), message);
  conditions.Set("Suspended", true, ToString(GpuQueueReason::kDraining), message);
}

void SayConditions(api::GpuQueueStatus& status, const api::GpuQueue& queue, const std::vector<ObjectFault>& faults,
                   const QueuesView& view, std::int64_t used) {
  Kstatus conditions(status.conditions, queue.metadata.generation, view.now);
  const std::string text = TextOf(faults);
  if (!faults.empty() && !faults.front().is_warning) {
    conditions.Say(Standing::kStalled, faults.front().reason, text);
    return conditions.SayResumed();
  }
  if (const EffectiveStop stop = StopOf(queue, view); stop.stop != api::QueueStop::kNone) {
    return SayStopped(conditions, queue, stop, used, text);
  }
  conditions.SayResumed();
  if (!faults.empty()) return conditions.Say(Standing::kReady, faults.front().reason, text);
  if (!view.sees_all_pods) {
    return conditions.Say(
        Standing::kReady, ToString(GpuQueueReason::kNamespacesNotWatched),
        "grus manages some namespaces only: GPUs that pods of others hold look free, so that the queue may not get all "
        "that is guaranteed to it; --count-all-pods counts them");
  }
  conditions.Say(Standing::kReady, ToString(GpuQueueReason::kReady), "its jobs can start");
}

api::WaitingJob WaitingJobOf(const WaitingReport& waiting, const QueuesView& view) {
  api::WaitingJob job{.gpus = WholeGpus(waiting.milli), .reason = waiting.reason};
  for (const kube::Kind* kind : {&api::PodGroup::ResourceKind(), &api::LegacyPodGroup::ResourceKind()}) {
    if (const auto key = GroupOfGang(*kind, waiting.owner)) {
      const bool is_job = kind == &api::PodGroup::ResourceKind() && view.is_job && view.is_job(*key);
      job.kind = is_job ? api::ElasticHorovodJob::ResourceKind().kind : kind->kind;
      job.ns = key->ns;
      job.name = key->name;
      break;
    }
  }
  return job;
}

void CountPools(api::GpuQueueStatus& status, const QueueReport& report) {
  for (const QueuePoolReport& pool : report.pools) {
    const api::QueuePoolStatus& at = status.pools.emplace_back(
        api::QueuePoolStatus{pool.pool, WholeGpus(pool.guaranteed), WholeGpus(pool.used), WholeGpus(pool.borrowed),
                             WholeGpus(pool.lent), WholeGpus(pool.share), WholeGpus(pool.waiting)});
    status.total.guaranteed += at.guaranteed;
    status.total.used += at.used;
    status.total.borrowed += at.borrowed;
    status.total.lent += at.lent;
    status.total.waiting += at.waiting;
  }
  if (status.pools.size() > api::kMaxQueuePools) status.pools.resize(api::kMaxQueuePools);
}

// --- NodePool

std::vector<ObjectFault> FaultsOf(const api::NodePool& pool, const PoolReport& report) {
  std::vector<ObjectFault> faults;
  const std::string labels = kube::ToText(kube::LabelSelector{pool.spec.node_selector, {}});
  if (report.taken_by_older > 0) {
    faults.push_back({ToString(NodePoolReason::kPoolsOverlap), "spec.nodeSelector",
                      Count(report.taken_by_older, report.nodes > 0 ? "more node" : "node") + " with the labels " +
                          labels + (report.taken_by_older == 1 ? " belongs" : " belong") +
                          " to pools that were created before this one: choose labels that only its own nodes have",
                      report.nodes > 0});
  } else if (report.nodes == 0) {
    faults.push_back({ToString(NodePoolReason::kNoNodes), "spec.nodeSelector",
                      "no node has the labels " + labels + ": correct them, or add such nodes", false});
  }
  if (report.nodes > 0 && report.milli == 0) {
    faults.push_back({ToString(NodePoolReason::kNoGpus), "spec.resource",
                      "no node of the pool has " + std::string(pool.spec.resource) +
                          ": install its device plugin, or name the resource that they have",
                      false});
  }
  PutWarningsLast(faults);
  return faults;
}

template <typename T>
StatusPlan<T> BasePlan(const T& object, std::vector<ObjectFault> faults) {
  StatusPlan<T> plan{{}, std::move(faults)};
  // Before grus' first pass, conditions are the CRD's default.
  if (object.status.observed_generation != 0) plan.status.conditions = object.status.conditions;
  plan.status.observed_generation = object.metadata.generation;
  return plan;
}

}  // namespace

std::string TextOf(const ObjectFault& fault) { return (fault.field.empty() ? "" : fault.field + ": ") + fault.message; }

GpuQueueReason ReasonOf(QueueFaultKind kind) {
  switch (kind) {
    case QueueFaultKind::kParentMissing: return GpuQueueReason::kParentMissing;
    case QueueFaultKind::kParentCycle: return GpuQueueReason::kParentCycle;
    case QueueFaultKind::kParentFaulty: return GpuQueueReason::kParentFaulty;
    case QueueFaultKind::kDuplicateName:
    case QueueFaultKind::kTwoQuotas:
    case QueueFaultKind::kNegativeNumber:
    case QueueFaultKind::kWeightTooSmall:
    case QueueFaultKind::kLimitBelowGuarantee: return GpuQueueReason::kInvalidSpec;
    case QueueFaultKind::kInvalidSelector: return GpuQueueReason::kInvalidSelector;
    case QueueFaultKind::kPoolMissing: return GpuQueueReason::kPoolMissing;
    case QueueFaultKind::kGuaranteesExceedParent: return GpuQueueReason::kGuaranteesExceedParent;
    case QueueFaultKind::kGuaranteesExceedPool: return GpuQueueReason::kGuaranteesExceedPool;
    case QueueFaultKind::kLimitBelowUse: return GpuQueueReason::kLimitBelowUse;
    case QueueFaultKind::kNamespaceInTwoQueues: return GpuQueueReason::kNamespaceInTwoQueues;
  }
  return GpuQueueReason::kInvalidSpec;
}

StatusPlan<api::GpuQueue> PlanStatus(const api::GpuQueue& queue, const QueuesView& view) {
  StatusPlan<api::GpuQueue> plan = BasePlan(queue, FaultsOf(queue, view));
  const auto& reports = view.report.queues;
  const auto report = std::ranges::find(reports, std::string_view(queue.metadata.name), &QueueReport::queue);
  std::int64_t used = 0;
  if (report != reports.end()) {
    CountPools(plan.status, *report);
    for (const QueuePoolReport& pool : report->pools) used += pool.used;
    plan.status.running_jobs = report->running;
    plan.status.waiting_jobs = report->waiting;
    for (const WaitingReport& waiting : report->first_waiting) {
      if (plan.status.first_waiting.size() == api::kMaxFirstWaiting) break;
      plan.status.first_waiting.push_back(WaitingJobOf(waiting, view));
    }
  }
  SayConditions(plan.status, queue, plan.faults, view, used);
  return plan;
}

StatusPlan<api::NodePool> PlanStatus(const api::NodePool& pool, const QueuesView& view) {
  const auto& reports = view.report.pools;
  const auto found = std::ranges::find(reports, std::string_view(pool.metadata.name), &PoolReport::pool);
  const PoolReport report = found != reports.end() ? *found : PoolReport();
  StatusPlan<api::NodePool> plan = BasePlan(pool, FaultsOf(pool, report));
  plan.status.nodes = report.nodes;
  plan.status.gpus = WholeGpus(report.milli);
  plan.status.used = WholeGpus(report.used);
  plan.status.free = static_cast<std::int32_t>(std::max<std::int64_t>(report.free, 0) / kOneGpu);
  Kstatus conditions(plan.status.conditions, pool.metadata.generation, view.now);
  const std::vector<ObjectFault>& faults = plan.faults;
  if (faults.empty()) {
    conditions.Say(Standing::kReady, ToString(NodePoolReason::kReady), "jobs can run on its nodes");
    return plan;
  }
  // Nodes may yet come, and device plugins start; nodes of an older pool stay there.
  const bool is_overlap = faults.front().reason == ToString(NodePoolReason::kPoolsOverlap);
  const Standing standing = faults.front().is_warning ? Standing::kReady
                            : is_overlap              ? Standing::kStalled
                                                      : Standing::kReconciling;
  conditions.Say(standing, faults.front().reason, TextOf(faults));
  return plan;
}

}  // namespace grus
