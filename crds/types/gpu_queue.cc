// SPDX-License-Identifier: Apache-2.0
#include "crds/types/gpu_queue.h"

#include <cstddef>

#include "crds/types/pod_group.h"

namespace api {

using kube::CelRule;
using kube::Field;
using kube::FieldInfo;

std::span<const std::string_view> EnumNames(QueueOrder) {
  static constexpr std::string_view kNames[] = {"BestEffortFifo", "StrictFifo"};
  return kNames;
}

std::span<const std::string_view> EnumNames(ReclaimPolicy) {
  static constexpr std::string_view kNames[] = {"Any", "LowerPriority", "Never"};
  return kNames;
}

std::span<const std::string_view> EnumNames(QueueStop) {
  static constexpr std::string_view kNames[] = {"None", "Hold", "Drain"};
  return kNames;
}

std::span<const std::string_view> EnumNames(GpuQueueReason) {
  static constexpr std::string_view kNames[] = {"Pending",
                                                "Ready",
                                                "Held",
                                                "Draining",
                                                "Drained",
                                                "ParentMissing",
                                                "ParentCycle",
                                                "ParentFaulty",
                                                "InvalidSpec",
                                                "GuaranteesExceedParent",
                                                "GuaranteesExceedPool",
                                                "PoolMissing",
                                                "NamespaceInTwoQueues",
                                                "InvalidSelector",
                                                "LimitBelowUse",
                                                "NamespacesNotWatched",
                                                "NotPermitted"};
  return kNames;
}

std::string_view ToString(GpuQueueReason reason) { return EnumNames(reason)[static_cast<std::size_t>(reason)]; }

namespace {

constexpr char kNamePattern[] = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$";

constexpr CelRule kQuotaRules[] = {
    {"!has(self.limit) || !has(self.guaranteed) || self.limit >= self.guaranteed",
     "limit must not be smaller than guaranteed: raise limit or lower guaranteed"},
    {"!has(self.lendable) || self.lendable <= (has(self.guaranteed) ? self.guaranteed : 0)",
     "lendable must not be larger than guaranteed: lower lendable or raise guaranteed"},
};
constexpr CelRule kSelectorRules[] = {
    {"!has(self.matchExpressions) || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) == "
     "(has(e.values) && size(e.values) > 0))",
     "namespaceSelector.matchExpressions with In or NotIn need values; those with Exists or DoesNotExist must have "
     "none"},
};

}  // namespace

std::span<const FieldInfo> PoolQuota::Fields() {
  using T = PoolQuota;
  static constexpr FieldInfo kFields[] = {
      Field<&T::pool>("pool", {.doc = "Name of the NodePool. \"default\": the nodes that no NodePool selects.",
                               .required = true,
                               .min_length = 1,
                               .max_length = kMaxPoolName,
                               .pattern = kNamePattern}),
      Field<&T::guaranteed>("guaranteed",
                            {.doc = "GPUs that are the queue's whenever its jobs need them. Meanwhile other queues may "
                                    "borrow them, up to lendable. If not set, what is guaranteed to the queues below "
                                    "it together, or 0 if there are none.",
                             .minimum = 0,
                             .maximum = kMostQueueGpus}),
      Field<&T::limit>("limit", {.doc = "The most GPUs that the queue may use, borrowed ones included; at least "
                                        "guaranteed. With 0 it may use none. No limit if not set.",
                                 .minimum = 0,
                                 .maximum = kMostQueueGpus}),
      Field<&T::lendable>("lendable", {.doc = "How many GPUs of its unused guarantee other queues may borrow; at most "
                                              "guaranteed. All of them if not set.",
                                       .minimum = 0,
                                       .maximum = kMostQueueGpus}),
      Field<&T::weight>("weight",
                        {.doc = "How many of the idle GPUs it gets, relative to the other queues under the same "
                                "parent: with 2, twice as many as a queue with 1. 1 if not set.",
                         .minimum = 1,
                         .maximum = kLargestWeight,
                         .default_json = "1"}),
  };
  return kFields;
}

std::span<const FieldInfo> GpuQueueSpec::Fields() {
  using T = GpuQueueSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::parent>("parent",
                        {.doc = "Name of the queue above this one, whose quotas hold for all queues below it together. "
                                "If not set, the queue shares the pools with all other queues that have no parent.",
                         .max_length = kMaxQueueName,
                         .pattern = kNamePattern}),
      Field<&T::namespace_selector>(
          "namespaceSelector",
          {.doc = "Namespaces by their labels. Their jobs are in this queue if they name none, and jobs of other "
                  "namespaces may not name it. If not set or empty, it selects no namespace, and jobs of every "
                  "namespace may name it.",
           .cel = kSelectorRules}),
      Field<&T::quotas>("quotas", {.doc = "What the queue may use in each pool. A pool that is not listed is as one "
                                          "that is listed with nothing but its name.",
                                   .max_items = kMaxQuotas,
                                   .list_type = "map",
                                   .list_map_key = "pool",
                                   .item_cel = kQuotaRules}),
      Field<&T::order>("order", {.doc = "Which waiting jobs may start. BestEffortFifo: those that fit, even while one "
                                        "before them waits for more GPUs. StrictFifo: only the first; no job passes "
                                        "another. BestEffortFifo if not set.",
                                 .default_json = "\"BestEffortFifo\""}),
      Field<&T::reclaim>("reclaim",
                         {.doc = "Which GPUs it takes back when its jobs wait and it has less than its guarantee. Any: "
                                 "those of all jobs on borrowed GPUs. LowerPriority: those of such jobs whose priority "
                                 "is lower than that of the job that waits. Never: none; its jobs wait until GPUs are "
                                 "free. Any if not set.",
                          .default_json = "\"Any\""}),
      Field<&T::stop>("stop",
                      {.doc = "Stops the queue and those below it. Hold: no job starts or grows; those that run "
                              "go on. Drain: also, those that run give their GPUs back and wait. None: the "
                              "queue works. None if not set.",
                       .default_json = "\"None\""}),
      Field<&T::minimum_runtime_seconds>(
          "minimumRuntimeSeconds",
          {.doc = "How many seconds a job of this queue runs before it has to yield GPUs to others. 0 if not set.",
           .minimum = 0,
           .maximum = kLongestRuntime,
           .default_json = "0"}),
      Field<&T::maximum_runtime_seconds>(
          "maximumRuntimeSeconds",
          {.doc = "How many seconds a job or gang of this queue may run: then it fails with reason DeadlineExceeded, "
                  "and does not start again. All its runs count together; time in which it waits or is suspended does "
                  "not. An ElasticHorovodJob with a runPolicy.activeDeadlineSeconds of its own, and a PodGroup whose "
                  "pods no controller makes again gated, have no such maximum. No maximum if not set.",
           .minimum = 1,
           .maximum = kLongestRuntime}),
      Field<&T::preemption_delay_seconds>(
          "preemptionDelaySeconds",
          {.doc =
               "How many seconds a job of this queue waits before others have to yield GPUs to it, so that a cluster "
               "autoscaler can add nodes first. 0 if not set.",
           .minimum = 0,
           .maximum = kLongestRuntime,
           .default_json = "0"}),
      Field<&T::preemption_notice_seconds>(
          "preemptionNoticeSeconds",
          {.doc = "How many seconds a job of this queue may go on, to save its state, before grus stops it for another "
                  "queue. 30 if not set.",
           .minimum = 0,
           .maximum = kLongestNotice,
           .default_json = "30"}),
  };
  return kFields;
}

