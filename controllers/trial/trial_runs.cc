// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_runs.h"

#include "controllers/cluster/owners.h"
#include "controllers/frame/retry_times.h"
#include "controllers/trial/trial_outcome.h"
#include "controllers/trial/trial_peers.h"
#include "controllers/trial/trial_sources.h"
#include "controllers/trial/trial_status.h"

namespace grus {
namespace {

using api::TrialJob;
using kube::KindOf;
using kube::ObjectKey;

// When all is well, pods come and go faster than that.
constexpr kube::Duration kDoubt = std::chrono::seconds(5);

// Its pods are not in the expected state. `written`: the trial in the status; null: it is not there.
bool IsDoubtful(const TrialRun& run, const api::Trial* written, bool has_log_ended) {
  if (run.child && !run.child->is_ours) return false;
  const bool is_active = written != nullptr && IsActive(written->phase);
  const bool should_go = !is_active || !run.child || run.child->is_ending || HasFinished(*run.child);
  if (should_go) return HoldsGpus(run);
  if (run.child->phase == "Waiting") return false;
  return !run.pods.launcher_started || (has_log_ended && HoldsGpus(run));
}

}  // namespace

std::map<std::string, TrialRun> TrialRuns::Read(const TrialJob& job, const TrialSources& sources,
                                                std::stop_token stop) {
  std::map<std::string, TrialRun> runs;
  {
    std::lock_guard lock(mutex_);
    const auto note = [&](const std::string& name) { trial_jobs_[{job.metadata.ns, name}] = job.metadata.name; };
    for (const api::Trial& trial : job.status.trials) {
      runs.try_emplace(trial.name);
      const bool has_begun = trial.phase != api::TrialPhase::kPending && trial.phase != api::TrialPhase::kSkipped;
      if (has_begun) note(trial.name);
    }
    for (const std::string& name : ObjectsOf(job).NamesOf(job)) {
      runs.try_emplace(name);
      note(name);
    }
  }
  memory_.With(job.metadata, [&](Memory& memory) {
    for (auto& [name, run] : runs) run = RunOf(job, name, memory);
  });
  for (auto& [name, run] : runs) LookIfDoubtful(job, name, sources.HasLogEnded(job, name), run, stop);
  memory_.With(job.metadata, [](Memory& memory) {
    memory.held.DropEmpty();
    std::erase_if(memory.trials, [](const auto& trial) { return trial.second.IsEmpty(); });
  });
  return runs;
}

TrialRun TrialRuns::RunOf(const TrialJob& job, const std::string& trial, Memory& memory) {
  Kept& kept = memory.trials[trial];
  TrialRun run;
  ObjectsOf(job).Read(job, trial, NewerThanCache(job.metadata.ns, kept.live), run);
  memory.held.SetHeld(trial, job.status, kept.made, clock_, run);
  if (run.child && !run.child->refusal.empty()) {
    // By the monotonic clock: the wall clock may be set back, and this ends the trial for good.
    if (!kept.refused_since) kept.refused_since = clock_.Now();
    run.child->refused_for = clock_.Now() - *kept.refused_since;
  } else {
    kept.refused_since.reset();
  }
  if (run.child && !run.child->lacks_peers) kept.start_refused.reset();
  run.start_refused = kept.start_refused;
  run.is_start_held = run.start_refused && clock_.Now() < kept.start_refused_until;
  // A single refusal may be a transient failure of an admission check.
  refusals_.With(job.metadata, [&](const Refusals& refusals) {
    const auto found = refusals.find(trial);
    if (found != refusals.end() && found->second.count > 1) run.refusal = found->second.last;
  });
  return run;
}

void TrialRuns::LookIfDoubtful(const TrialJob& job, const std::string& trial, bool has_log_ended, TrialRun& run,
                               std::stop_token stop) {
  const bool is_due = memory_.With(job.metadata, [&](Memory& memory) {
    LivePods& live = memory.trials[trial].live;
    // If the cache is behind once, the next events may be late, too.
    const bool is_behind = NewerThanCache(job.metadata.ns, live) != nullptr;
    if (!is_behind && !IsDoubtful(run, FindTrial(job.status, trial), has_log_ended)) live = {};
    else if (!live.next_look) live.next_look = clock_.Now() + kDoubt;
    return live.next_look && clock_.Now() >= *live.next_look;
  });
  if (!is_due) return;
  const kube::ListOptions options{.label_selector = ObjectsOf(job).PodSelector(job, trial)};
  const auto listed = client_.List(KindOf<kube::Pod>(), job.metadata.ns, options, stop);
  memory_.With(job.metadata, [&](Memory& memory) {
    LivePods& live = memory.trials[trial].live;
    live.next_look = clock_.Now() + kDoubt;
    if (!listed) {
      *live.next_look += listed.error().retry_after().value_or(kube::Duration::zero());
      return;
    }
    live.resource_version = listed->resource_version;
    live.pods.clear();
    for (const auto& pod : listed->items) live.pods.push_back(std::static_pointer_cast<const kube::Pod>(pod));
    run = RunOf(job, trial, memory);
  });
}

const TrialObjects::Pods* TrialRuns::NewerThanCache(const std::string& ns, const LivePods& live) const {
  if (live.resource_version.empty()) return nullptr;
  return kube::IsOlder(pods_.store().resource_version(ns), live.resource_version) ? &live.pods : nullptr;
}

std::optional<TrialRuns::TrialKey> TrialRuns::TrialOf(const kube::ObjectMeta& pod) const {
  if (const auto trial_job = TrialJobOf(pod)) return TrialKey{*trial_job, pod.name};
  if (const auto peer = ReadPeerOf(pod)) return TrialKey{peer->trial_job, peer->trial.name};
  const std::optional<ObjectKey> job = JobOf(pod);
  if (!job) return std::nullopt;
  std::lock_guard lock(mutex_);
  const auto found = trial_jobs_.find(*job);
  return found != trial_jobs_.end() ? std::optional(TrialKey{{job->ns, found->second}, job->name}) : std::nullopt;
}

void TrialRuns::NoteGone(const kube::Change& change) {
  if (!change.before || (change.after && change.after->metadata.uid == change.before->metadata.uid)) return;
  const auto& pod = static_cast<const kube::Pod&>(*change.before);
  if (pod.spec.node_name.empty()) return;
  const std::optional<TrialKey> trial = TrialOf(pod.metadata);
  const bool is_of_job = !TrialJobOf(pod.metadata) && !ReadPeerOf(pod.metadata);
  if (!trial || (is_of_job && !PartInJob(pod).has_gpus)) return;
  memory_.IfKept(trial->first, [&](Memory& memory) { memory.held.NoteGone(trial->second, pod); });
}

void TrialRuns::NoteStart(const TrialJob& job, const std::string& trial) {
  {
    std::lock_guard lock(mutex_);
    trial_jobs_[{job.metadata.ns, trial}] = job.metadata.name;
  }
  memory_.With(job.metadata, [&](Memory& memory) { memory.trials[trial].made = clock_.Now(); });
}

void TrialRuns::NoteRefusal(const TrialJob& job, const std::string& trial, const std::string& message) {
  refusals_.With(job.metadata, [&](Refusals& refusals) {
    Refusal& refusal = refusals[trial];
    ++refusal.count;
    refusal.last = message;
  });
}

void TrialRuns::NoteStartRefused(const TrialJob& job, const std::string& trial, StartRefusal why) {
  memory_.With(job.metadata, [&](Memory& memory) {
    Kept& kept = memory.trials[trial];
    kept.start_refused = std::move(why);
    kept.start_refused_until = clock_.Now() + kRefusedRetry;
  });
}

void TrialRuns::ForgetFreed(const TrialView& view) {
  memory_.With(view.job->metadata, [&](Memory& memory) {
    for (const auto& [name, run] : view.runs) {
      // Workers of a running job may be created again, and what they held before still counts.
      const bool is_over = !run.child || run.child->is_ending || run.child->is_suspended || HasFinished(*run.child);
      if (run.held_since && !HoldsGpus(run) && is_over) memory.held.Forget(name);
    }
  });
}

void TrialRuns::Forget(const ObjectKey& trial_job) {
  memory_.Forget(trial_job);
  refusals_.Forget(trial_job);
  std::lock_guard lock(mutex_);
  std::erase_if(trial_jobs_,
                [&](const auto& entry) { return entry.first.ns == trial_job.ns && entry.second == trial_job.name; });
}

}  // namespace grus
