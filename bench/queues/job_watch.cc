// SPDX-License-Identifier: Apache-2.0
#include "bench/queues/job_watch.h"

#include <algorithm>
#include <utility>

#include "controllers/elastic/elastic_children.h"
#include "controllers/policy/yield_words.h"
#include "crds/types/pod_group.h"
#include "tests/kit/pods.h"

namespace bench {
namespace {

using kube::KindOf;

struct PodRole {
  std::string job;
  bool is_worker = true;
};

// By the labels of grus, and of mpi-operator.
PodRole RoleOf(const kube::Pod& pod) {
  const auto label = [&](std::string_view name) { return std::string(pod.metadata.labels.Get(name)); };
  if (std::string job = label(grus::kJobNameLabel); !job.empty()) return {job, label(grus::kRoleLabel) == "worker"};
  if (std::string job = label("training.kubeflow.org/job-name"); !job.empty()) {
    return {job, label("training.kubeflow.org/job-role") == "worker"};
  }
  return {label(api::kPodGroupLabel), true};
}

double Seconds(kube::Duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

JobWatch::JobWatch(kube::Client& client, const kube::Clock& clock, const kube::Log& log)
    : clock_(clock), observer_(client, clock, log, {&KindOf<kube::Pod>()}) {}

kube::Status JobWatch::Start() {
  return observer_.Start([this](const kube::Kind&, const kube::Change& change) { OnPod(change); });
}

double JobWatch::Job::rate() const {
  const bool trains = static_cast<int>(running.size()) >= mix.min_workers && (!mix.has_launcher || !launchers.empty());
  return trains && !is_finished ? static_cast<double>(running.size()) * mix.gpus : 0;
}

void JobWatch::Begin(const std::vector<Team>& teams, int gpus) {
  std::lock_guard lock(mutex_);
  teams_ = teams;
  gpus_ = gpus;
  jobs_.clear();
  totals_ = {};
  totals_.held_by_team.resize(teams.size());
  last_ = clock_.Now();
}

void JobWatch::Submit(const MixJob& job) {
  std::lock_guard lock(mutex_);
  Advance();
  Job& added = jobs_[job.name];
  added.mix = job;
  added.submitted = clock_.Now();
}

void JobWatch::OnPod(const kube::Change& change) {
  const auto& pod = static_cast<const kube::Pod&>(change.Any());
  const PodRole role = RoleOf(pod);
  std::lock_guard lock(mutex_);
  const auto found = jobs_.find(role.job);
  if (found == jobs_.end()) return;
  Advance();
  Job& job = found->second;
  const std::size_t bound_before = job.bound.size();
  Note(job, pod, !change.after, role.is_worker);
  NoteStop(job, bound_before);
}

void JobWatch::Note(Job& job, const kube::Pod& pod, bool is_gone, bool is_worker) {
  const std::string uid(pod.metadata.uid);
  const bool has_ended = is_gone || pod.status.phase == "Succeeded" || pod.status.phase == "Failed";
  const bool is_running = !has_ended && pod.status.phase == "Running";
  const auto set = [&](std::map<std::string, kube::ObjectKey>& pods, bool is_in) {
    if (is_in) pods.emplace(uid, pod.metadata.Key());
    else pods.erase(uid);
  };
  if (is_gone) job.pods.erase(uid);
  else job.pods.insert(uid);
  if (is_worker) {
    set(job.bound, !has_ended && kit::IsBound(pod));
    set(job.running, is_running);
  } else {
    set(job.launchers, is_running);
  }
  if (!pod.metadata.annotations.Get(grus::kPreemptionDeadlineAnnotation).empty()) job.was_told = true;
  if (!job.start_took && static_cast<int>(job.running.size()) >= job.mix.min_workers) {
    job.start_took = Seconds(clock_.Now() - job.submitted);
  }
}

void JobWatch::NoteStop(Job& job, std::size_t bound_before) {
  const bool trains = job.rate() > 0;
  const bool has_shrunk = job.bound.size() < bound_before && !job.is_finished;
  if (job.was_training && !trains && !job.is_finished) {
    ++totals_.stops;
    if (!job.was_told) {  // A job that was told has saved its state.
      totals_.thrown_away += job.unsaved;
      job.done -= job.unsaved;
    }
    job.unsaved = job.unsaved_seconds = 0;
    job.was_told = false;
  } else if (trains && has_shrunk) {
    ++totals_.shrinks;
  }
  job.was_training = trains;
}

void JobWatch::Advance() {
  const kube::TimePoint now = clock_.Now();
  const double seconds = Seconds(now - last_);
  last_ = now;
  if (seconds <= 0) return;
  int held = 0;
  for (auto& [name, job] : jobs_) {
    held += job.held();
    const double rate = job.rate();
    if (rate <= 0) continue;
    job.done += rate * seconds;
    job.unsaved += rate * seconds;
    job.unsaved_seconds += seconds;
    if (job.unsaved_seconds >= kSaveEvery) job.unsaved = job.unsaved_seconds = 0;
  }
  int wanted = 0;
  for (const auto& [name, job] : jobs_) {
    if (!job.is_finished && job.bound.empty() && job.needs() <= gpus_ - held) wanted += job.needs();
  }
  totals_.seconds += seconds;
  totals_.held += held * seconds;
  totals_.idle_wanted += std::min(gpus_ - held, wanted) * seconds;
  AddShares(seconds);
}

void JobWatch::AddShares(double seconds) {
  std::vector<int> held(teams_.size()), asked(teams_.size());
  for (const auto& [name, job] : jobs_) {
    const auto team = static_cast<std::size_t>(job.mix.team);
    held[team] += job.held();
    if (!job.is_finished) asked[team] += std::max(job.held(), job.needs());
  }
  for (std::size_t i = 0; i < teams_.size(); ++i) {
    if (asked[i] < teams_[i].guaranteed) return;
  }
  for (std::size_t i = 0; i < teams_.size(); ++i) totals_.held_by_team[i] += held[i] * seconds;
}

std::vector<kube::ObjectKey> JobWatch::TakeFinished() {
  std::lock_guard lock(mutex_);
  Advance();
  std::vector<kube::ObjectKey> pods;
  for (auto& [name, job] : jobs_) {
    if (job.rate() > 0 && job.mix.run_seconds > 0 && job.done >= job.mix.Work() - 1e-6) job.is_finished = true;
    if (!job.is_finished) continue;
    // Also of one that was stopped before it could end, and came again.
    for (const auto& [uid, pod] : job.mix.has_launcher ? job.launchers : job.running) {
      if (job.ended.insert(uid).second) pods.push_back(pod);
    }
  }
  return pods;
}

kube::TimePoint JobWatch::NextFinish() {
  std::lock_guard lock(mutex_);
  Advance();
  double next = 3600;
  for (const auto& [name, job] : jobs_) {
    const double rate = job.rate();
    if (rate > 0 && job.mix.run_seconds > 0) next = std::min(next, std::max(0.0, job.mix.Work() - job.done) / rate);
  }
  return clock_.Now() + std::chrono::duration_cast<kube::Duration>(std::chrono::duration<double>(next + 0.001));
}

int JobWatch::Held() {
  std::lock_guard lock(mutex_);
  int held = 0;
  for (const auto& [name, job] : jobs_) held += job.held();
  return held;
}

int JobWatch::HeldBy(int team) {
  std::lock_guard lock(mutex_);
  int held = 0;
  for (const auto& [name, job] : jobs_) held += job.mix.team == team ? job.held() : 0;
  return held;
}

int JobWatch::Unfinished() {
  std::lock_guard lock(mutex_);
  return static_cast<int>(std::ranges::count_if(jobs_, [](const auto& job) { return !job.second.is_finished; }));
}

int JobWatch::Pods() {
  std::lock_guard lock(mutex_);
  std::size_t pods = 0;
  for (const auto& [name, job] : jobs_) pods += job.pods.size();
  return static_cast<int>(pods);
}

std::optional<double> JobWatch::SecondsToStart(const std::string& name) {
  std::lock_guard lock(mutex_);
  const auto found = jobs_.find(name);
  return found == jobs_.end() ? std::nullopt : found->second.start_took;
}

std::vector<double> JobWatch::StartsOf(MixClass job_class) {
  std::lock_guard lock(mutex_);
  std::vector<double> starts;
  for (const auto& [name, job] : jobs_) {
    if (job.mix.job_class != job_class) continue;
    starts.push_back(job.start_took.value_or(Seconds(clock_.Now() - job.submitted)));
  }
  std::ranges::sort(starts);
  return starts;
}

MixTotals JobWatch::Totals() {
  std::lock_guard lock(mutex_);
  Advance();
  return totals_;
}

}  // namespace bench
