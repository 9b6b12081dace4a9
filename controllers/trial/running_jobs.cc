// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/running_jobs.h"

#include <algorithm>
#include <set>

#include "clientlib/model/core_v1.h"
#include "controllers/cluster/owners.h"
#include "controllers/measure/reading.h"
#include "controllers/policy/resources.h"
#include "controllers/policy/workload_fingerprint.h"
#include "controllers/trial/profile_status.h"
#include "controllers/trial/trial_numbers.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using api::WorkloadProfile;
using kube::Action;
using kube::KindOf;
using kube::ObjectKey;

// A delay below kSampleEvery, the same for a job in every process, and spread evenly over many jobs.
kube::Duration SpreadOf(const std::string& uid) { return kSampleEvery / 3600 * (SeriesOf(uid) % 3600); }

std::string_view TypeOf(const kube::Node& node) { return node.metadata.Label(kGpuProductLabel); }

ObjectKey KeyOf(const std::string& job) {
  const std::size_t slash = job.find('/');
  return slash == std::string::npos ? ObjectKey{} : ObjectKey{job.substr(0, slash), job.substr(slash + 1)};
}

}  // namespace

RunningJobs::RunningJobs(kube::Client& client, RunningJobsCaches caches, ProfileStore& store,
                         kube::EventRecorder& events, const kube::Clock& clock, const kube::Log& log)
    : client_(client),
      caches_(caches),
      store_(store),
      events_(events),
      clock_(clock),
      log_(log),
      pods_by_job_(caches.pods.AddIndex(JobKeysOf)) {}

void RunningJobs::FeedQueue(kube::WorkQueue& queue) {
  queue_ = &queue;
  caches_.jobs.AddHandler([this, &queue](const kube::Change& change, bool is_initial) {
    const auto has_profile = [](const kube::ConstObject& job) {
      return job && IsProfiled(static_cast<const ElasticHorovodJob&>(*job));
    };
    if (!has_profile(change.before) && !has_profile(change.after)) return;
    const ObjectKey key = change.Any().metadata.Key();
    if (is_initial) {
      std::lock_guard lock(mutex_);
      Memory& memory = memory_[key];
      memory.uid = change.Any().metadata.uid;
      memory.ran_before = true;
    }
    queue.Add(key, kube::Priority::kLow);
  });
}

kube::Result<Action> RunningJobs::Reconcile(const ObjectKey& key, std::stop_token stop) {
  kube::Result<Action> action = Pass(key, std::move(stop));
  std::optional<ObjectKey> next;
  {
    std::lock_guard lock(mutex_);
    if (samples_ < kMostSamples && !line_.empty()) next = line_.front();
  }
  if (next) queue_->Add(*next, kube::Priority::kLow);
  return action;
}

kube::Result<Action> RunningJobs::Pass(const ObjectKey& key, std::stop_token stop) {
  const Job job = caches_.jobs.Get<ElasticHorovodJob>(key);
  if (!job || !IsProfiled(*job)) {
    Forget(key);
    return Action::AwaitChange();
  }
  const std::optional<RunningSetting> setting = SettingNow(*job);
  const kube::TimePoint now = clock_.Now();
  std::unique_ptr<LogSample> ended;  // Destroyed without the lock.
  {
    std::lock_guard lock(mutex_);
    Memory& memory = memory_[key];
    const std::string& profile = job->status.profile->name;
    const bool is_same = memory.uid == job->metadata.uid && memory.setting == setting && memory.profile == profile;
    if (!is_same || !setting) {
      ended = EndSampleLocked(key, memory);
      const bool ran_before = memory.uid == job->metadata.uid && memory.ran_before;
      memory = Memory{};
      memory.uid = job->metadata.uid;
      memory.ran_before = ran_before && !setting;  // Until it is known what the job runs on.
      memory.setting = setting;
      memory.profile = profile;
      memory.due = now + (ran_before ? SpreadOf(memory.uid) : kSettle);
    }
    if (!setting) return Action::After(kSettle);
    if (now < memory.due) return Action::After(memory.due - now);
    if (!memory.sample) {
      if (!TakesTurnLocked(key)) return Action::After(kSampleEvery);
      memory.until = now + kSlice;
      memory.sample =
          std::make_unique<LogSample>(client_, clock_, ObjectKey{key.ns, setting->launcher}, setting->launcher_uid);
      return Action::After(kLookEvery);
    }
  }
  return Sample(job, *setting, std::move(stop));
}

