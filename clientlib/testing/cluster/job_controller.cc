// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/job_controller.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "clientlib/model/time.h"
#include "clientlib/testing/cluster/objects.h"
#include "clientlib/testing/cluster/pod_failure_policy.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kJobs = "jobs.batch";
constexpr std::string_view kTracking = "batch.kubernetes.io/job-tracking";

// Whether only ended pods are replaced, not terminating ones.
bool WaitsForEnds(const Json& job) {
  return job.At({"spec", "podFailurePolicy"}) != nullptr || TextAt(job, {"spec", "podReplacementPolicy"}) == "Failed";
}

bool HasFailed(const Json& pod, const Json& job) {
  if (PhaseOf(pod) == "Failed") return true;
  return !WaitsForEnds(job) && IsBeingDeleted(pod) && PhaseOf(pod) != "Succeeded";
}

// job_controller.go: DefaultJobApiBackOff, MaxJobApiBackOff
constexpr Lag kRetries{1s, 1min};

bool IsFinished(const Json& job) { return HasTrueCondition(job, "Complete") || HasTrueCondition(job, "Failed"); }

Duration BackoffFor(int failures) {
  if (failures == 0) return Duration::zero();
  return std::min<Duration>(10s * (1 << std::min(failures - 1, 10)), 10min);
}

// A condition that was never true is not written as false.
void SetIfNews(Json& job, const ConditionText& condition, std::string_view now) {
  if (condition.status == "True" || ConditionOf(job, condition.type)) SetCondition(job, condition, now);
}

}  // namespace

// The data of one pass over a job.
struct JobController::Pass {
  ObjectKey key;
  Json job;  // Its status becomes the one to write.
  std::string now;
  std::vector<ObjectPtr> tracked = {};  // Pods that have the finalizer.
  std::vector<ObjectPtr> active = {};
  std::vector<ObjectPtr> succeeded = {}, failed = {};  // Not counted yet; `failed` without ignored ones.
  std::int64_t terminating = 0, ready = 0, ended_badly = 0;
  std::string finish_type = {}, reason = {}, message = {};  // "Complete" or "Failed"; empty: goes on.
  bool has_write_failed = false;
};

JobController::JobController(const ClusterContext& context)
    : context_(context),
      loop_(
          context, context.options.job, [this](const ObjectKey& key) { return Reconcile(key); }, kRetries),
      orphans_(
          context, context.options.job, [this](const ObjectKey& key) { return ReleaseOrphan(key); }, kRetries),
      events_(context, "job-controller") {}

void JobController::Observe(const ServerChange& change) {
  const Json& object = change.after ? *change.after : *change.before;
  const ObjectKey key = KeyOf(object);
  if (change.resource == kJobs) {
    const bool is_news =
        !change.before || !change.after ||
        IntAt(*change.before, {"metadata", "generation"}) != IntAt(*change.after, {"metadata", "generation"});
    if (!change.after) {
      backoffs_.erase(key);
    }
    loop_.AddAfter(
        key, (is_news ? Duration::zero() : context_.options.job_batch_period) + context_.Draw(context_.options.job));
  } else if (change.resource == "pods") {
    const Json* const owner = ControllerOf(object);
    // The garbage collector has made the pod an orphan: nobody counts it any more.
    if (!owner && change.after && HasFinalizer(object, kTracking)) orphans_.Add(key);
    if (!owner || TextAt(*owner, {"kind"}) != "Job") return;
    loop_.AddAfter({key.ns, std::string(TextAt(*owner, {"name"}))},
                   context_.options.job_batch_period + context_.Draw(context_.options.job));
    if (change.after && HasFinalizer(object, kTracking)) orphans_.Add(key);
  }
}

bool JobController::Reconcile(const ObjectKey& key) {
  const ObjectPtr job = context_.server.Get(kJobs, key);
  if (!job) return true;
  if (IsFinished(*job)) return CleanUp(*job);
  Pass pass{.key = key, .job = *job, .now = context_.Now()};
  Sort(pass);
  Judge(pass);
  if (!pass.finish_type.empty()) {
    Finish(pass);
  } else if (!IsBeingDeleted(pass.job)) {
    Manage(pass);
  }
  return Track(pass) && !pass.has_write_failed;
}

