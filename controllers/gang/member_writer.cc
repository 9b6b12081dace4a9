// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/member_writer.h"

#include <utility>

#include "clientlib/runtime/parallel.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/waited.h"
#include "controllers/policy/yield_words.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Json;
using kube::KindOf;
using kube::ObjectKey;
using kube::Result;
using kube::Status;

constexpr std::size_t kParallelWrites = 8;

// The pod is gone, or is not the one that was planned with: the event wakes the key, and the next pass plans anew.
bool HasChanged(const Error& error) {
  return error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kConflict;
}

Json PatchOf(const Member& member) {
  Json patch = Json::MakeObject();
  patch["metadata"]["uid"] = member.uid;
  return patch;
}

}  // namespace

Json NominationPatch(const GangView& view, const Nomination& nomination) {
  const Member& member = *nomination.member;
  const bool is_cleared = nomination.node.empty();
  Json patch = PatchOf(member);
  const std::string& told = is_cleared ? std::string() : view.scheduler;
  if (told != member.nominated_to) {
    patch["metadata"]["annotations"][kGangNominatedToAnnotation] = told.empty() ? Json() : Json(told);
  }
  patch["status"]["nominatedNodeName"] = is_cleared ? Json() : Json(nomination.node);
  return patch;
}

Json LiftPatch(const GangView& view, const Member& member, kube::Time now, const std::optional<Pin>& pin,
               const std::string& gpu) {
  Json patch = PatchOf(member);
  const bool is_short = view.is_planned_by_owner && member.created_at && Waited(now, *member.created_at) < kShortGate;
  if (!is_short) patch["metadata"]["annotations"][api::kGangLiftedAnnotation] = kube::ToText(now);
  patch["spec"]["schedulingGates"].Append(Json::MakeObject({{"$patch", "delete"}, {"name", api::kGangGate}}));
  if (!gpu.empty()) patch["metadata"]["annotations"][api::kPlannedGpuAnnotation] = gpu;
  if (pin) {
    patch["metadata"]["annotations"][kGangPinnedAnnotation] = pin->node;
    patch["spec"]["nodeSelector"][kHostnameLabel] = pin->hostname;
  }
  return patch;
}

Json DeadlinePatch(const DeadlineNote& note) {
  Json patch = PatchOf(*note.member);
  Json& deadline = patch["metadata"]["annotations"][kPreemptionDeadlineAnnotation];
  if (!note.deadline.empty()) deadline = note.deadline;
  return patch;
}

bool IsRefusal(const kube::Error& error) {
  const ErrorCode code = error.code();
  return code == ErrorCode::kForbidden || code == ErrorCode::kInvalid || code == ErrorCode::kInvalidArgument;
}

Json DisruptionPatch(const GangView& view, const Member& member) {
  Json patch = PatchOf(member);
  patch["metadata"]["resourceVersion"] = member.resource_version;
  const std::string why =
      view.yield ? YieldText("gives", "its GPUs", *view.yield) : std::string("did not come together in time");
  patch["status"]["conditions"] =
      Json::MakeArray({Json::MakeObject({{"type", "DisruptionTarget"},
                                         {"status", "True"},
                                         {"reason", view.yield ? "GangPreempted" : "GangRolledBack"},
                                         {"message", "its gang " + view.group->metadata.name + " " + why},
                                         {"lastTransitionTime", kube::ToText(view.now)}})});
  return patch;
}

Json UncountPatch(const Member& member, std::string_view resource_version) {
  Json patch = PatchOf(member);
  patch["metadata"]["resourceVersion"] = resource_version;
  patch["metadata"]["$deleteFromPrimitiveList/finalizers"] = Json::MakeArray({kJobTracking});
  patch["metadata"]["annotations"] = Json::MakeObject({{kGangGivenUpAnnotation, "true"}});
  return patch;
}

Status MemberWriter::Start(const GangView& view, const GangPlan& plan, std::atomic<bool>& may_have_lifted,
                           std::stop_token stop) {
  Status done = kube::ForEachParallel(
      clock_, plan.nominate.size(), kParallelWrites,
      [&](std::size_t i) { return Nominate(view, plan.nominate[i], stop); }, stop);
  if (!done) return done;
  done = kube::ForEachParallel(
      clock_, plan.lift.size(), kParallelWrites,
      [&](std::size_t i) { return Lift(view, plan.lift[i], may_have_lifted, stop); }, stop);
  if (!done) return done;
  return kube::ForEachParallel(
      clock_, plan.notes.size(), kParallelWrites,
      [&](std::size_t i) { return TellDeadline(view, plan.notes[i], stop); }, stop);
}

Status MemberWriter::End(const GangView& view, const GangPlan& plan, std::stop_token stop) {
  return kube::ForEachParallel(
      clock_, plan.end.size(), kParallelWrites, [&](std::size_t i) { return EndOne(view, *plan.end[i], stop); }, stop);
}