kube::Result<Action> RunningJobs::Sample(const Job& job, const RunningSetting& setting, std::stop_token stop) {
  const ObjectKey key = job->metadata.Key();
  LogSample* sample = nullptr;  // Passes of one key do not overlap, and nobody else ends it.
  kube::TimePoint until;
  {
    std::lock_guard lock(mutex_);
    sample = memory_[key].sample.get();
    until = memory_[key].until;
  }
  const LogSample::Seen seen = sample->Look();
  const kube::TimePoint now = clock_.Now();
  const bool is_known = seen.speed.state == SpeedState::kPrecise && seen.speed.span >= kLeastSample;
  const bool is_over = now >= until || seen.has_ended || !seen.refusal.empty();
  if (!is_known && !is_over) return Action::After(std::min(kLookEvery, until - now));

  std::unique_ptr<LogSample> ended;
  bool tells_refusal = false;
  {
    std::lock_guard lock(mutex_);
    Memory& memory = memory_[key];
    ended = EndSampleLocked(key, memory);
    memory.due = now + kSampleEvery;
    tells_refusal = !seen.refusal.empty() && !memory.is_refusal_told;
    memory.is_refusal_told |= tells_refusal;
  }
  ended.reset();
  if (tells_refusal) {
    log_.Warn("the speed of a running job cannot be read", {{"job", key.ToString()}, {"reason", seen.refusal}});
  }
  if (seen.refusal.empty()) {
    // Not retried: the next sample will show the same, and until then the profile stays as it is.
    if (const kube::Status done = Conclude(job, setting, seen.speed, std::move(stop)); !done) {
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
  const std::optional<api::Measurement> measured = MeasurementOfRunning(seen, setting.config, unit);
  if (!measured) {
    log_.Debug("the log of a running job contains no speed", {{"job", job->metadata.Key().ToString()}});
    return {};
  }
  const ObservedSpeed observed{job->metadata.Key().ToString(), setting.config, *measured, kube::Time{clock_.WallNow()}};
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
  bool is_first = false;
  {
    std::lock_guard lock(mutex_);
    Memory& memory = memory_[job->metadata.Key()];
    is_first = memory.verdict != SpeedVerdict::kDrifts;
    memory.verdict = judged.verdict;
    memory.drifted = judged.verdict == SpeedVerdict::kDrifts ? measured : std::nullopt;
  }
  Tell(*job, *judged_profile, judged, is_first);
  return {};
}

void RunningJobs::Tell(const ElasticHorovodJob& job, const WorkloadProfile& profile, const JudgedSpeed& judged,
                       bool is_first) {
  const std::optional<api::ProfileDrift>& before = profile.status.drift;
  const bool was_it = before && before->job == job.metadata.Key().ToString();
  const api::ThroughputUnit unit = profile.spec.throughput_unit;
  std::string reason, note;
  kube::EventType type = kube::EventType::kNormal;
  if (judged.verdict == SpeedVerdict::kDrifts && is_first && !(was_it && before->config == judged.drift->config)) {
    reason = IsSlower(*judged.drift) ? kReasonSlower : kReasonFaster;
    note = DriftMessage(*judged.drift, unit);
    if (IsSlower(*judged.drift)) type = kube::EventType::kWarning;
  } else if (judged.verdict == SpeedVerdict::kReplaces) {
    reason = kReasonMeasuredAgain;
    note = DriftMessage(*judged.drift, unit) + ", for the second time: the profile now has this speed";
  } else if (before && !judged.edit.drift) {
    reason = kReasonAgrees;
    note = job.metadata.Key().ToString() + " runs as fast as expected on " + ToText(before->config);
  }
  if (reason.empty()) return;
  log_.Info(note, {{"job", job.metadata.Key().ToString()}, {"profile", profile.metadata.name}, {"reason", reason}});
  events_.Record(type, KindOf<ElasticHorovodJob>(), job.metadata, reason, "SampleSpeed", note);
  events_.Record(type, KindOf<WorkloadProfile>(), profile.metadata, reason, "SampleSpeed", note);
}

DriftContext RunningJobs::ContextOf(const ElasticHorovodJob& job, const WorkloadProfile& profile,
                                    const RunningSetting& setting, const api::Measurement& measured) {
  DriftContext context;
  context.may_be_untyped = HasOneGpuType();
  const std::optional<api::ProfileDrift>& said = profile.status.drift;
  const ObjectKey own = job.metadata.Key(), other = said ? KeyOf(said->job) : ObjectKey{};
  const std::int32_t said_gpus = said ? said->config.gpus : 0;
  std::lock_guard lock(mutex_);
  const Memory& memory = memory_[own];
  context.is_confirmed = memory.drifted && DoAgree(*memory.drifted, measured).value_or(false);
  for (const auto& [key, others] : memory_) {
    if (key == own || others.profile != profile.metadata.name || !others.setting) continue;
    const bool agrees = others.verdict == SpeedVerdict::kAgrees && others.setting->config == setting.config;
    if (agrees) context.is_confirmed = false;
    // kNotComparable: this process has not sampled the job yet, so trust the drift in the status.
    const bool stands = others.verdict == SpeedVerdict::kDrifts || others.verdict == SpeedVerdict::kNotComparable;
    const bool is_there = others.setting->config.gpus == said_gpus;
    if (said && key == other && stands && is_there) context.does_other_stand = true;
  }
  return context;
}

bool RunningJobs::HasOneGpuType() const {
  std::set<std::string_view> types;
  const auto nodes = caches_.nodes.List<kube::Node>();
  for (const auto& node : nodes) {
    if (kube::FindResource(node->status.allocatable, kGpuResource)) types.insert(TypeOf(*node));
  }
  return types.size() == 1;
}

std::optional<RunningSetting> RunningJobs::SettingNow(const ElasticHorovodJob& job) const {
  const auto pods = caches_.pods.ByIndex<kube::Pod>(pods_by_job_, job.metadata.Key().ToString());
  return SettingOf(job, pods, [&](const std::string& name) {
    const auto node = caches_.nodes.Get<kube::Node>({"", name});
    return node ? std::string(TypeOf(*node)) : std::string();
  });
}

void RunningJobs::Forget(const ObjectKey& key) {
  std::unique_ptr<LogSample> ended;
  std::lock_guard lock(mutex_);
  const auto found = memory_.find(key);
  if (found == memory_.end()) return;
  ended = EndSampleLocked(key, found->second);
  memory_.erase(found);
}

std::unique_ptr<LogSample> RunningJobs::EndSampleLocked(const ObjectKey& key, Memory& memory) {
  std::unique_ptr<LogSample> sample = std::move(memory.sample);
  if (sample) --samples_;
  std::erase(line_, key);
  return sample;
}

bool RunningJobs::TakesTurnLocked(const ObjectKey& key) {
  if (samples_ < kMostSamples) {
    ++samples_;
    std::erase(line_, key);
    return true;
  }
  if (std::find(line_.begin(), line_.end(), key) == line_.end()) line_.push_back(key);
  return false;
}

}  // namespace grus