void JobController::Sort(Pass& pass) {
  for (ObjectPtr& pod : context_.server.List("pods", pass.key.ns)) {
    const Json* const owner = ControllerOf(*pod);
    if (!owner || TextAt(*owner, {"uid"}) != UidOf(pass.job)) continue;
    const bool has_ended = HasEnded(*pod);
    if (!has_ended && !IsBeingDeleted(*pod)) {
      pass.active.push_back(pod);
      if (IsRunningAndReady(*pod)) ++pass.ready;
    }
    if (!has_ended && IsBeingDeleted(*pod)) ++pass.terminating;
    if (!HasFinalizer(*pod, kTracking)) continue;
    pass.tracked.push_back(pod);
    if (PhaseOf(*pod) == "Succeeded") {
      pass.succeeded.push_back(pod);
    } else if (HasFailed(*pod, pass.job)) {
      ++pass.ended_badly;
      FailureVerdict verdict = JudgeFailure(pass.job, *pod);
      if (verdict.action != FailureVerdict::Action::kIgnore) pass.failed.push_back(pod);
      if (verdict.action == FailureVerdict::Action::kFailJob && pass.finish_type.empty()) {
        pass.finish_type = "Failed";
        pass.reason = "PodFailurePolicy";
        pass.message = std::move(verdict.message);
      }
    }
  }
}

void JobController::Judge(Pass& pass) {
  Json& job = pass.job;
  const bool is_suspended = IsTrueAt(job, {"spec", "suspend"});
  if (TextAt(job, {"status", "startTime"}).empty() && !is_suspended) job["status"]["startTime"] = pass.now;

  Backoff& backoff = backoffs_[pass.key];
  if (backoff.uid != UidOf(job)) backoff = {.uid = std::string(UidOf(job))};
  if (!pass.succeeded.empty()) backoff.failures = 0;
  if (pass.ended_badly > 0) {
    backoff.failures += static_cast<int>(pass.ended_badly);
    backoff.last_failure = context_.simulation.Now();
  }

  for (const auto& [target, end] :
       {std::pair("FailureTarget", "Failed"), std::pair("SuccessCriteriaMet", "Complete")}) {
    if (!HasTrueCondition(job, target)) continue;
    pass.finish_type = end;
    pass.reason = TextAt(*ConditionOf(job, target), {"reason"});
    pass.message = TextAt(*ConditionOf(job, target), {"message"});
  }
  if (!pass.finish_type.empty()) return;
  const std::int64_t failed = IntAt(job, {"status", "failed"}) + static_cast<std::int64_t>(pass.failed.size());
  const std::int64_t deadline = IntAt(job, {"spec", "activeDeadlineSeconds"}, -1);
  if (failed > IntAt(job, {"spec", "backoffLimit"}, 6)) {
    pass.finish_type = "Failed";
    pass.reason = "BackoffLimitExceeded";
    pass.message = "Job has reached the specified backoff limit";
  } else if (deadline >= 0 && !is_suspended) {
    const Result<Time> start = ParseTime(TextAt(job, {"status", "startTime"}));
    const Duration left =
        start ? start->value + std::chrono::seconds(deadline) - context_.simulation.WallNow() : Duration::zero();
    if (left > Duration::zero()) {
      loop_.AddAfter(pass.key, left);
      return;
    }
    pass.finish_type = "Failed";
    pass.reason = "DeadlineExceeded";
    pass.message = "Job was active longer than specified deadline";
  }
}

