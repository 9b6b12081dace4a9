// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/progress_watch.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "controllers/cluster/owners.h"
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
         a.metadata.is_being_deleted() == b.metadata.is_being_deleted();
}

// So that jobs that started together are not read together.
kube::Duration SpreadOf(const std::string& uid) {
  return ProgressWatch::kEvery / 100 * (std::hash<std::string>{}(uid) % 20);
}

}  // namespace

ProgressWatch::ProgressWatch(kube::Client& client, ProgressCaches caches, const kube::Clock& clock,
                             const kube::Log& log)
    : caches_(caches),
      client_(client),
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
  const auto launcher = launchers_.With(key, pod->metadata.uid, [&](std::shared_ptr<Launcher>& kept) {
    if (!kept) {
      kept = std::make_shared<Launcher>(ProgressReader(TotalsOf(job->spec.launcher.python_command)));
      kept->due = clock_.Now() + kFirstLook + SpreadOf(pod->metadata.uid);
    }
    return kept;
  });
  if (clock_.Now() < launcher->due) return Action::After(launcher->due - clock_.Now());
  return Look(job, *pod, *launcher, std::move(stop));
}

std::shared_ptr<const kube::Pod> ProgressWatch::RunningLauncher(const ObjectKey& job) const {
  for (const auto& pod : caches_.pods.ByIndex<kube::Pod>(pods_by_job_, job.ToString())) {
    if (pod->metadata.Label(kRoleLabel) == "launcher" && pod->status.phase.view() == "Running" &&
        !pod->metadata.is_being_deleted()) {
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
  const std::int32_t workers = job->status.replicas.ready;
  if (const std::int32_t before = std::exchange(launcher.workers, workers);
      before != workers && before > 0 && workers > 0) {
    // How much of the workers it gains or loses shows as speed is not known yet: between nothing and all.
    const double ratio = static_cast<double>(workers) / before;
    launcher.track.Resize(std::min(ratio, 1.0), std::max(ratio, 1.0));
  }
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
  const std::optional<Position> where = launcher.reader.Where();
  if (!where) return Action::After(kEvery);
  if (where->step) {
    std::lock_guard lock(mutex_);
    steps_[key] = {*where->step, clock_.Now()};
  }
  std::optional<Eta> eta = where->done ? launcher.track.Ends() : std::nullopt;
  if (eta && eta->latest < clock_.WallNow()) eta.reset();  // It hangs, or does something else.
  const api::Progress before = job->status.progress ? *job->status.progress : api::Progress();
  const api::Progress progress = ProgressOf(*where, eta, before);
  if (!IsNews(before, progress)) return Action::After(kEvery);
  return Write(job, progress, kEvery, std::move(stop));
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
    launcher.reader.Add(*bytes, [&](const Position& at) {
      if (at.done) launcher.track.Add(at.time, *at.done);
    });
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
