// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/running_jobs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "clientlib/model/core_v1.h"
#include "controllers/cluster/owners.h"
#include "controllers/frame/alnair_news.h"
#include "controllers/frame/planned_event.h"
#include "controllers/measure/measured_work.h"
#include "controllers/measure/reading.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/resources.h"
#include "controllers/policy/workload_fingerprint.h"
#include "controllers/profile/co_runs.h"
#include "controllers/profile/profile_status.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using api::WorkloadProfile;
using kube::Action;
using kube::KindOf;
using kube::ObjectKey;

// A delay below kSampleEvery, the same for a job in every process, and spread evenly over many jobs.
kube::Duration SpreadOf(const std::string& uid) { return kSampleEvery / 3600 * (SeriesOf(uid) % 3600); }

std::string_view ProfileNamedBy(const kube::ConstObject& job) {
  const auto* read = static_cast<const ElasticHorovodJob*>(job.get());
  return read != nullptr && read->status.profile ? std::string_view(read->status.profile->name) : std::string_view();
}

std::string_view TypeOf(const kube::Node& node) { return node.metadata.Label(kGpuProductLabel); }

ObjectKey KeyOf(const std::string& job) {
  const std::size_t slash = job.find('/');
  return slash == std::string::npos ? ObjectKey{} : ObjectKey{job.substr(0, slash), job.substr(slash + 1)};
}

// What a user of the job, or of the profile, should know of the sample. `is_first`: the last one did not drift.
std::vector<PlannedEvent> EventsOf(const ElasticHorovodJob& job, const WorkloadProfile& profile,
                                   const JudgedSpeed& judged, bool is_first) {
  constexpr char kAction[] = "SampleSpeed";
  const std::optional<api::ProfileDrift>& before = profile.status.drift;
  const std::string key = job.metadata.Key().ToString();
  const bool was_it = before && before->job == key;
  const api::ThroughputUnit unit = profile.spec.throughput_unit;
  if (judged.verdict == SpeedVerdict::kDrifts && is_first && !(was_it && before->config == judged.drift->config)) {
    const std::string note = DriftMessage(*judged.drift, unit);
    if (!IsSlower(*judged.drift)) return {{kube::EventType::kNormal, kReasonFaster, kAction, note}};
    return {{kube::EventType::kWarning, kReasonSlower, kAction, note}};
  }
  if (judged.verdict == SpeedVerdict::kReplaces) {
    return {{kube::EventType::kNormal, kReasonMeasuredAgain, kAction,
             DriftMessage(*judged.drift, unit) + ", for the second time: the profile now has this speed"}};
  }
  if (before && !judged.edit.drift) {
    return {{kube::EventType::kNormal, kReasonAgrees, kAction,
             key + " runs as fast as expected on " + ToText(before->config)}};
  }
  return {};
}

}  // namespace

RunningJobs::RunningJobs(kube::Client& client, RunningJobsCaches caches, ProfileStore& store,
                         kube::EventRecorder& events, const kube::Clock& clock, const kube::Log& log)
    : caches_(caches),
      store_(store),
      events_(events),
      clock_(clock),
      log_(log),
      pods_by_job_(caches.pods.AddIndex(JobKeysOf)),
      neighbours_(caches.pods, caches.jobs, caches.profiles),
      samples_(client, clock) {}

void RunningJobs::FeedQueue(kube::WorkQueue& queue) {
  feed_.Open(queue);
  caches_.jobs.AddHandler([this](const kube::Change& change, bool is_initial) {
    const auto has_profile = [](const kube::ConstObject& job) {
      return job && IsProfiled(static_cast<const ElasticHorovodJob&>(*job));
    };
    if (!has_profile(change.before) && !has_profile(change.after)) return;
    if (IsOnlyForAlnair(KindOf<ElasticHorovodJob>(), change)) return;
    const kube::ObjectMeta& job = change.Any().metadata;
    if (is_initial) memory_.With(job, [](Memory& memory) { memory.ran_before = true; });
    feed_.Add(job.Key(), News::kNow, true);
  });
  // What a neighbour runs is known, or not any more.
  caches_.jobs.AddHandler([this](const kube::Change& change, bool is_initial) {
    if (is_initial || ProfileNamedBy(change.before) == ProfileNamedBy(change.after)) return;
    const auto pods = caches_.pods.ByIndex<kube::Pod>(pods_by_job_, change.Any().metadata.Key().ToString());
    for (const auto& pod : pods) {
      for (const ObjectKey& job : neighbours_.JobsBeside(*pod)) feed_.Add(job, News::kSoon, true);
    }
  });
  caches_.pods.AddHandler([this](const kube::Change& change, bool is_initial) {
    if (is_initial) return;
    for (const ObjectKey& job : neighbours_.JobsBeside(change)) feed_.Add(job, News::kSoon, true);
  });
}

