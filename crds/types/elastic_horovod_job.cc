// SPDX-License-Identifier: Apache-2.0
#include "crds/types/elastic_horovod_job.h"

namespace api {

using kube::CelRule;
using kube::Field;
using kube::FieldInfo;

std::span<const std::string_view> EnumNames(CleanPodPolicy) {
  static constexpr std::string_view kNames[] = {"Running", "All", "None"};
  return kNames;
}

std::span<const std::string_view> EnumNames(WorkloadClass) {
  static constexpr std::string_view kNames[] = {"Unattended", "Interactive", "Inference"};
  return kNames;
}

std::span<const FieldInfo> LauncherSpec::Fields() {
  using T = LauncherSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::image>(
          "image",
          {.doc = "Image of the launcher; it needs horovodrun and an ssh client.", .required = true, .min_length = 1}),
      Field<&T::python_command>(
          "pythonCommand", {.doc = "The training command; its words are joined by blanks and given to a shell after "
                                   "horovodrun and its options.",
                            .required = true,
                            .min_items = 1}),
      Field<&T::pod_template>("template",
                              {.doc = "Pod template of the launcher, for everything that has no field of its own: "
                                      "resources, node selector, tolerations, environment, volumes. A container named "
                                      "\"launcher\" is merged with ours; fields that grus needs win."}),
  };
  return kFields;
}

std::span<const FieldInfo> WorkersSpec::Fields() {
  using T = WorkersSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::image>(
          "image",
          {.doc = "Image of the workers; it needs Horovod and an ssh server.", .required = true, .min_length = 1}),
      Field<&T::min_replicas>("minReplicas", {.doc = "The job starts with this many workers or more. If fewer fit, it "
                                                     "gives its GPUs back and waits. 1 if not set.",
                                              .minimum = 0,
                                              .maximum = kMostReplicas}),
      Field<&T::max_replicas>(
          "maxReplicas", {.doc = "Highest number of workers. If not set, the larger of minReplicas and targetReplicas.",
                          .minimum = 0,
                          .maximum = kMostReplicas}),
      Field<&T::target_replicas>(
          "targetReplicas",
          {.doc = "Wanted number of workers. If not set, as many as there is room for, up to maxReplicas.",
           .minimum = 0,
           .maximum = kMostReplicas}),
      Field<&T::gpus_per_worker>(
          "gpusPerWorker",
          {.doc = "GPUs (nvidia.com/gpu) of each worker; Horovod runs one process for each. With 0 the workers train "
                  "on CPUs, one process each. Ignored if the template's container \"worker\" itself asks for "
                  "nvidia.com/gpu or another accelerator such as amd.com/gpu, nvidia.com/mig-1g.5gb or google.com/tpu.",
           .minimum = 0,
           .maximum = 64,
           .default_json = "1"}),
      Field<&T::pod_template>("template",
                              {.doc = "Pod template of the workers, for everything that has no field of its own. A "
                                      "container named \"worker\" is merged with ours; fields that grus needs win."}),
  };
  return kFields;
}

std::span<const FieldInfo> SchedulingPolicy::Fields() {
  using T = SchedulingPolicy;
  static constexpr FieldInfo kFields[] = {
      Field<&T::min_available>(
          "minAvailable",
          {.doc = "The job starts when this many workers and its launcher have room. If not set, minReplicas; never "
                  "more than are wanted. Once it trains, it goes on with minReplicas.",
           .minimum = 1,
           .maximum = kMostReplicas}),
      Field<&T::schedule_timeout_seconds>(
          "scheduleTimeoutSeconds",
          {.doc = "If not all workers have found a node after this time, the start goes on with those that have, if "
                  "they are enough; otherwise the job gives everything back and tries again later. If not set, "
                  "elastic.unschedulableGraceSeconds; with Ungate, 600.",
           .minimum = 1,
           .maximum = 86400}),
      Field<&T::when_unschedulable>(
          "whenUnschedulable",
          {.doc = "Wait: workers are created when there is room for them. Ungate: they are created at once, so that a "
                  "cluster autoscaler sees them and the scheduler preempts pods of lower priority for them; until all "
                  "of them have a node, those that have one hold their GPUs.",
           .default_json = "\"Wait\""}),
  };
  return kFields;
}

