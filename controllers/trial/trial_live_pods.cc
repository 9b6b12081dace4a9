// SPDX-License-Identifier: Apache-2.0
// Pods of trials, from the caches, or from the API server where the caches may be behind.
//
// A watch may be silent for minutes without an error. Elsewhere that only delays; but each second of a trial costs
// GPUs, so pods that should have appeared or gone by now are read from the API server.
#include <algorithm>

#include "controllers/cluster/owners.h"
#include "controllers/trial/trial_outcome.h"
#include "controllers/trial/trial_reconciler.h"

namespace grus {
namespace {

using api::TrialJob;
using kube::KindOf;
using kube::ObjectKey;

// When all is well, pods come and go faster than that.
constexpr kube::Duration kDoubt = std::chrono::seconds(5);

// Null: its status does not have it.
const api::Trial* FindTrial(const TrialJob& job, const std::string& name) {
  const auto& trials = job.status.trials;
  const auto it = std::find_if(trials.begin(), trials.end(), [&](const api::Trial& t) { return t.name == name; });
  return it != trials.end() ? &*it : nullptr;
}

bool IsActiveIn(const TrialJob& job, const std::string& name) {
  const api::Trial* trial = FindTrial(job, name);
  return trial != nullptr && IsActive(trial->phase);
}

// Its pods are not in the expected state.
bool IsDoubtful(const TrialRun& run, bool is_active, bool has_log_ended) {
  if (run.child && !run.child->is_ours) return false;
  const bool should_go = !is_active || !run.child || run.child->is_ending || HasFinished(*run.child);
  if (should_go) return HoldsGpus(run);
  if (run.child->phase == "Waiting") return false;
  return !run.pods.launcher_started || (has_log_ended && HoldsGpus(run));
}

}  // namespace

void TrialReconciler::NoteGone(const kube::Change& change) {
  if (!change.before || (change.after && change.after->metadata.uid == change.before->metadata.uid)) return;
  const auto& pod = static_cast<const kube::Pod&>(*change.before);
  if (pod.spec.node_name.empty()) return;
  const auto note = [&](const ObjectKey& trial_job, const std::string& trial) {
    memory_.IfKept(trial_job, [&](Memory& kept) { kept.held.NoteGone(trial, pod); });
  };
  const kube::OwnerReference* owner = pod.metadata.Controller();
  const bool is_trial = owner != nullptr && owner->kind == KindOf<TrialJob>().kind;
  if (is_trial) return note({pod.metadata.ns, owner->name.str()}, pod.metadata.name);
  const std::optional<ObjectKey> job = JobOf(pod.metadata);
  const std::optional<ObjectKey> trial_job = job ? TrialJobOf(*job) : std::nullopt;
  if (trial_job && PartInJob(pod).has_gpus) note(*trial_job, job->name);
}

const TrialReconciler::LivePods* TrialReconciler::NewerThanCache(const TrialJob& job, const std::string& trial,
                                                                 const Memory& memory) const {
  const auto live = memory.live.find(trial);
  if (live == memory.live.end()) return nullptr;
  const std::string cached = caches_.pods.store().resource_version(job.metadata.ns);
  return kube::IsOlder(cached, live->second.resource_version) ? &live->second : nullptr;
}

std::shared_ptr<const kube::Pod> TrialReconciler::NewestPod(const TrialJob& job, const std::string& trial,
                                                            const std::string& name) {
  return memory_.With(job.metadata, [&](const Memory& kept) -> std::shared_ptr<const kube::Pod> {
    const LivePods* live = NewerThanCache(job, trial, kept);
    if (live == nullptr) return caches_.pods.Get<kube::Pod>({job.metadata.ns, name});
    for (const auto& pod : live->pods) {
      if (pod->metadata.name == name) return pod;
    }
    return nullptr;
  });
}

TrialRun TrialReconciler::RunOf(const TrialJob& job, const std::string& trial, Memory& memory) {
  TrialRun run;
  const LivePods* live = NewerThanCache(job, trial, memory);
  ObjectsOf(job).Read(job, trial, live != nullptr ? &live->pods : nullptr, run);
  const auto made = memory.made.find(trial);
  memory.held.SetHeld(trial, FindTrial(job, trial),
                      made != memory.made.end() ? std::optional(made->second) : std::nullopt, clock_, run);
  if (run.child && !run.child->refusal.empty()) {
    // By the monotonic clock: the wall clock may be set back, and this ends the trial for good.
    run.child->refused_for = clock_.Now() - memory.stalled.try_emplace(trial, clock_.Now()).first->second;
  } else {
    memory.stalled.erase(trial);
  }
  // A single refusal may be a transient failure of an admission check.
  spec_memory_.With(job.metadata, [&](const SpecMemory& kept) {
    const auto refusal = kept.refusals.find(trial);
    if (refusal != kept.refusals.end() && refusal->second.times > 1) run.refusal = refusal->second.message;
  });
  return run;
}

void TrialReconciler::LookAtDoubtful(TrialView& view, std::stop_token stop) {
  const TrialJob& job = *view.job;
  for (auto& [name, run] : view.runs) {
    const bool has_log_ended = measurements_.HasLogEnded(job.metadata.Key(), name);
    const bool is_due = memory_.With(job.metadata, [&, &name = name, &run = run](Memory& kept) {
      // If the cache is behind once, the next events may be late, too.
      const bool is_behind = NewerThanCache(job, name, kept) != nullptr;
      if (!is_behind && !IsDoubtful(run, IsActiveIn(job, name), has_log_ended)) {
        kept.live.erase(name);
        return false;
      }
      const LivePods& live = kept.live.try_emplace(name, LivePods{clock_.Now() + kDoubt}).first->second;
      return clock_.Now() >= live.next_look;
    });
    if (!is_due) continue;
    kube::ListOptions options;
    options.label_selector = ObjectsOf(job).PodSelector(job, name);
    const auto listed = client_.List(KindOf<kube::Pod>(), job.metadata.ns, options, stop);
    memory_.With(job.metadata, [&, &name = name, &run = run](Memory& kept) {
      LivePods& live = kept.live[name];
      live.next_look = clock_.Now() + kDoubt;
      if (!listed) {
        live.next_look += listed.error().retry_after().value_or(kube::Duration::zero());
        return;
      }
      live.resource_version = listed->resource_version;
      live.pods.clear();
      for (const auto& pod : listed->items) live.pods.push_back(std::static_pointer_cast<const kube::Pod>(pod));
      run = RunOf(job, name, kept);
    });
  }
}

}  // namespace grus