void JobController::Manage(Pass& pass) {
  Json& job = pass.job;
  const bool is_suspended = IsTrueAt(job, {"spec", "suspend"});
  const std::int64_t parallelism = IntAt(job, {"spec", "parallelism"}, 1);
  const bool is_counted = job.At({"spec", "completions"}) || !job.At({"spec", "parallelism"});
  const std::int64_t completions = IntAt(job, {"spec", "completions"}, 1);
  const std::int64_t succeeded = IntAt(job, {"status", "succeeded"}) + static_cast<std::int64_t>(pass.succeeded.size());
  const auto active = static_cast<std::int64_t>(pass.active.size());
  std::int64_t wanted = is_counted      ? std::clamp<std::int64_t>(completions - succeeded, 0, parallelism)
                        : succeeded > 0 ? active
                                        : parallelism;
  if (is_suspended) wanted = 0;

  if (active > wanted) {
    Remove(pass, static_cast<std::size_t>(active - wanted));
  } else if (!is_suspended) {
    const std::int64_t missing = wanted - active - (WaitsForEnds(job) ? pass.terminating : 0);
    const Backoff& backoff = backoffs_[pass.key];
    const Duration left = backoff.last_failure + BackoffFor(backoff.failures) - context_.simulation.Now();
    if (missing > 0 && backoff.failures > 0 && left > Duration::zero()) {
      loop_.AddAfter(pass.key, left);
    } else if (missing > 0) {
      Create(pass, missing);
    }
  }

  const bool is_complete = is_counted ? succeeded >= completions : succeeded > 0;
  if (is_complete && pass.active.empty()) {
    pass.finish_type = "Complete";
    pass.reason = "CompletionsReached";
    pass.message = "Reached expected number of succeeded pods";
  } else if (is_suspended) {
    SetIfNews(job, {"Suspended", "True", "JobSuspended", "Job suspended"}, pass.now);
  } else {
    const bool was_suspended = HasTrueCondition(job, "Suspended");
    SetIfNews(job, {"Suspended", "False", "JobResumed", "Job resumed"}, pass.now);
    if (was_suspended) job["status"]["startTime"] = pass.now;  // The deadline counts from now.
  }
}

void JobController::Create(Pass& pass, std::int64_t count) {
  const std::string_view uid = UidOf(pass.job);
  Json pod = Json::MakeObject({{"apiVersion", "v1"}, {"kind", "Pod"}});
  Json& metadata = pod["metadata"];
  if (const Json* const from = pass.job.At({"spec", "template", "metadata"})) metadata = *from;
  metadata["generateName"] = pass.key.name + "-";
  metadata["namespace"] = pass.key.ns;
  for (const std::string_view prefix : {"", "batch.kubernetes.io/"}) {
    metadata["labels"][std::string(prefix) + "controller-uid"] = uid;
    metadata["labels"][std::string(prefix) + "job-name"] = pass.key.name;
  }
  metadata["finalizers"].Append(kTracking);
  metadata["ownerReferences"] = Json::MakeArray({ControllerReference(pass.job, "batch/v1", "Job")});
  if (const Json* const from = pass.job.At({"spec", "template", "spec"})) pod["spec"] = *from;
  for (std::int64_t i = 0; i < count; ++i) {
    const Result<ObjectPtr> created = context_.server.Create("pods", pod);
    if (!created) {
      pass.has_write_failed = true;
      events_.Record(pass.job, "Warning", "FailedCreate", "Error creating: " + created.error().message());
      return;
    }
    events_.Record(pass.job, "Normal", "SuccessfulCreate", "Created pod: " + std::string(NameOf(**created)));
    pass.active.push_back(*created);
  }
}

// Deletes surplus pods, which do not count as failed.
void JobController::Remove(Pass& pass, std::size_t count) {
  std::stable_sort(pass.active.begin(), pass.active.end(), [](const ObjectPtr& a, const ObjectPtr& b) {
    const auto worth = [](const Json& pod) {
      return std::tuple(!NodeOf(pod).empty(), PhaseOf(pod) == "Running", IsRunningAndReady(pod));
    };
    return worth(*a) < worth(*b);
  });
  for (std::size_t i = 0; i < count; ++i) {
    const ObjectPtr pod = pass.active.front();
    pass.active.erase(pass.active.begin());
    std::erase(pass.tracked, pod);
    if (IsRunningAndReady(*pod)) --pass.ready;
    ++pass.terminating;
    if (!RemoveTracking(*pod) || !context_.DeleteObject("pods", *pod)) pass.has_write_failed = true;
  }
}

void JobController::Finish(Pass& pass) {
  for (const ObjectPtr& pod : pass.active) {
    if (!context_.DeleteObject("pods", *pod)) pass.has_write_failed = true;
    ++pass.terminating;
  }
  pass.active.clear();
  pass.ready = 0;
  if (pass.finish_type != "Failed") return;
  for (const ObjectPtr& pod : pass.tracked) {  // Pods that have not ended count as failed now.
    if (!HasEnded(*pod) && !HasFailed(*pod, pass.job)) pass.failed.push_back(pod);
  }
}