std::span<const FieldInfo> RunPolicy::Fields() {
  using T = RunPolicy;
  static constexpr FieldInfo kFields[] = {
      Field<&T::suspend>("suspend",
                         {.doc = "Stops the launcher and the workers; the job holds no GPU until this is false again.",
                          .default_json = "false"}),
      Field<&T::clean_pod_policy>("cleanPodPolicy",
                                  {.doc = "What is removed when the job ends. Running: the workers, which hold GPUs. "
                                          "All: the launcher too. None: nothing.",
                                   .default_json = "\"Running\""}),
      Field<&T::backoff_limit>("backoffLimit",
                               {.doc = "How many times a failed launcher is restarted before the job fails.",
                                .minimum = 0,
                                .default_json = "1"}),
      Field<&T::active_deadline_seconds>(
          "activeDeadlineSeconds",
          {.doc = "The job fails when it has not ended this long after its start. Suspended time does not count.",
           .minimum = 1}),
      Field<&T::ttl_seconds_after_finished>("ttlSecondsAfterFinished",
                                            {.doc = "The job is deleted this long after its end.", .minimum = 0}),
      Field<&T::progress_deadline_seconds>(
          "progressDeadlineSeconds",
          {.doc = "When the launcher has printed nothing for this long, the job is no longer Ready, because its "
                  "training may hang. Less than 60 counts as 60; 0: never.",
           .minimum = 0,
           .default_json = "600"}),
      Field<&T::scheduling_policy>("schedulingPolicy", {.doc = "When the job starts.", .default_json = "{}"}),
      Field<&T::managed_by>(
          "managedBy",
          {.doc =
               "If set to anything but ai.centauruscloud.io/grus, grus leaves the job to the controller of that name.",
           .max_length = 63}),
  };
  return kFields;
}

std::span<const FieldInfo> ElasticPolicy::Fields() {
  using T = ElasticPolicy;
  static constexpr FieldInfo kFields[] = {
      Field<&T::unschedulable_grace_seconds>(
          "unschedulableGraceSeconds", {.doc = "How long a worker may be unschedulable before the job shrinks to what "
                                               "fits.",
                                        .minimum = 0,
                                        .default_json = "15"}),
      Field<&T::scale_up>("scaleUp", {.doc = "Grow again when GPUs are free.", .default_json = "true"}),
      Field<&T::cooldown_seconds>(
          "cooldownSeconds",
          {.doc = "The least time between a change of size and the next growth.", .minimum = 0, .default_json = "30"}),
      Field<&T::shrink_grace_seconds>("shrinkGraceSeconds",
                                      {.doc = "The time between a worker's removal from the host list and the deletion "
                                              "of its pod, so that training goes on from memory.",
                                       .minimum = 0,
                                       .default_json = "30"}),
      Field<&T::timeout_seconds>(
          "timeoutSeconds", {.doc = "Horovod's --elastic-timeout: a training without a worker for this long fails. "
                                    "Horovod's own default is 600. A change takes effect at the launcher's next start.",
                             .minimum = 1}),
      Field<&T::reset_limit>(
          "resetLimit",
          {.doc = "Horovod's --reset-limit: a training fails when its workers have changed more often than this, by "
                  "loss or resize. No limit if not set. A change takes effect at the launcher's next start.",
           .minimum = 1}),
  };
  return kFields;
}

namespace {

constexpr CelRule kSpecRules[] = {
    {"!has(self.workersSpec.minReplicas) || !has(self.workersSpec.maxReplicas) || self.workersSpec.minReplicas <= "
     "self.workersSpec.maxReplicas",
     "workersSpec.minReplicas must not be larger than workersSpec.maxReplicas"},
    {"!has(self.workersSpec.targetReplicas) || !has(self.workersSpec.maxReplicas) || self.workersSpec.targetReplicas "
     "<= self.workersSpec.maxReplicas",
     "workersSpec.targetReplicas must not be larger than workersSpec.maxReplicas"},
    {"!has(self.workersSpec.targetReplicas) || !has(self.workersSpec.minReplicas) || self.workersSpec.targetReplicas "
     ">= self.workersSpec.minReplicas",
     "workersSpec.targetReplicas must not be smaller than workersSpec.minReplicas; to hold no workers for a while set "
     "runPolicy.suspend"},
};

}  // namespace

