// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/job_quotas.h"

#include <algorithm>
#include <chrono>

#include "controllers/cluster/priorities.h"
#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_status.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using kube::Json;
using kube::ObjectKey;

// A LimitRange that is made later is found; answers are not asked for with each pod of the namespace.
constexpr kube::Duration kAskAgain = std::chrono::minutes(1), kAskAgainAtMost = std::chrono::seconds(5);

// Of the workers that are wanted now; those of the last run are on their way out.
int Existing(const View& view, int replicas) {
  if (!view.workers || view.workers->replicas == 0) return 0;
  return static_cast<int>(
      std::count_if(view.pods.begin(), view.pods.end(), [&](const Worker& w) { return w.ordinal < replicas; }));
}

bool HasLauncherPod(const View& view) {
  return std::any_of(view.launcher_pods.begin(), view.launcher_pods.end(),
                     [](const LauncherPod& pod) { return !pod.is_ending; });
}

// The API server's words after 'pods "x" is forbidden: ', if it was a quota that refused; empty: it was not.
std::string RefusalOf(const kube::Error& error) {
  const std::string& text = error.message();
  for (const std::string_view start : {"failed quota: ", "exceeded quota: ", "status unknown for quota: "}) {
    const std::size_t at = text.find(start);
    if (error.code() == kube::ErrorCode::kForbidden && at != std::string::npos) return text.substr(at);
  }
  return {};
}

}  // namespace

JobQuotas::JobQuotas(kube::Client& client, Quotas* quotas, const kube::Informer* priority_classes,
                     const kube::Clock& clock)
    : client_(client), quotas_(quotas), priority_classes_(priority_classes), clock_(clock) {
  if (quotas_ != nullptr) {
    quotas_->OnMore([this](const std::string& ns) { Tell(ns); });
  }
}

void JobQuotas::Tell(const std::string& ns) {
  std::vector<ObjectKey> jobs;
  {
    std::lock_guard lock(mutex_);
    for (auto it = limited_.lower_bound({ns, ""}); it != limited_.end() && it->ns == ns; ++it) jobs.push_back(*it);
  }
  for (const ObjectKey& job : jobs) on_more_(job);
}

JobQuotas::Facts JobQuotas::FactsOf(const ElasticHorovodJob& job) {
  const ObjectKey key = job.metadata.Key();
  {
    std::lock_guard lock(mutex_);
    const auto it = facts_.find(key);
    if (it != facts_.end() && it->second.uid == job.metadata.uid &&
        it->second.generation == job.metadata.generation) {
      return it->second;
    }
  }
  Facts facts;
  facts.uid = job.metadata.uid;
  facts.generation = job.metadata.generation;
  facts.worker.pod = QuotaPodOf(WorkerPod(job));
  facts.launcher.pod = QuotaPodOf(LauncherPodOf(job));
  for (Asked* one : {&facts.worker, &facts.launcher}) {
    if (!one->pod.priority_class.empty() || priority_classes_ == nullptr) continue;
    one->pod.priority_class = DefaultClass(*priority_classes_);
  }
  std::lock_guard lock(mutex_);
  return facts_[key] = facts;
}

void JobQuotas::Ask(const Json& workload, const std::string& ns, const QuotaList& quotas, Asked& asked,
                    std::stop_token stop) {
  const kube::TimePoint now = clock_.Now();
  if (!QuotaRoomFor(quotas, asked.pod, {}, 1).is_unstated && asked.refusal.empty()) return;
  if (asked.when && now - *asked.when < kAskAgainAtMost) return;
  asked.when = now;
  asked.refusal.clear();
  kube::WriteOptions options;
  options.dry_run = true;
  const auto answer = client_.Create(kube::KindOf<kube::Pod>(), ns, PodOfTemplate(workload), options, stop);
  if (answer) {
    asked.pod = QuotaPodOf(static_cast<const kube::Pod&>(**answer));
    return;
  }
  asked.refusal = RefusalOf(answer.error());
  // It is not allowed to ask, or the pod is refused for another reason: as if nothing were asked for. What passes, such as
  // a webhook that is being restarted, is asked again.
  const kube::ErrorCode code = answer.error().code();
  const bool is_final = code == kube::ErrorCode::kForbidden || code == kube::ErrorCode::kInvalid ||
                        code == kube::ErrorCode::kInvalidArgument;
  if (asked.refusal.empty() && is_final) asked.pod.unstated.clear();
}

