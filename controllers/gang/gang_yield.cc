// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_yield.h"

#include <algorithm>

#include "controllers/gang/gang_needs.h"
#include "controllers/policy/job_class.h"
#include "controllers/policy/waited.h"
#include "controllers/policy/yield_words.h"
#include "controllers/queues/wording.h"

namespace grus {
namespace {

std::string GpusOf(const std::vector<const Member*>& members) {
  if (members.empty()) return "its GPUs";
  return "the GPUs of its " + Count(static_cast<std::int64_t>(members.size()), "member");
}

}  // namespace

bool ComesBackGated(const Member& member) { return member.lifted_at && member.has_controller; }

void AddGivenUp(const GangView& view, std::vector<const Member*>& end) {
  for (const Member& member : view.members) {
    if (member.is_given_up) end.push_back(&member);
  }
}

std::vector<const Member*> RollBackList(const GangView& view) {
  std::vector<const Member*> list;
  // Delete those without a node first, or the scheduler gives them the nodes of the others.
  for (const MemberState state : {MemberState::kLifted, MemberState::kBound}) {
    for (const Member& member : view.members) {
      if (member.state == state && ComesBackGated(member)) list.push_back(&member);
    }
  }
  return list;
}

Holder HolderOf(const GangView& view) {
  const kube::ObjectMeta& group = view.group->metadata;
  Holder holder;
  holder.queue_name = std::string(group.Label(api::kQueueNameLabel));
  holder.job_class = JobClassOf(group.Label(api::kWorkloadClassLabel)).value_or(JobClass::kUnattended);
  holder.comes_back = true;
  bool has_priority = false;
  std::optional<kube::Time> since;
  for (const Member& member : view.members) {
    if (!member.IsAlive()) continue;
    if (!has_priority) holder.priority = member.priority;
    has_priority = true;
    if (!member.MustStayGated()) ++holder.wanted_workers;
    const bool is_gated = member.state == MemberState::kGated;
    holder.comes_back &= is_gated ? member.has_controller : ComesBackGated(member);
    if (is_gated) continue;
    ++holder.workers;
    if (member.bound_at) since = std::min(since.value_or(*member.bound_at), *member.bound_at);
  }
  holder.min_workers = holder.workers;
  if (holder.workers == 0 || IsBackingOff(view, Count(view))) holder.wanted_workers = 0;
  if (since) holder.running_since = UnixSeconds(*since);
  return holder;
}

std::string ClassProblem(const api::PodGroup& group) {
  const std::string_view label = group.metadata.Label(api::kWorkloadClassLabel);
  if (JobClassOf(label)) return {};
  return "its label " + std::string(api::kWorkloadClassLabel) + " is \"" + std::string(label) +
         "\", which counts as Unattended: set it to Interactive, Inference or Unattended";
}

std::vector<DeadlineNote> DeadlineNotes(const GangView& view, const std::vector<const Member*>& ending) {
  std::vector<DeadlineNote> notes;
  for (const Member& member : view.members) {
    const bool will_end = view.yield && std::ranges::find(ending, &member) != ending.end();
    const std::string deadline = will_end ? kube::ToText(DeadlineOf(*view.yield)) : "";
    if (member.IsAlive() && member.told_deadline != deadline) notes.push_back({&member, deadline});
  }
  return notes;
}

std::string PreemptingMessage(const GangView& view, const std::vector<const Member*>& ending) {
  return YieldText("gives", GpusOf(ending), *view.yield) + "; its pods end at " +
         kube::ToText(DeadlineOf(*view.yield)) + ", and it then waits for room again";
}

std::string PreemptedMessage(const GangView& view, const std::vector<const Member*>& ended) {
  return YieldText("gave", GpusOf(ended), *view.yield) + "; it waits for room again";
}

}  // namespace grus
