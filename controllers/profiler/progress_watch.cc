// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/progress_watch.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "controllers/cluster/owners.h"
#include "controllers/frame/planned_event.h"
#include "controllers/policy/size_ladder.h"
#include "controllers/policy/worker_devices.h"
#include "controllers/policy/workload_fingerprint.h"
#include "controllers/profiler/progress_text.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using kube::Action;
using kube::ObjectKey;

constexpr std::int64_t kMostBytes = 256 << 10;  // Of one look.
constexpr std::int64_t kTailLines = 100;
constexpr kube::Duration kCatchUp = std::chrono::milliseconds(100);
constexpr kube::Duration kFirstLook = std::chrono::seconds(10);  // After the launcher began: it has to print something.

bool HasEnded(const ElasticHorovodJob& job) { return job.status.completion_time.has_value(); }

// Its TrialJob reads the log itself, and says more of it.
bool IsTrial(const ElasticHorovodJob& job) {
  return std::ranges::any_of(job.metadata.owner_references, [](const auto& owner) { return owner.kind == "TrialJob"; });
}

// All that a pass reads of a job.
bool LooksSame(const ElasticHorovodJob& a, const ElasticHorovodJob& b) {
  return a.metadata.uid == b.metadata.uid && a.status.phase == b.status.phase &&
         a.status.replicas.ready == b.status.replicas.ready && HasEnded(a) == HasEnded(b) &&
         a.metadata.is_being_deleted() == b.metadata.is_being_deleted() &&
         PushedTextsOf(a.metadata) == PushedTextsOf(b.metadata);
}

bool IsLauncher(const kube::Pod& pod) { return pod.metadata.Label(kRoleLabel) == "launcher"; }

bool IsPush(const kube::Pod* before, const kube::Pod* after) {
  return after != nullptr && IsLauncher(*after) &&
         PushedTextsOf(after->metadata) != (before != nullptr ? PushedTextsOf(before->metadata) : PushedTexts());
}

// So that jobs that started together are not read together.
kube::Duration SpreadOf(const std::string& uid) {
  return ProgressWatch::kEvery / 100 * (std::hash<std::string>{}(uid) % 20);
}

}  // namespace

ProgressWatch::ProgressWatch(kube::Client& client, ProgressCaches caches, const ClusterAccount& account,
                             kube::EventRecorder& events, const kube::Clock& clock, const kube::Log& log)
    : caches_(caches),
      account_(account),
      client_(client),
      events_(events),
      clock_(clock),
      log_(log),
      pods_by_job_(caches.pods.AddIndex(JobKeysOf)),
      status_(client, nullptr, clock) {}

void ProgressWatch::FeedQueue(kube::WorkQueue& queue) {
  feed_.Open(queue);
  caches_.jobs.AddHandler([this](const kube::Change& change, bool) {
    const auto* before = static_cast<const ElasticHorovodJob*>(change.before.get());
    const auto* after = static_cast<const ElasticHorovodJob*>(change.after.get());
    if (before != nullptr && after != nullptr && LooksSame(*before, *after)) return;
    feed_.Add(change.Any().metadata.Key(), News::kNow, true);
  });
  caches_.pods.AddHandler([this](const kube::Change& change, bool) {
    const auto* before = static_cast<const kube::Pod*>(change.before.get());
    const auto* after = static_cast<const kube::Pod*>(change.after.get());
    if (!IsPush(before, after)) return;
    if (const auto job = JobOf(after->metadata)) feed_.Add(*job, News::kNow, true);
  });
}

kube::Result<Action> ProgressWatch::Reconcile(const ObjectKey& key, std::stop_token stop) {
  const Job job = caches_.jobs.Get<ElasticHorovodJob>(key);
  if (!job || job->metadata.is_being_deleted() || IsTrial(*job)) {
    launchers_.Forget(key);
    status_.Forget(key);
    ForgetSteps(key);
    return Action::AwaitChange();
  }
  const auto pod = job->status.phase == "Running" ? RunningLauncher(key) : nullptr;
  if (pod == nullptr) {
    ForgetSteps(key);
    if (HasEnded(*job)) launchers_.Forget(key);
    if (!job->status.progress) return Action::AwaitChange();
    const api::Progress ended = EndedProgress(*job->status.progress, job->status.phase == "Succeeded");
    return Write(job, ended, job->status.phase == "Running" ? kEvery : kube::Duration::max(), std::move(stop));
  }
  const std::shared_ptr<Launcher> launcher = LauncherOf(job, *pod);
  NoteSize(*job, *launcher);
  NotePush(*job, *pod, *launcher);
  if (launcher->pushed.Counts(clock_.Now())) return Say(job, *launcher, kEvery, std::move(stop));
  const kube::Duration wait = launcher->due - clock_.Now();
  if (launcher->is_resized) return Say(job, *launcher, std::max(wait, kCatchUp), std::move(stop));
  return wait > kube::Duration::zero() ? Action::After(wait) : Look(job, *pod, *launcher, std::move(stop));
}

