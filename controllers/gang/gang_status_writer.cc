// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_status_writer.h"

#include <utility>

#include "controllers/frame/retry_times.h"
#include "controllers/gang/gang_status.h"

namespace grus {
namespace {

using kube::Json;

// Keeps the fields that the coscheduling plugin's own CRD has.
void KeepUpstreamFields(Json& status) {
  constexpr std::string_view kFields[] = {"phase", "occupiedBy", "running", "succeeded", "failed", "scheduleStartTime"};
  Json kept = Json::MakeObject();
  for (const std::string_view field : kFields) {
    if (const Json* value = status.Find(field)) kept[field] = *value;
  }
  status = std::move(kept);
}

}  // namespace

GangStatusWriter::GangStatusWriter(kube::Client& client, const kube::Kind& kind, kube::Informer& groups,
                                   const LeaseWatch* plugins, kube::WriteTracker& writes, kube::EventRecorder& events,
                                   const kube::Clock& clock, const kube::Log& log)
    : statuses_(client, &writes, clock),
      kind_(kind),
      groups_(groups),
      plugins_(plugins),
      events_(events),
      clock_(clock),
      log_(log) {}

void GangStatusWriter::Remember(const GangView& view, std::optional<api::PodGroupStatus> last_status) {
  memory_.With(view.group->metadata, [&](Memory& kept) { kept = {std::move(last_status), false}; });
}

void GangStatusWriter::Forget(const kube::ObjectKey& key) {
  memory_.Forget(key);
  statuses_.Forget(key);
}

GangStatusWriter::Group GangStatusWriter::WithLastStatus(const Group& group) {
  const auto last_status = memory_.Get(group->metadata).last_status;
  if (!last_status) return group;
  auto whole = std::make_shared<api::PodGroup>(*group);
  whole->status = *last_status;
  return whole;
}

std::optional<kube::Duration> GangStatusWriter::TimeUntilOthersLoseStatus() const {
  const auto until = plugins_ ? plugins_->held_until() : std::nullopt;
  if (!until) return std::nullopt;
  return *until - clock_.Now();
}

void GangStatusWriter::LeaveToOthers(const GangView& view, const api::PodGroupStatus& status) {
  const bool was_left = memory_.With(view.group->metadata, [&](Memory& kept) {
    kept.last_status = status;
    return std::exchange(kept.is_left_to_others, true);
  });
  if (was_left) return;
  events_.Record(kube::EventType::kNormal, kind_, view.group->metadata, "StatusLeftToSchedulerPlugins", "WriteStatus",
                 "the controllers of scheduler-plugins lead here (Lease " + std::string(kSchedulerPluginsLease) +
                     ") and write the status; grus goes on starting pods that have its gate, and says so in events");
}

kube::Result<Deferred> GangStatusWriter::Write(const GangView& view, api::PodGroupStatus status, std::stop_token stop) {
  const bool is_others = TimeUntilOthersLoseStatus().has_value();
  if (was_others_.exchange(is_others) != is_others) {
    log_.Info(is_others ? "the status of PodGroups is left to the controllers of scheduler-plugins"
                        : "the status of PodGroups is written again",
              {{"lease", kSchedulerPluginsLease}});
  }
  if (is_others) {
    LeaveToOthers(view, status);
    return Deferred();
  }
  const kube::ObjectKey key = view.group->metadata.Key();
  const Memory memory = memory_.Get(view.group->metadata);
  // Compare with what others wrote meanwhile, not with our last status.
  const Group cached = memory.is_left_to_others ? groups_.Get<api::PodGroup>(key) : nullptr;
  const api::PodGroupStatus& before = cached ? cached->status : view.group->status;
  if (&kind_ == &kube::KindOf<api::LegacyPodGroup>()) status.phase = LegacyPhase(status, view.group->spec.min_member);
  if (status == before) {
    statuses_.Forget(key);
    return Deferred();
  }
  StatusChange change{kube::ToJson(before), kube::ToJson(status), before.observed_generation == 0};
  const bool is_narrow = memory.last_status && !memory.is_left_to_others;
  if (is_narrow) {
    KeepUpstreamFields(change.before);
    KeepUpstreamFields(change.after);
  }
  // Write the number and time of tries before acting on them.
  const bool is_decision = status.next_attempt_time != before.next_attempt_time || status.attempts != before.attempts;
  kube::Duration patience = status.phase == "Running" && !is_decision ? kSoonWait : kube::Duration::zero();
  if (IsMinorGangChange(before, status)) patience = IsSentenceChange(before, status) ? kSentenceWait : kMinorChangeWait;
  auto written = statuses_.Write(kind_, view.group->metadata, std::move(change), patience, stop);
  if (!written && written.error().code() == kube::ErrorCode::kNotFound) return Deferred();
  if (!written) return std::move(written).error();
  if (written->deferred) return written->deferred;
  const auto* stands = static_cast<const api::PodGroup*>(written->object.get());
  const bool is_pruned = stands ? stands->status.conditions.empty() && !status.conditions.empty() : is_narrow;
  if (is_pruned) Remember(view, status);
  else if (stands && memory.is_left_to_others) Remember(view, std::nullopt);
  return Deferred();
}

}  // namespace grus