Status MemberWriter::EndOne(const GangView& view, const Member& member, std::stop_token stop) {
  if (member.is_tracked_by_job) {
    const Result<bool> is_uncounted = Uncount(view, member, stop);
    if (!is_uncounted) return kube::Error(is_uncounted.error());
    if (!*is_uncounted) return {};
  }
  kube::DeleteOptions options;
  options.uid = member.uid;
  const ObjectKey pod{view.group->metadata.ns, member.name};
  Status gone = client_.Delete(KindOf<kube::Pod>(), pod, options, stop);
  // On a conflict another pod has that name: there is nothing to delete.
  if (gone || gone.error().code() == ErrorCode::kConflict) return {};
  return std::move(gone).error().with("delete Pod " + pod.ToString());
}

Result<bool> MemberWriter::Uncount(const GangView& view, const Member& member, std::stop_token stop) {
  const ObjectKey pod{view.group->metadata.ns, member.name};
  std::string version = member.resource_version;
  if (member.state == MemberState::kBound) {
    auto marked = PatchPod(view, member, DisruptionPatch(view, member), "status", stop);
    if (!marked && HasChanged(marked.error())) return false;
    // Without permission to write the status, go on: the Job's podFailurePolicy sees how the container ended.
    if (!marked && marked.error().code() != ErrorCode::kForbidden) {
      return std::move(marked).error().with("mark Pod " + pod.ToString() + " as disrupted");
    }
    if (marked) version = std::string((*marked)->metadata.resource_version);
  }
  auto released = PatchPod(view, member, UncountPatch(member, version), "", stop);
  if (released) return true;
  if (HasChanged(released.error())) return false;
  return std::move(released).error().with("take Pod " + pod.ToString() + " out of its Job's count");
}

Result<std::shared_ptr<kube::Object>> MemberWriter::PatchPod(const GangView& view, const Member& member,
                                                             const Json& patch, const std::string& subresource,
                                                             std::stop_token stop) {
  const kube::ObjectMeta& group = view.group->metadata;
  kube::WriteOptions options;
  options.subresource = subresource;
  options.metadata_only = true;
  auto patched = client_.Patch(KindOf<kube::Pod>(), {group.ns, member.name}, kube::PatchType::kStrategicMerge, patch,
                               options, stop);
  if (patched) writes_.Note(group, KindOf<kube::Pod>(), **patched);
  return patched;
}

Status MemberWriter::Nominate(const GangView& view, const Nomination& nomination, std::stop_token stop) {
  const ObjectKey pod{view.group->metadata.ns, nomination.member->name};
  auto patched = PatchPod(view, *nomination.member, NominationPatch(view, nomination), "status", stop);
  if (!patched) {
    if (HasChanged(patched.error())) return {};
    if (patched.error().code() == ErrorCode::kInvalid) {
      // Go on if the pod was bound or deleted meanwhile; else an admission check refuses the write, and will again.
      const auto live = client_.Get<kube::Pod>(pod, stop);
      if (live ? !(*live)->spec.node_name.empty() : live.error().code() == ErrorCode::kNotFound) return {};
    }
    return std::move(patched).error().with("nominate Pod " + pod.ToString());
  }
  const bool is_marked = (*patched)->metadata.Annotation(kGangNominatedToAnnotation) == view.scheduler;
  if (!nomination.node.empty() && !is_marked && keeps_annotations_.exchange(false)) {
    log_.Warn("annotations of pods are dropped here: nominations are not renewed when the scheduler is restarted",
              {{"pod", pod.ToString()}});
  }
  return {};
}

Status MemberWriter::TellDeadline(const GangView& view, const DeadlineNote& note, std::stop_token stop) {
  auto patched = PatchPod(view, *note.member, DeadlinePatch(note), "", stop);
  if (patched || HasChanged(patched.error())) return {};
  return std::move(patched).error().with("tell Pod " + view.group->metadata.ns + "/" + note.member->name +
                                         " when it will end");
}

Status MemberWriter::Lift(const GangView& view, const LiftedGate& lifted, std::atomic<bool>& may_have_lifted,
                          std::stop_token stop) {
  const Member& member = *lifted.member;
  const std::string& node = lifted.pinned_to;
  std::optional<Pin> pin = Pin{node, node.empty() ? std::string() : account_.HostnameOf(node)};
  if (pin->hostname.empty()) pin.reset();  // Also if the node is gone, or has no hostname label.
  const ObjectKey pod{view.group->metadata.ns, member.name};
  const kube::Time now{clock_.WallNow()};
  auto patched = PatchPod(view, member, LiftPatch(view, member, now, pin, lifted.gpu), "", stop);
  // A policy may leave the note to another account (docs/gpu-sharing.md): grus-node-agent then finds it a GPU.
  if (!patched && patched.error().code() == ErrorCode::kForbidden && !lifted.gpu.empty()) {
    patched = PatchPod(view, member, LiftPatch(view, member, now, pin), "", stop);
  }
  if (!patched && patched.error().code() == ErrorCode::kNotFound) return {};
  if (patched || !IsRefusal(patched.error())) may_have_lifted = true;
  if (patched) return {};
  return std::move(patched).error().with("lift the gate of Pod " + pod.ToString());
}

}  // namespace grus