std::shared_ptr<ProgressWatch::Launcher> ProgressWatch::LauncherOf(const Job& job, const kube::Pod& pod) {
  return launchers_.With(job->metadata.Key(), pod.metadata.uid, [&](std::shared_ptr<Launcher>& kept) {
    if (!kept) {
      const StatedTotals stated = TotalsOf(job->spec.launcher.python_command);
      kept = std::make_shared<Launcher>(Launcher{.stated = stated,
                                                 .reader = ProgressReader(stated),
                                                 .pushed = PushedProgress(PushedTextsOf(job->metadata)),
                                                 .due = clock_.Now() + kFirstLook + SpreadOf(pod.metadata.uid)});
    }
    return kept;
  });
}

void ProgressWatch::NoteSize(const ElasticHorovodJob& job, Launcher& launcher) {
  const auto ratio_of = [&](std::int32_t from, std::int32_t to) { return RatioOf(job, from, to); };
  const std::int32_t workers = job.status.replicas.ready;
  for (ProgressTrack* track : {&launcher.track, &launcher.pushed.track()}) {
    launcher.is_resized = track->Resize(workers, {clock_.WallNow()}, ratio_of) || launcher.is_resized;
  }
}

SpeedRatio ProgressWatch::RatioOf(const ElasticHorovodJob& job, std::int32_t from, std::int32_t to) {
  const std::optional<api::JobProfile>& said = job.status.profile;
  const int gpus = DevicesOf(job.spec.workers).count;
  const auto profile = caches_.profiles != nullptr && said && gpus > 0
                           ? caches_.profiles->Get<api::WorkloadProfile>({"", said->name})
                           : nullptr;
  if (!profile || !IsFor(*profile, job.metadata.ns)) return RatioBetween(from, to);
  const SpeedTables::Table table =
      speed_tables_.Of(*profile, GpuTypeOf(job), gpus, std::max({job.status.replicas.max, from, to}),
                       std::max(gpus, account_.MostDevicesOnANode()));
  if (table->empty()) return RatioBetween(from, to);
  return RatioBetween(SpeedAt(*table, from * gpus), SpeedAt(*table, to * gpus));
}

void ProgressWatch::NotePush(const ElasticHorovodJob& job, const kube::Pod& pod, Launcher& launcher) {
  const auto refusal = launcher.pushed.Look(PushedTextsOf(job.metadata), PushedTextsOf(pod.metadata), launcher.stated,
                                            clock_.WallNow(), clock_.Now());
  if (!refusal) return;
  Tell({{kube::EventType::kWarning, "ProgressRefused", "ReadProgress", *refusal}}, events_, log_,
       kube::KindOf<ElasticHorovodJob>(), job.metadata, "job");
}

std::shared_ptr<const kube::Pod> ProgressWatch::RunningLauncher(const ObjectKey& job) const {
  for (const auto& pod : caches_.pods.ByIndex<kube::Pod>(pods_by_job_, job.ToString())) {
    if (IsLauncher(*pod) && pod->status.phase.view() == "Running" && !pod->metadata.is_being_deleted()) {
      return pod;
    }
  }
  return nullptr;
}

kube::Result<Action> ProgressWatch::Look(const Job& job, const kube::Pod& pod, Launcher& launcher,
                                         std::stop_token stop) {
  if (!std::exchange(launcher.has_turn, true)) {
    launcher.due = TakeTurn();
    if (const kube::Duration wait = launcher.due - clock_.Now(); wait > kube::Duration::zero())
      return Action::After(wait);
  }
  launcher.has_turn = false;
  const ObjectKey key = job->metadata.Key();
  launcher.due = clock_.Now() + kEvery;
  const kube::Status read = ReadLog({key.ns, pod.metadata.name}, launcher, stop);
  if (!read) {
    if (!std::exchange(launcher.is_failure_told, true)) {
      log_.Warn("the progress of a job cannot be read", {{"job", key.ToString()}, {"error", read.error().message()}});
    }
    return Action::After(kEvery);
  }
  launcher.is_failure_told = false;
  if (launcher.lags) {  // What was read is old. The next look reads the end.
    launcher.due = clock_.Now();
    return Action::After(kCatchUp);
  }
  return Say(job, launcher, kEvery, std::move(stop));
}