void JobQuotas::AskWhatIsUnstated(const ElasticHorovodJob& job, std::stop_token stop) {
  const QuotaList quotas = quotas_ ? quotas_->Of(job.metadata.ns) : QuotaList();
  if (quotas.empty()) return;
  Facts facts = FactsOf(job);
  Ask(MakeWorkers(job, {1, 1, false, false}), job.metadata.ns, quotas, facts.worker, stop);
  Ask(MakeLauncher(job), job.metadata.ns, quotas, facts.launcher, stop);
  std::lock_guard lock(mutex_);
  facts_[job.metadata.Key()] = std::move(facts);
}

std::optional<QuotaLimit> JobQuotas::LimitOf(const View& view, int wanted) {
  if (quotas_ == nullptr) return std::nullopt;
  const ElasticHorovodJob& job = *view.job;
  const ObjectKey key = job.metadata.Key();
  {
    // Before it looks: what is admitted from now on wakes it.
    std::lock_guard lock(mutex_);
    limited_.insert(key);
  }
  const QuotaList quotas = quotas_->Of(key.ns);
  const Facts facts = quotas.empty() ? Facts() : FactsOf(job);
  const int existing = Existing(view, wanted);
  const auto limit = [&](const Asked& asked, const QuotaRoom& room) {
    QuotaLimit found{existing + room.copies, room.quota, room.resource, room.why};
    found.is_of_launcher = &asked == &facts.launcher;
    if (asked.when) {
      const kube::Duration age = clock_.Now() - *asked.when;
      found.look_again = age > kube::Duration::zero() && age < kAskAgainAtMost ? kAskAgainAtMost - age : kAskAgain;
    }
    return found;
  };
  std::lock_guard lock(mutex_);
  std::vector<PodsToCome> to_come;
  for (auto it = promises_.lower_bound({key.ns, ""}); it != promises_.end() && it->first.ns == key.ns; ++it) {
    if (it->first == key) continue;
    to_come.push_back({&it->second.worker, it->second.workers});
    to_come.push_back({&it->second.launcher, it->second.launchers});
  }
  if (!quotas.empty() && !HasLauncherPod(view)) {
    if (!facts.launcher.refusal.empty()) return limit(facts.launcher, {0, "", "", facts.launcher.refusal});
    const QuotaRoom room = QuotaRoomFor(quotas, facts.launcher.pod, to_come, 1);
    if (room.copies == 0) return limit(facts.launcher, room);
    to_come.push_back({&facts.launcher.pod, 1});
  }
  const int more = std::max(0, wanted - existing);
  if (!quotas.empty() && more > 0) {
    if (!facts.worker.refusal.empty()) return limit(facts.worker, {0, "", "", facts.worker.refusal});
    const QuotaRoom room = QuotaRoomFor(quotas, facts.worker.pod, to_come, more);
    if (room.copies < more) return limit(facts.worker, room);
  }
  limited_.erase(key);
  return std::nullopt;
}

void JobQuotas::Note(const View& view, const Plan& plan) {
  if (quotas_ == nullptr) return;
  const ObjectKey key = view.job->metadata.Key();
  const bool has_ended = plan.status.phase == kPhaseSucceeded || plan.status.phase == kPhaseFailed;
  const int replicas = plan.workers && !has_ended && !plan.is_ignored ? plan.workers->replicas : 0;
  Promise promise;
  promise.workers = std::max(0, replicas - Existing(view, replicas));
  promise.launchers = replicas > 0 && !HasLauncherPod(view) ? 1 : 0;
  const int planned = promise.workers + promise.launchers;
  if (planned > 0 && !quotas_->Of(key.ns).empty()) {
    const Facts facts = FactsOf(*view.job);
    promise.worker = facts.worker.pod;
    promise.launcher = facts.launcher.pod;
  }
  bool is_less = false;
  {
    std::lock_guard lock(mutex_);
    const auto it = promises_.find(key);
    const int before = it == promises_.end() ? 0 : it->second.workers + it->second.launchers;
    is_less = planned < before;
    if (planned > 0) promises_[key] = std::move(promise);
    else if (before > 0) promises_.erase(it);
    if (replicas == 0 && (has_ended || plan.is_ignored)) limited_.erase(key);
  }
  // Made by now and counted in the quota, or given up.
  if (is_less) Tell(key.ns);
}

void JobQuotas::Forget(const ObjectKey& job) {
  bool had = false;
  {
    std::lock_guard lock(mutex_);
    facts_.erase(job);
    limited_.erase(job);
    had = promises_.erase(job) > 0;
  }
  if (had) Tell(job.ns);
}

}  // namespace grus