bool JobController::Track(Pass& pass) {
  Json& status = pass.job["status"];
  if (!pass.active.empty() || status.Find("active")) status["active"] = pass.active.size();
  status["ready"] = pass.ready;
  status["terminating"] = pass.terminating;
  const bool is_success = pass.finish_type == "Complete";
  if (!pass.finish_type.empty()) {
    SetIfNews(pass.job, {is_success ? "SuccessCriteriaMet" : "FailureTarget", "True", pass.reason, pass.message},
              pass.now);
  }
  // Write the pods to be counted first, then remove their finalizers, then write the counters: so none is counted
  // twice.
  for (const auto& [field, pods] : {std::pair("succeeded", &pass.succeeded), std::pair("failed", &pass.failed)}) {
    for (const ObjectPtr& pod : *pods) status["uncountedTerminatedPods"][field].Append(UidOf(*pod));
  }
  if (!WriteStatus(pass)) return false;

  const bool takes_all = !pass.finish_type.empty() || IsBeingDeleted(pass.job);
  for (const ObjectPtr& pod : pass.tracked) {
    const bool has_ended = PhaseOf(*pod) == "Succeeded" || HasFailed(*pod, pass.job);
    if ((has_ended || takes_all) && !RemoveTracking(*pod)) return false;
  }

  for (const auto& [field, pods] : {std::pair("succeeded", &pass.succeeded), std::pair("failed", &pass.failed)}) {
    const auto count = static_cast<std::int64_t>(pods->size());
    if (count > 0) status[field] = IntAt(pass.job, {"status", field}) + count;
  }
  status["uncountedTerminatedPods"] = Json::MakeObject();
  if (!pass.finish_type.empty() && pass.terminating == 0 && !pass.has_write_failed) {
    SetIfNews(pass.job, {pass.finish_type, "True", pass.reason, pass.message}, pass.now);
    if (is_success) status["completionTime"] = pass.now;
  }
  return WriteStatus(pass);
}

bool JobController::WriteStatus(const Pass& pass) {
  return context_.Modify(kJobs, pass.key, UidOf(pass.job), "status", [&](Json& object) {
    const Json* const live = object.Find("status");
    const Json& wanted = *pass.job.Find("status");
    if (live && *live == wanted) return false;
    object["status"] = wanted;
    return true;
  });
}

bool JobController::CleanUp(const Json& job) {
  const ObjectKey key = KeyOf(job);
  bool is_done = true;
  for (const ObjectPtr& pod : context_.server.List("pods", key.ns)) {
    const Json* const owner = ControllerOf(*pod);
    const bool is_ours = owner && TextAt(*owner, {"uid"}) == UidOf(job);
    if (is_ours && HasFinalizer(*pod, kTracking)) is_done = RemoveTracking(*pod) && is_done;
  }
  const std::int64_t ttl = IntAt(job, {"spec", "ttlSecondsAfterFinished"}, -1);
  if (ttl < 0 || IsBeingDeleted(job)) return is_done;
  const Json* const end = ConditionOf(job, HasTrueCondition(job, "Complete") ? "Complete" : "Failed");
  const Result<Time> since = ParseTime(TextAt(*end, {"lastTransitionTime"}));
  const Duration left =
      since ? since->value + std::chrono::seconds(ttl) - context_.simulation.WallNow() : Duration::zero();
  if (left <= Duration::zero()) return context_.DeleteObject(kJobs, job, -1, "Foreground") && is_done;
  loop_.AddAfter(key, left);
  return is_done;
}

bool JobController::RemoveTracking(const Json& pod) {
  return context_.Modify("pods", KeyOf(pod), UidOf(pod), {},
                         [](Json& object) { return RemoveFinalizer(object, kTracking); });
}

bool JobController::ReleaseOrphan(const ObjectKey& key) {
  const ObjectPtr pod = context_.server.Get("pods", key);
  const Json* const owner = pod ? ControllerOf(*pod) : nullptr;
  if (!pod) return true;
  if (!owner) return RemoveTracking(*pod);
  const ObjectPtr job = context_.server.Get(kJobs, {key.ns, std::string(TextAt(*owner, {"name"}))});
  return (job && UidOf(*job) == TextAt(*owner, {"uid"})) || RemoveTracking(*pod);
}

}  // namespace kube::testing