kube::Result<Action> RunningJobs::Reconcile(const ObjectKey& key, std::stop_token stop) {
  kube::Result<Action> action = Pass(key, std::move(stop));
  if (const std::optional<ObjectKey> next = samples_.Next()) feed_.Add(*next, News::kNow, true);
  return action;
}

kube::Result<Action> RunningJobs::Pass(const ObjectKey& key, std::stop_token stop) {
  const Job job = caches_.jobs.Get<ElasticHorovodJob>(key);
  if (!job || !IsProfiled(*job)) {
    samples_.End(key);
    memory_.Forget(key);
    return Action::AwaitChange();
  }
  const std::string& profile = job->status.profile->name;
  if (const auto used = caches_.profiles.Get<WorkloadProfile>({"", profile});
      used && !IsOf(*used, *job, store_.trust())) {  // It only uses what another workload has measured.
    samples_.End(key);
    memory_.Forget(key);
    return Action::After(kSampleEvery);
  }
  const std::optional<RunningSetting> setting = SettingNow(*job);
  const kube::TimePoint now = clock_.Now();
  bool is_other = false;  // Also if another job of this name is remembered: it has no setting yet.
  const Memory memory = memory_.With(job->metadata, [&](Memory& kept) {
    is_other = !setting || kept.setting != setting || kept.profile != profile;
    if (!is_other) return kept;
    const bool ran_before = kept.ran_before;
    kept = Memory{};
    kept.ran_before = ran_before && !setting;  // Until it is known what the job runs on.
    kept.setting = setting;
    kept.profile = profile;
    kept.due = now + (ran_before ? SpreadOf(job->metadata.uid) : kSettle);
    return kept;
  });
  if (is_other) samples_.End(key);
  if (!setting) return Action::After(kSettle);
  if (now < memory.due) return Action::After(memory.due - now);
  if (const SpeedSource* sample = samples_.Find(key))
    return Look(job, *setting, *sample, memory.until, std::move(stop));
  if (!DoesSpeedCount(*setting, profile)) return Action::After(kSlice);  // A measurement may come.
  if (!samples_.Begin(key, {key.ns, setting->launcher}, setting->launcher_uid)) return Action::After(kSampleEvery);
  memory_.With(job->metadata, [&](Memory& kept) { kept.until = now + kSlice; });
  return Action::After(kLookEvery);
}

kube::Result<Action> RunningJobs::Look(const Job& job, const RunningSetting& setting, const SpeedSource& sample,
                                       kube::TimePoint until, std::stop_token stop) {
  const ObjectKey key = job->metadata.Key();
  const SpeedObservation seen = sample.Look();
  const std::string refusal = sample.Refusal();
  const kube::TimePoint now = clock_.Now();
  const bool is_known = seen.state == SpeedState::kPrecise && seen.span >= kLeastSample;
  const bool is_over = now >= until || sample.HasEnded() || !refusal.empty();
  if (!is_known && !is_over) return Action::After(std::min(kLookEvery, until - now));

  samples_.End(key);
  const bool tells_refusal = memory_.With(job->metadata, [&](Memory& memory) {
    memory.due = now + kSampleEvery;
    return !refusal.empty() && !std::exchange(memory.is_refusal_told, true);
  });
  if (tells_refusal) {
    log_.Warn("the speed of a running job cannot be read", {{"job", key.ToString()}, {"reason", refusal}});
  }
  if (refusal.empty()) {
    // Not retried: the next sample will show the same, and until then the profile stays as it is.
    if (const kube::Status done = Conclude(job, setting, seen, std::move(stop)); !done) {
      log_.Warn("the speed of a running job could not be saved",
                {{"job", key.ToString()}, {"error", done.error().message()}});
    }
  }
  return Action::After(kSampleEvery);
}

kube::Status RunningJobs::Conclude(const Job& job, const RunningSetting& setting, const SpeedObservation& seen,
                                   std::stop_token stop) {
  const std::string& name = job->status.profile->name;
  const auto profile = caches_.profiles.Get<WorkloadProfile>({"", name});
  if (!profile) return {};
  const api::ThroughputUnit unit = profile->spec.throughput_unit;
  const std::optional<api::Measurement> measured = MeasurementOfRunning(seen, setting.config, profile->spec);
  if (!measured) {
    log_.Debug("the log of a running job contains no speed", {{"job", job->metadata.Key().ToString()}});
    return {};
  }
  const ObservedSpeed observed{job->metadata.Key().ToString(), setting.config, *measured, kube::Time{clock_.WallNow()}};
  if (!setting.neighbours.AreNone()) return ConcludeCoRun(*profile, setting, observed, std::move(stop));
  std::shared_ptr<const WorkloadProfile> judged_profile = profile;
  JudgedSpeed judged = JudgeSpeed(*profile, observed, unit, ContextOf(*job, *profile, setting, *measured));
  const bool has_news = !judged.edit.points.empty() || judged.edit.drift != profile->status.drift;
  if (has_news) {
    judged_profile = nullptr;
    const kube::Status saved = store_.Edit(
        name,
        [&](const WorkloadProfile& live) {
          judged_profile = std::make_shared<WorkloadProfile>(live);
          judged = JudgeSpeed(live, observed, unit, ContextOf(*job, live, setting, *measured));
          return judged.edit;
        },
        stop);
    if (!saved || !judged_profile) return saved;  // Not saved, or the profile was deleted meanwhile.
  }
  const bool is_first = memory_.With(job->metadata, [&](Memory& memory) {
    memory.drifted = judged.verdict == SpeedVerdict::kDrifts ? measured : std::nullopt;
    return std::exchange(memory.verdict, judged.verdict) != SpeedVerdict::kDrifts;
  });
  const std::vector<PlannedEvent> events = EventsOf(*job, *judged_profile, judged, is_first);
  Tell(events, events_, log_, KindOf<ElasticHorovodJob>(), job->metadata, "job");
  Tell(events, events_, log_, KindOf<WorkloadProfile>(), judged_profile->metadata, "profile");
  return {};
}