kube::Result<Action> ProgressWatch::Say(const Job& job, Launcher& launcher, kube::Duration next, std::stop_token stop) {
  std::optional<Position> where = launcher.reader.Where();
  const std::optional<Position>& pushed = launcher.pushed.where();
  const bool is_pushed = pushed && (launcher.pushed.Counts(clock_.Now()) || !where || where->time <= pushed->time);
  if (is_pushed) where = pushed;
  if (!where) {
    launcher.is_resized = false;
    return Action::After(next);
  }
  if (where->step) {
    std::lock_guard lock(mutex_);
    steps_[job->metadata.Key()] = {*where->step, clock_.Now()};
  }
  std::optional<Eta> eta = where->done ? (is_pushed ? launcher.pushed.track() : launcher.track).Ends() : std::nullopt;
  if (eta && eta->latest < clock_.WallNow()) eta.reset();  // It hangs, or does something else.
  const api::Progress before = job->status.progress ? *job->status.progress : api::Progress();
  const api::Progress progress = ProgressOf(*where, eta, before);
  kube::Result<Action> said = Action::After(next);
  if (IsNews(before, progress)) said = Write(job, progress, next, std::move(stop));
  if (said) launcher.is_resized = false;
  return said;
}

kube::Status ProgressWatch::ReadLog(const ObjectKey& pod, Launcher& launcher, std::stop_token stop) {
  kube::PodLogOptions what{
      .container = "launcher", .timestamps = true, .limit_bytes = kMostBytes, .timeout = kPatience};
  if (const auto position = launcher.reader.position()) what.since = kube::Time{*position};
  const bool is_tail = std::exchange(launcher.lags, false);
  if (is_tail) what.tail_lines = kTailLines;
  auto stream = client_.PodLog(pod, what, stop);
  if (!stream) return std::move(stream).error();
  launcher.reader.Resume();
  const kube::TimePoint until = clock_.Now() + kPatience;
  std::int64_t size = 0;
  for (;;) {
    auto bytes = (*stream)->Read(until, stop);
    if (!bytes) return std::move(bytes).error();
    if (bytes->empty()) break;
    size += static_cast<std::int64_t>(bytes->size());
    launcher.reader.Add(*bytes, [&](const Position& at) { launcher.track.Add(at); });
  }
  launcher.lags = size >= kMostBytes && !is_tail;
  return {};
}

kube::Result<Action> ProgressWatch::Write(const Job& job, const api::Progress& progress, kube::Duration next,
                                          std::stop_token stop) {
  const Action then = next == kube::Duration::max() ? Action::AwaitChange() : Action::After(next);
  api::ElasticHorovodJobStatus status = job->status;
  status.progress = progress;
  const auto written = status_.Write(*job, status, kube::Duration::zero(), std::move(stop));
  if (written) return then;
  const kube::ErrorCode code = written.error().code();
  if (code == kube::ErrorCode::kNotFound || code == kube::ErrorCode::kInvalid) return then;  // It is gone.
  return std::move(written).error();
}

std::map<ObjectKey, double> ProgressWatch::Steps() const {
  std::map<ObjectKey, double> steps;
  std::lock_guard lock(mutex_);
  for (const auto& [job, step] : steps_) {
    if (clock_.Now() - step.read <= kStepsStay) steps[job] = step.step;
  }
  return steps;
}

void ProgressWatch::ForgetSteps(const ObjectKey& job) {
  std::lock_guard lock(mutex_);
  steps_.erase(job);
}

// When a log may be read next; that time is taken then.
kube::TimePoint ProgressWatch::TakeTurn() {
  constexpr auto kTurn = std::chrono::duration_cast<kube::Duration>(std::chrono::duration<double>(1 / kReadsPerSecond));
  std::lock_guard lock(mutex_);
  const kube::TimePoint turn = std::max(clock_.Now(), next_turn_);
  next_turn_ = turn + kTurn;
  return turn;
}

}  // namespace grus
