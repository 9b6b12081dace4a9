// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_patches.h"

#include "controllers/policy/waited.h"

namespace grus {

using kube::Json;

Json NominationPatch(const GangView& view, const Nomination& nomination) {
  const Member& member = *nomination.member;
  const bool is_cleared = nomination.node.empty();
  Json patch = Json::MakeObject();
  patch["metadata"]["uid"] = member.uid;
  const std::string& told = is_cleared ? std::string() : view.scheduler;
  if (told != member.nominated_to) {
    patch["metadata"]["annotations"][kGangNominatedToAnnotation] = told.empty() ? Json() : Json(told);
  }
  patch["status"]["nominatedNodeName"] = is_cleared ? Json() : Json(nomination.node);
  return patch;
}

Json LiftPatch(const GangView& view, const Member& member, kube::Time now, const std::optional<Pin>& pin) {
  Json patch = Json::MakeObject();
  patch["metadata"]["uid"] = member.uid;
  const bool is_short = view.is_planned_by_owner && member.created_at && Waited(now, *member.created_at) < kShortGate;
  if (!is_short) patch["metadata"]["annotations"][api::kGangLiftedAnnotation] = kube::ToText(now);
  patch["spec"]["schedulingGates"].Append(Json::MakeObject({{"$patch", "delete"}, {"name", api::kGangGate}}));
  if (pin) {
    patch["metadata"]["annotations"][kGangPinnedAnnotation] = pin->node;
    patch["spec"]["nodeSelector"][kHostnameLabel] = pin->hostname;
  }
  return patch;
}

Json DisruptionPatch(const GangView& view, const Member& member) {
  Json patch = Json::MakeObject();
  patch["metadata"]["uid"] = member.uid;
  patch["metadata"]["resourceVersion"] = member.resource_version;
  patch["status"]["conditions"] = Json::MakeArray(
      {Json::MakeObject({{"type", "DisruptionTarget"},
                         {"status", "True"},
                         {"reason", "GangRolledBack"},
                         {"message", "its gang " + view.group->metadata.name + " did not come together in time"},
                         {"lastTransitionTime", kube::ToText(view.now)}})});
  return patch;
}

Json UncountPatch(const Member& member, std::string_view resource_version) {
  Json patch = Json::MakeObject();
  patch["metadata"]["uid"] = member.uid;
  patch["metadata"]["resourceVersion"] = resource_version;
  patch["metadata"]["$deleteFromPrimitiveList/finalizers"] = Json::MakeArray({kJobTracking});
  return patch;
}

}  // namespace grus
