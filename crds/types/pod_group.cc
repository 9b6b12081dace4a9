// SPDX-License-Identifier: Apache-2.0
#include "crds/types/pod_group.h"

namespace api {

using kube::Field;
using kube::FieldInfo;

std::span<const std::string_view> EnumNames(WhenUnschedulable) {
  static constexpr std::string_view kNames[] = {"Wait", "Ungate"};
  return kNames;
}

std::span<const FieldInfo> PodGroupSpec::Fields() {
  using T = PodGroupSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::min_member>("minMember", {.doc = "The members start only when this many of them can start together.",
                                          .minimum = 1,
                                          .maximum = 100000,
                                          .default_json = "1"}),
      Field<&T::min_resources>("minResources", {.doc = "What the members need in total. grus does not use it: the "
                                                       "requests of the pods count."}),
      Field<&T::schedule_timeout_seconds>(
          "scheduleTimeoutSeconds", {.doc = "A gang that is below its minimum this long after its gates were lifted "
                                            "gives its nodes back, and is tried again later. 60 if not set.",
                                     .minimum = 1,
                                     .maximum = 86400}),
      Field<&T::expected_runtime_seconds>(
          "expectedRuntimeSeconds",
          {.doc = "About how long the gang will run. With this set, it may use room that a larger gang waits for, and "
                  "the messages of waiting gangs say when they can expect to start.",
           .minimum = 1,
           .maximum = kLongestRuntime}),
      Field<&T::when_unschedulable>(
          "whenUnschedulable",
          {.doc = "Wait: members stay gated until the minimum fits. Ungate: the gates are lifted at "
                  "once, so that a cluster autoscaler sees the demand; the nodes it adds are kept for "
                  "the gang.",
           .default_json = "\"Wait\""}),
  };
  return kFields;
}

std::span<const FieldInfo> PodGroupStatus::Fields() {
  using T = PodGroupStatus;
  static constexpr FieldInfo kFields[] = {
      Field<&T::phase>("phase",
                       {.doc = "Pending, Scheduling, Running, Finished or Failed; in scheduling.sigs.k8s.io also "
                               "PreScheduling and Scheduled."}),
      Field<&T::occupied_by>("occupiedBy", {.doc = "The owners of the members: NAMESPACE/NAME."}),
      Field<&T::scheduled>("scheduled", {.doc = "Members that have, or had, a node."}),
      Field<&T::running>("running", {.doc = "Members that run."}),
      Field<&T::succeeded>("succeeded", {.doc = "Members that succeeded."}),
      Field<&T::failed>("failed", {.doc = "Members that failed."}),
      Field<&T::schedule_start_time>("scheduleStartTime",
                                     {.doc = "Of a gang below its minimum: when its gates were lifted, or it lost "
                                             "members. scheduleTimeoutSeconds counts from here."}),
      Field<&T::attempts>("attempts", {.doc = "Starts that were rolled back since the gang last ran. While it runs: "
                                              "tries of members beyond minMember since one found a node."}),
      Field<&T::next_attempt_time>(
          "nextAttemptTime",
          {.doc = "When a rolled-back gang, or members beyond minMember that found no node, are tried again."}),
      Field<&T::started_min_member>("startedMinMember",
                                    {.doc = "minMember when the gang last started. A gang that runs with this many "
                                            "members is not rolled back when minMember is raised.",
                                     .omit_zero = true}),
      Field<&T::run_seconds>("runSeconds",
                             {.doc = "If its queue has a maximumRuntimeSeconds: for how long members have had nodes, "
                                     "without the time since runningSince.",
                              .omit_zero = true,
                              .minimum = 0}),
      Field<&T::running_since>("runningSince", {.doc = "Likewise: since when members have nodes."}),
      Field<&T::observed_generation>("observedGeneration", {.doc = "The generation this status is about."}),
      Field<&T::conditions>(
          "conditions",
          {.doc = "Ready: the minimum runs, or the gang has succeeded; False, its reason and message say why not. "
                  "Reconciling: it is on its way there, or waits. Stalled: somebody has to help.",
           .list_type = "map",
           .list_map_key = "type"}),
  };
  return kFields;
}

namespace {

std::span<const FieldInfo> PodGroupFields() {
  static constexpr FieldInfo kFields[] = {
      Field<&PodGroup::spec>("spec", {.doc = "What the user wants."}),
      // What a new group shows until grus has looked at it: to kstatus it is under way, not ready.
      Field<&PodGroup::status>(
          "status", {.doc = "What grus observed.",
                     .default_json = R"({"phase":"Pending","conditions":[{"type":"Reconciling","status":"True",)"
                                     R"("reason":"Pending","message":"waiting for grus-manager",)"
                                     R"("lastTransitionTime":"1970-01-01T00:00:00Z"}]})"}),
  };
  return kFields;
}

}  // namespace

const kube::Kind& PodGroup::ResourceKind() {
  static const kube::Kind kKind = kube::MakeKind<PodGroup>({.group = "scheduling.x-k8s.io",
                                                            .version = "v1alpha1",
                                                            .kind = "PodGroup",
                                                            .plural = "podgroups",
                                                            .fields = PodGroupFields()});
  return kKind;
}

const kube::Kind& LegacyPodGroup::ResourceKind() {
  static const kube::Kind kKind = kube::MakeKind<LegacyPodGroup>({.group = "scheduling.sigs.k8s.io",
                                                                  .version = "v1alpha1",
                                                                  .kind = "PodGroup",
                                                                  .plural = "podgroups",
                                                                  .fields = PodGroupFields()});
  return kKind;
}

}  // namespace api