std::span<const FieldInfo> ElasticHorovodJobSpec::Fields() {
  using T = ElasticHorovodJobSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::launcher>("launcherSpec", {.doc = "The pod that runs horovodrun.", .required = true}),
      Field<&T::workers>("workersSpec", {.doc = "The pods that train.", .required = true}),
      Field<&T::run_policy>("runPolicy", {.doc = "How the job starts, ends and is cleaned up.", .default_json = "{}"}),
      Field<&T::elastic>("elastic", {.doc = "When the job shrinks and grows.", .default_json = "{}"}),
      Field<&T::queue_name>("queueName", {.doc = "The GpuQueue whose GPUs the job uses. If not set, the one that "
                                                 "selects its namespace; if none does, the queue default.",
                                          .max_length = 253,
                                          .pattern = "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"}),
      Field<&T::workload_class>(
          "workloadClass",
          {.doc =
               "Unattended: the job may borrow GPUs that other queues do not use, and may be stopped, after a notice, "
               "when they are due to another job; it starts again when there is room. Interactive, Inference: it comes "
               "before Unattended jobs of its queue, is never stopped for another job, and starts only within the "
               "guarantee of its queue. Workers above minReplicas are given up in each class.",
           .default_json = "\"Unattended\""}),
      Field<&T::priority_class_name>("priorityClassName",
                                     {.doc = "PriorityClass of the launcher and the workers.", .max_length = 253}),
      Field<&T::profile>(
          "profile", {.doc = "The WorkloadProfile that says how fast the job is. Auto: that of the same workload, if "
                             "there is one. Off: none. Or the name of one, of this "
                             "namespace or of everybody; a profile of another namespace counts as missing.",
                      .max_length = 253,
                      .pattern = "^(Auto|Off|[a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$",
                      .default_json = "\"Auto\""}),
      Field<&T::containers>("containers",
                            {.doc = "As in the original Alnair: the volumeMounts of its items are added to "
                                    "the launcher and the workers. New manifests use the templates."}),
      Field<&T::volumes>("volumes", {.doc = "As in the original Alnair: volumes of the launcher and the workers."}),
  };
  return kFields;
}

std::span<const FieldInfo> ReplicaStatus::Fields() {
  using T = ReplicaStatus;
  static constexpr FieldInfo kFields[] = {
      Field<&T::min>("min", {.doc = "Lowest number of workers: spec.workersSpec.minReplicas, or its default."}),
      Field<&T::max>("max", {.doc = "Highest number of workers: spec.workersSpec.maxReplicas, or its default."}),
      Field<&T::wanted>("wanted",
                        {.doc = "Workers that the job asks for: spec.workersSpec.targetReplicas, or else max."}),
      Field<&T::granted>("granted", {.doc = "Workers that there is room for, and that may run now."}),
      Field<&T::created>("created", {.doc = "Worker pods that exist and are not ending."}),
      Field<&T::ready>("ready", {.doc = "Worker pods that are ready."}),
      Field<&T::unschedulable>("unschedulable", {.doc = "Worker pods that the scheduler found no node for."}),
  };
  return kFields;
}

std::span<const FieldInfo> LastScale::Fields() {
  using T = LastScale;
  static constexpr FieldInfo kFields[] = {
      Field<&T::from>("from", {.doc = "Workers granted before."}),
      Field<&T::to>("to", {.doc = "Workers granted since."}),
      Field<&T::reason>("reason",
                        {.doc = "Why: Started, SpecChanged (kubectl scale changes the spec, too), Unschedulable, "
                                "RoomAppeared, BelowMinimum, PodsBroken, Reclaimed or Preempted."}),
      Field<&T::time>("time", {.doc = "When its size changed."}),
  };
  return kFields;
}

std::span<const FieldInfo> JobUsage::Fields() {
  using T = JobUsage;
  static constexpr FieldInfo kFields[] = {
      Field<&T::gpu_seconds>("gpuSeconds",
                             {.doc = "GPUs times seconds that its workers have had, until lastScale.", .minimum = 0}),
      Field<&T::run_seconds>("runSeconds", {.doc = "Seconds that it has had workers, until lastScale.", .minimum = 0}),
      Field<&T::resizes>("resizes", {.doc = "How often its size has changed while it ran.", .minimum = 0}),
      Field<&T::restarts>("restarts",
                          {.doc = "How often all its workers were given back, to start anew.", .minimum = 0}),
  };
  return kFields;
}