namespace {

constexpr char kGuaranteedDoc[] = "GPUs that are guaranteed to the queue.";
constexpr char kUsedDoc[] = "GPUs that its jobs hold.";
constexpr char kBorrowedDoc[] = "GPUs that its jobs hold beyond its guarantee.";
constexpr char kLentDoc[] = "GPUs of its unused guarantee that jobs of other queues hold.";
constexpr char kWaitingDoc[] = "GPUs that its waiting jobs need to start.";

}  // namespace

std::span<const FieldInfo> QueuePoolStatus::Fields() {
  using T = QueuePoolStatus;
  static constexpr FieldInfo kFields[] = {
      Field<&T::pool>("pool", {.doc = "Name of the pool.", .required = true, .max_length = kMaxPoolName}),
      Field<&T::guaranteed>("guaranteed", {.doc = kGuaranteedDoc, .minimum = 0}),
      Field<&T::used>("used", {.doc = kUsedDoc, .minimum = 0}),
      Field<&T::borrowed>("borrowed", {.doc = kBorrowedDoc, .minimum = 0}),
      Field<&T::lent>("lent", {.doc = kLentDoc, .minimum = 0}),
      Field<&T::share>("share", {.doc = "GPUs that are due to the queue now: of its guarantee, and of what is idle by "
                                        "weight, as much as its jobs can use.",
                                 .minimum = 0}),
      Field<&T::waiting>("waiting", {.doc = kWaitingDoc, .minimum = 0}),
  };
  return kFields;
}