kube::Status RunningJobs::ConcludeCoRun(const WorkloadProfile& profile, const RunningSetting& setting,
                                        const ObservedSpeed& observed, std::stop_token stop) {
  const bool may_be_untyped = HasOneGpuType();
  const auto edit_of = [&](const WorkloadProfile& known) {
    ProfileEdit edit;
    edit.drift = known.status.drift;
    const api::ProfilePoint* alone = PointFor(known.spec, setting.config, may_be_untyped);
    if (alone == nullptr || known.spec.throughput_unit != profile.spec.throughput_unit) return edit;
    kube::Result<api::CoRun> run = CoRunOf(observed.measured, alone->measured, setting.neighbours.Partner(),
                                           setting.config.gpu_type, observed.time);
    if (run) edit.co_runs.push_back(*std::move(run));
    else log_.Debug("no speed beside others", {{"job", observed.job}, {"reason", run.error().message()}});
    return edit;
  };
  if (edit_of(profile).co_runs.empty()) return {};
  return store_.Edit(profile.metadata.name, edit_of, std::move(stop));
}

DriftContext RunningJobs::ContextOf(const ElasticHorovodJob& job, const WorkloadProfile& profile,
                                    const RunningSetting& setting, const api::Measurement& measured) const {
  DriftContext context;
  context.may_be_untyped = HasOneGpuType();
  const std::optional<api::ProfileDrift>& said = profile.status.drift;
  const ObjectKey own = job.metadata.Key(), other = said ? KeyOf(said->job) : ObjectKey{};
  const std::int32_t said_gpus = said ? said->config.gpus : 0;
  const std::optional<api::Measurement> drifted = memory_.Get(job.metadata).drifted;
  context.is_confirmed = drifted && DoAgree(*drifted, measured).value_or(false);
  memory_.ForEach([&](const ObjectKey& key, const Memory& others) {
    if (key == own || others.profile != profile.metadata.name || !others.setting) return;
    const bool agrees = others.verdict == SpeedVerdict::kAgrees && others.setting->config == setting.config;
    if (agrees) context.is_confirmed = false;
    // kNotComparable: this process has not sampled the job yet, so trust the drift in the status.
    const bool stands = others.verdict == SpeedVerdict::kDrifts || others.verdict == SpeedVerdict::kNotComparable;
    // Beside others it cannot be seen to agree again.
    const bool is_there = others.setting->config.gpus == said_gpus && others.setting->neighbours.AreNone();
    if (said && key == other && stands && is_there) context.does_other_stand = true;
  });
  return context;
}

bool RunningJobs::HasOneGpuType() const {
  std::set<std::string_view> types;
  const auto nodes = caches_.nodes.List<kube::Node>();
  for (const auto& node : nodes) {
    const auto is_of_gpus = [](const auto& amount) { return amount.first == kGpuResource || IsGpuPart(amount.first); };
    if (std::ranges::any_of(node->status.allocatable, is_of_gpus)) types.insert(TypeOf(*node));
  }
  return types.size() == 1;
}

std::optional<RunningSetting> RunningJobs::SettingNow(const ElasticHorovodJob& job) const {
  const auto pods = caches_.pods.ByIndex<kube::Pod>(pods_by_job_, job.metadata.Key().ToString());
  std::optional<RunningSetting> setting = SettingOf(job, pods, [&](const std::string& name) {
    const auto node = caches_.nodes.Get<kube::Node>({"", name});
    return node ? std::string(TypeOf(*node)) : std::string();
  });
  if (setting) setting->neighbours = neighbours_.Of(job, pods);
  return setting;
}

bool RunningJobs::DoesSpeedCount(const RunningSetting& setting, const std::string& profile) const {
  if (setting.neighbours.AreNone()) return true;
  if (setting.neighbours.Partner().empty()) return false;
  const auto known = caches_.profiles.Get<WorkloadProfile>({"", profile});
  return known && PointFor(known->spec, setting.config, HasOneGpuType()) != nullptr;
}

}  // namespace grus