std::span<const FieldInfo> Progress::Fields() {
  using T = Progress;
  static constexpr FieldInfo kFields[] = {
      Field<&T::summary>("summary", {.doc = "In short: 42%, or step 1200 if it is not known how many there are."}),
      Field<&T::step>("step", {.doc = "Training step reached, of this epoch if the counter starts over in each."}),
      Field<&T::total_steps>("totalSteps", {.doc = "Where that counter ends."}),
      Field<&T::epoch>("epoch", {.doc = "Epoch reached, as the training counts them."}),
      Field<&T::total_epochs>("totalEpochs", {.doc = "How many epochs there are."}),
      Field<&T::percent>(
          "percent", {.doc = "How much of the whole training is done, rounded down.", .minimum = 0, .maximum = 100}),
      Field<&T::eta>("eta", {.doc = "When the training is done if it goes on as fast as now."}),
      Field<&T::eta_earliest>("etaEarliest", {.doc = "The earliest that is likely."}),
      Field<&T::eta_latest>("etaLatest", {.doc = "The latest that is likely."}),
      Field<&T::time>("time", {.doc = "When the training said how far it is."}),
      Field<&T::metric>("metric", {.doc = "A metric of the training, written by other tools."}),
  };
  return kFields;
}

std::span<const FieldInfo> JobProfile::Fields() {
  using T = JobProfile;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name", {.doc = "Name of the WorkloadProfile."}),
      Field<&T::knee_gpus>(
          "kneeGpus", {.doc = "Smallest number of GPUs with nine tenths of the highest throughput. Missing: not known.",
                       .minimum = 1}),
  };
  return kFields;
}

std::span<const FieldInfo> ElasticHorovodJobStatus::Fields() {
  using T = ElasticHorovodJobStatus;
  static constexpr FieldInfo kFields[] = {
      Field<&T::conditions>(
          "conditions",
          {.doc = "Ready: it trains with its minimum or more, or has succeeded; False, its reason and message say why "
                  "not. Reconciling: it is on its way there, or waits. Stalled: somebody has to help. Suspended: "
                  "spec.runPolicy.suspend stops it. Complete, Failed: it has ended.",
           .list_type = "map",
           .list_map_key = "type"}),
      Field<&T::phase>("phase", {.doc = "Pending, Waiting, Starting, Running, Suspended, Succeeded or Failed."}),
      Field<&T::observed_generation>("observedGeneration", {.doc = "The generation this status is about."}),
      Field<&T::available_replicas>("availableReplicas", {.doc = "Workers that are ready."}),
      Field<&T::launcher>("launcher", {.doc = "The launcher: job.batch/NAME."}),
      Field<&T::workers>("workers", {.doc = "How to find the workers: pods -l SELECTOR, for kubectl get."}),
      Field<&T::replicas>("replicas", {.doc = "Counts of workers."}),
      Field<&T::last_scale>("lastScale", {.doc = "The last change of size."}),
      Field<&T::usage>("usage", {.doc = "What the job has used until lastScale."}),
      Field<&T::progress>("progress", {.doc = "How far the training is, as its log or its annotations say."}),
      Field<&T::profile>("profile", {.doc = "The WorkloadProfile that spec.profile selects, if it exists."}),
      Field<&T::selector>("selector", {.doc = "Label selector of the workers, for the scale subresource."}),
      Field<&T::start_time>("startTime", {.doc = "When grus first saw the job, or when it was resumed."}),
      Field<&T::completion_time>("completionTime", {.doc = "When the job ended."}),
  };
  return kFields;
}

const kube::Kind& ElasticHorovodJob::ResourceKind() {
  using T = ElasticHorovodJob;
  static constexpr FieldInfo kFields[] = {
      Field<&T::spec>("spec", {.doc = "What the user wants.", .required = true, .cel = kSpecRules}),
      // What a new job shows until grus has looked at it: to kstatus it is under way, not ready.
      Field<&T::status>("status",
                        {.doc = "What grus observed.",
                         .default_json = R"({"phase":"Pending","conditions":[{"type":"Reconciling","status":"True",)"
                                         R"("reason":"Pending","message":"waiting for grus-manager",)"
                                         R"("lastTransitionTime":"1970-01-01T00:00:00Z"}]})"}),
  };
  static const kube::Kind kKind = kube::MakeKind<T>({.group = "ai.centauruscloud.io",
                                                     .version = "v1alpha1",
                                                     .kind = "ElasticHorovodJob",
                                                     .plural = "elastichorovodjobs",
                                                     .fields = kFields});
  return kKind;
}

}  // namespace api