std::span<const FieldInfo> QueueTotals::Fields() {
  using T = QueueTotals;
  static constexpr FieldInfo kFields[] = {
      Field<&T::guaranteed>("guaranteed", {.doc = kGuaranteedDoc, .minimum = 0}),
      Field<&T::used>("used", {.doc = kUsedDoc, .minimum = 0}),
      Field<&T::borrowed>("borrowed", {.doc = kBorrowedDoc, .minimum = 0}),
      Field<&T::lent>("lent", {.doc = kLentDoc, .minimum = 0}),
      Field<&T::waiting>("waiting", {.doc = kWaitingDoc, .minimum = 0}),
  };
  return kFields;
}

std::span<const FieldInfo> WaitingJob::Fields() {
  using T = WaitingJob;
  static constexpr FieldInfo kFields[] = {
      Field<&T::kind>("kind", {.doc = "ElasticHorovodJob, PodGroup or Pod.", .max_length = 63}),
      Field<&T::ns>("namespace", {.doc = "Its namespace.", .max_length = 63}),
      Field<&T::name>("name", {.doc = "Its name.", .max_length = 253}),
      Field<&T::gpus>("gpus", {.doc = "GPUs that it needs to start.", .minimum = 0}),
      Field<&T::reason>("reason",
                        {.doc = "Why it waits, as one PascalCase word; its own status says more.", .max_length = 63}),
  };
  return kFields;
}

std::span<const FieldInfo> GpuQueueStatus::Fields() {
  using T = GpuQueueStatus;
  static constexpr FieldInfo kFields[] = {
      Field<&T::observed_generation>("observedGeneration", {.doc = "The generation this status is about."}),
      Field<&T::conditions>("conditions",
                            {.doc = "Ready: its jobs can start; the reason may still be a warning. Stalled: a fault "
                                    "has to be corrected first. Suspended: spec.stop of this queue, or of one above "
                                    "it, stops it. Reconciling: it is being drained.",
                             .max_items = 16,
                             .list_type = "map",
                             .list_map_key = "type"}),
      Field<&T::total>("total", {.doc = "GPUs in all pools together. Those of the queues below this one count, too."}),
      Field<&T::pools>("pools", {.doc = "GPUs in each pool where the queue has a quota or jobs. Those of the queues "
                                        "below this one count, too; parts of GPUs are added up and rounded up.",
                                 .max_items = kMaxQueuePools,
                                 .list_type = "map",
                                 .list_map_key = "pool"}),
      Field<&T::running_jobs>("runningJobs", {.doc = "Jobs that hold GPUs.", .minimum = 0}),
      Field<&T::waiting_jobs>("waitingJobs", {.doc = "Jobs that wait for their start.", .minimum = 0}),
      Field<&T::first_waiting>("firstWaiting",
                               {.doc = "The first of the waiting jobs, at most five, in the order of the queue.",
                                .max_items = kMaxFirstWaiting,
                                .list_type = "atomic"}),
  };
  return kFields;
}

const kube::Kind& GpuQueue::ResourceKind() {
  using T = GpuQueue;
  static constexpr FieldInfo kFields[] = {
      // Without this default, none below it would be filled in for a queue without a spec.
      Field<&T::spec>("spec", {.doc = "What the user wants.", .default_json = "{}"}),
      // What a new queue shows until grus has looked at it: to kstatus it is under way, not ready.
      Field<&T::status>(
          "status",
          {.doc = "What grus observed.",
           .default_json = R"({"conditions":[{"type":"Reconciling","status":"True","reason":"Pending",)"
                           R"("message":"waiting for grus-manager","lastTransitionTime":"1970-01-01T00:00:00Z"}]})"}),
  };
  static const kube::Kind kKind = kube::MakeKind<T>({.group = "ai.centauruscloud.io",
                                                     .version = "v1alpha1",
                                                     .kind = "GpuQueue",
                                                     .plural = "gpuqueues",
                                                     .is_namespaced = false,
                                                     .fields = kFields});
  return kKind;
}

}  // namespace api
