// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/job_quotas.h"

#include <algorithm>

#include "controllers/cluster/priorities.h"
#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_status.h"
#include "controllers/frame/refusals.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using kube::ObjectKey;

bool HasLauncherPod(const View& view) {
  return std::any_of(view.launcher_pods.begin(), view.launcher_pods.end(),
                     [](const LauncherPod& pod) { return !pod.is_ending; });
}

}  // namespace

JobQuotas::JobQuotas(JobPods& pods, Quotas& quotas, const kube::Informer& priority_classes)
    : pods_(pods), quotas_(quotas), priority_classes_(priority_classes) {
  quotas.OnMore([this](const std::string& ns) { Tell(ns); });
}

void JobQuotas::Tell(const std::string& ns) {
  std::vector<ObjectKey> jobs;
  {
    std::lock_guard lock(mutex_);
    for (auto it = limited_.lower_bound({ns, ""}); it != limited_.end() && it->ns == ns; ++it) jobs.push_back(*it);
  }
  for (const ObjectKey& job : jobs) on_more_(job);
}

JobQuotas::Wanted JobQuotas::WantedOf(const JobPod& pod, const QuotaList& quotas) const {
  Wanted wanted{QuotaPodOf(*pod.pod), {}, {}};
  if (wanted.pod.priority_class.empty()) wanted.pod.priority_class = DefaultClass(priority_classes_);
  if (pod.refusal && QuotaRoomFor(quotas, wanted.pod, {}, 1).is_unstated) {
    wanted.refusal = QuotaRefusalOf(*pod.refusal);
    // grus may not ask, or the pod is refused for another reason: plan as if no quota needed what the pod leaves
    // unstated. After a passing refusal, such as that of a restarting webhook, ask again.
    if (wanted.refusal.empty() && IsFinal(*pod.refusal)) wanted.pod.unstated.clear();
    // No change of a quota tells that the API server would make another pod.
    wanted.look_again = pod.look_again;
  }
  return wanted;
}

std::optional<QuotaLimit> JobQuotas::LimitOf(const View& view, int wanted) {
  const ElasticHorovodJob& job = *view.job;
  const ObjectKey key = job.metadata.Key();
  {
    // Before looking at the quotas, so that a change from now on wakes the job.
    std::lock_guard lock(mutex_);
    limited_.insert(key);
  }
  const QuotaList quotas = quotas_.Of(key.ns);
  const int existing = view.alive();
  const auto limit = [&](const Wanted& pod, const QuotaRoom& room, bool is_of_launcher) {
    const int admitted = is_of_launcher && !view.has_workers() ? 0 : existing;  // Without a launcher, none starts.
    QuotaLimit told{admitted + room.copies, room.quota,     room.resource,   room.why,
                    is_of_launcher,         pod.look_again, room.is_unstated};
    if (!pod.refusal.empty()) {
      told = {admitted, "", "", pod.refusal, is_of_launcher, pod.look_again, IsForWantOfStatement(pod.refusal)};
    }
    return told;
  };
  std::lock_guard lock(mutex_);
  std::vector<PodsToCome> to_come;
  for (auto it = promises_.lower_bound({key.ns, ""}); it != promises_.end() && it->first.ns == key.ns; ++it) {
    if (it->first == key) continue;
    to_come.push_back({&it->second.worker, it->second.workers});
    to_come.push_back({&it->second.launcher, it->second.launchers});
  }
  Wanted launcher;
  if (!quotas.empty() && !HasLauncherPod(view)) {
    launcher = WantedOf(pods_.Launcher(job), quotas);
    const QuotaRoom room = QuotaRoomFor(quotas, launcher.pod, to_come, 1);
    if (room.copies == 0 || !launcher.refusal.empty()) return limit(launcher, room, true);
    to_come.push_back({&launcher.pod, 1});
  }
  const int more = std::max(0, wanted - existing);
  if (!quotas.empty() && more > 0) {
    const Wanted worker = WantedOf(pods_.Worker(job), quotas);
    const QuotaRoom room = QuotaRoomFor(quotas, worker.pod, to_come, more);
    if (room.copies < more || !worker.refusal.empty()) return limit(worker, room, false);
  }
  limited_.erase(key);
  return std::nullopt;
}

void JobQuotas::Note(const View& view, const Plan& plan) {
  const ObjectKey key = view.job->metadata.Key();
  const bool has_ended = HasEnded(plan.status);
  const int granted = plan.workers && !has_ended ? std::max(plan.workers->granted, plan.early) : 0;
  Promise promise;
  promise.workers = std::max(0, granted - view.alive());
  promise.launchers = granted > 0 && !HasLauncherPod(view) ? 1 : 0;
  const int planned = promise.workers + promise.launchers;
  if (const QuotaList quotas = quotas_.Of(key.ns); planned > 0 && !quotas.empty()) {
    promise.worker = WantedOf(pods_.Worker(*view.job), quotas).pod;
    promise.launcher = WantedOf(pods_.Launcher(*view.job), quotas).pod;
  }
  bool is_less = false;
  {
    std::lock_guard lock(mutex_);
    const auto it = promises_.find(key);
    const int before = it == promises_.end() ? 0 : it->second.workers + it->second.launchers;
    is_less = planned < before;
    if (planned > 0) promises_[key] = std::move(promise);
    else if (before > 0) promises_.erase(it);
    if (granted == 0 && has_ended) limited_.erase(key);
  }
  // Pods that were planned exist by now and count in the quota, or were given up.
  if (is_less) Tell(key.ns);
}

void JobQuotas::Forget(const ObjectKey& job) {
  bool had = false;
  {
    std::lock_guard lock(mutex_);
    limited_.erase(job);
    had = promises_.erase(job) > 0;
  }
  if (had) Tell(job.ns);
}

}  // namespace grus
