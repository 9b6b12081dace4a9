// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/job_pods.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "clientlib/model/json_writer.h"
#include "controllers/cluster/owners.h"
#include "controllers/elastic/elastic_children.h"
#include "controllers/frame/refusals.h"
#include "controllers/policy/cluster_objects.h"
#include "controllers/policy/pod_security.h"
#include "controllers/policy/pod_trouble.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using kube::Duration;
using kube::Json;

// Soon enough to find a new LimitRange, without a question for each pod of the namespace.
constexpr Duration kAskAgain = std::chrono::minutes(1);
// The cause of a refusal may pass soon: a quota that is full, a webhook that is being restarted.
constexpr Duration kSoon = std::chrono::seconds(5);
// A reconcile thread waits for the answer.
constexpr Duration kPatience = std::chrono::seconds(3), kLongestSilence = std::chrono::minutes(5);
constexpr int kMostInFlight = 4;
// Believe a refusal only if it comes twice. Some admission checks refuse once: the job would start by its template, and
// again when its pods turn out larger.
constexpr int kFirmRefusals = 2;
constexpr int kSoonRefusals = 12;  // After a minute of them, a cause that passes soon is unlikely.

// All that decides what the API server makes of the pods, except the job's own name.
std::string QuestionOf(const ElasticHorovodJob& job) {
  const api::ElasticHorovodJobSpec& spec = job.spec;
  Json parts = Json::MakeArray({spec.workers.image, spec.workers.gpus_per_worker, spec.workers.pod_template,
                                spec.launcher.image, spec.launcher.pod_template, spec.priority_class_name});
  for (const auto* extra : {&spec.containers, &spec.volumes}) {
    Json all = Json::MakeArray({});
    for (const Json& one : *extra) all.Append(one);
    parts.Append(std::move(all));
  }
  return job.metadata.ns + " " + kube::ToText(parts);
}

// Whether the two pods differ in which nodes can hold them, or how many.
bool IsOtherToNodes(const kube::Pod& a, const kube::Pod& b) {
  const PodShape x = ShapeOf(a), y = ShapeOf(b);
  return !(x.request == y.request) || x.node_selector != y.node_selector || !(x.node_affinity == y.node_affinity);
}

}  // namespace

void JobPods::Begin(const ElasticHorovodJob& job, Memory& memory) {
  const Memory before = std::exchange(memory, {});  // Keeps its question alive: the new one may be the same.
  memory.generation = job.metadata.generation;
  memory.worker.stated = std::make_shared<const kube::Pod>(WorkerPod(job));
  memory.launcher.stated = std::make_shared<const kube::Pod>(LauncherPodOf(job));
  std::erase_if(questions_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Question>& question = questions_[QuestionOf(job)];
  memory.question = question.lock();
  if (!memory.question) question = memory.question = std::make_shared<Question>();
}

template <typename F>
auto JobPods::WithMemoryLocked(const ElasticHorovodJob& job, F&& use) {
  return memory_.With(job.metadata, [&](Memory& memory) {
    if (!memory.question || memory.generation != job.metadata.generation) Begin(job, memory);
    return use(memory);
  });
}

Duration JobPods::AgeLeft(const Answer& answer) const {
  if (!answer.when) return Duration::zero();
  const bool is_soon = answer.refusal && answer.refusals <= kSoonRefusals;
  return (is_soon ? kSoon : kAskAgain) - (clock_.Now() - *answer.when);
}

JobPods::Answer JobPods::AnswerTo(Json pod, const std::string& ns, std::stop_token stop) const {
  kube::WriteOptions options;
  options.dry_run = true;
  options.timeout = kPatience;
  Answer answer;
  auto created = client_.Create(kube::KindOf<kube::Pod>(), ns, pod, options, stop);
  if (!created && FillIfRefused(created.error(), pod)) {
    answer.is_filled = true;
    created = client_.Create(kube::KindOf<kube::Pod>(), ns, pod, options, stop);
  }
  answer.when = clock_.Now();
  if (created) answer.pod = std::static_pointer_cast<const kube::Pod>(*created);
  else answer.refusal = std::move(created).error();
  return answer;
}

void JobPods::NoteLocked(const std::string& ns, const Answer& fresh) {
  if (!fresh.refusal || IsFinal(*fresh.refusal)) {
    silences_.erase(ns);
    return;
  }
  std::erase_if(silences_, [&](const auto& entry) { return entry.second.until + kLongestSilence < *fresh.when; });
  Silence& silence = silences_[ns];
  if (*fresh.when < silence.until) return;  // A question asked at the same time has failed already.
  const Duration asked_for = fresh.refusal->retry_after().value_or(Duration::zero());
  silence.pause = std::clamp(std::max(silence.pause * 2, asked_for), kSoon, kLongestSilence);
  silence.until = *fresh.when + silence.pause;
}

void JobPods::Ask(const ElasticHorovodJob& job, std::stop_token stop) {
  const std::string& ns = job.metadata.ns;
  std::shared_ptr<Question> question;
  bool is_worker_old, is_launcher_old;
  {
    std::lock_guard lock(mutex_);
    question = WithMemoryLocked(job, [](Memory& memory) { return memory.question; });
    is_worker_old = AgeLeft(question->worker) <= Duration::zero();
    is_launcher_old = AgeLeft(question->launcher) <= Duration::zero();
    const auto silence = silences_.find(ns);
    const bool is_silent = silence != silences_.end() && clock_.Now() < silence->second.until;
    if (!(is_worker_old || is_launcher_old) || is_silent) return;
    int& in_flight = in_flight_[ns];
    if (in_flight >= kMostInFlight) return;
    ++in_flight;
  }
  // False: the API server cannot answer now, whatever it is asked.
  const auto ask = [&](Json pod, Answer& answer) {
    const kube::TimePoint asked = clock_.Now();
    Answer fresh = AnswerTo(std::move(pod), ns, stop);
    const bool can_answer = !fresh.refusal || IsFinal(*fresh.refusal);
    std::lock_guard lock(mutex_);
    NoteLocked(ns, fresh);
    if (!fresh.pod) fresh.pod = answer.pod;
    // Count refusals of questions asked at the same time once; no answer leaves the count as it is.
    const bool is_same_time = answer.when && asked <= *answer.when;
    if (fresh.refusal) fresh.refusals = answer.refusals + (can_answer && !is_same_time ? 1 : 0);
    answer = std::move(fresh);
    return can_answer;
  };
  const bool goes_on = !is_worker_old || ask(WorkerToAsk(job), question->worker);
  if (goes_on && is_launcher_old) (void)ask(LauncherToAsk(job), question->launcher);
  std::lock_guard lock(mutex_);
  if (--in_flight_[ns] == 0) in_flight_.erase(ns);
}

void JobPods::Make(Made& made, const kube::PodSpec& spec) {
  auto pod = std::make_shared<kube::Pod>(*made.stated);
  pod->spec = spec;
  pod->spec.node_name = {};
  pod->spec.scheduling_gates.clear();
  made.is_changed = IsOtherToNodes(*pod, *made.stated);
  made.made = std::move(pod);
}

void JobPods::Learn(const ElasticHorovodJob& job, const kube::Pod& worker) {
  std::lock_guard lock(mutex_);
  WithMemoryLocked(job, [&](Memory& memory) {
    Make(memory.worker, WithoutPin(worker));
    memory.worker.is_learnt = true;
  });
}

JobPod JobPods::PodLocked(const std::string& ns, Made& made, const Answer& answer) const {
  if (answer.pod && made.answer != answer.pod) {
    // A pod learnt from the cluster counts until an answer shows that something has changed.
    if (!made.is_learnt || (made.answer && IsOtherToNodes(*answer.pod, *made.answer))) {
      Make(made, answer.pod->spec);
      made.is_learnt = false;
    }
    made.answer = answer.pod;
  }
  JobPod result;
  result.pod = made.made ? made.made : made.stated;
  result.is_changed = made.is_changed;
  result.foreign_gate = ForeignGateOf(answer.pod ? *answer.pod : *made.stated);
  result.is_known = made.made || answer.refusals >= kFirmRefusals;
  result.refusal = answer.refusal;
  result.is_refused = answer.refusal && answer.refusals >= kFirmRefusals && IsFinal(*answer.refusal) &&
                      QuotaRefusalOf(*answer.refusal).empty() && !IsOfEndingNamespace(*answer.refusal);
  result.needs_filling = answer.is_filled;
  const kube::TimePoint now = clock_.Now();
  const auto silence = silences_.find(ns);
  if (silence != silences_.end() && silence->second.until > now) {
    result.look_again = silence->second.until - now;
  } else {
    // The minimum is for a pass that could not ask because too many others were asking.
    result.look_again = std::max<Duration>(AgeLeft(answer), std::chrono::seconds(1));
  }
  return result;
}

JobPod JobPods::Worker(const ElasticHorovodJob& job) {
  std::lock_guard lock(mutex_);
  return WithMemoryLocked(
      job, [&](Memory& memory) { return PodLocked(job.metadata.ns, memory.worker, memory.question->worker); });
}

JobPod JobPods::Launcher(const ElasticHorovodJob& job) {
  std::lock_guard lock(mutex_);
  return WithMemoryLocked(
      job, [&](Memory& memory) { return PodLocked(job.metadata.ns, memory.launcher, memory.question->launcher); });
}

bool JobPods::HasVolumes(const kube::ObjectKey& job) {
  bool has_volumes = false;
  memory_.IfKept(job, [&](const Memory& memory) {
    has_volumes = !memory.worker.stated->spec.volumes.empty() || !memory.launcher.stated->spec.volumes.empty();
  });
  return has_volumes;
}

void JobPods::Forget(const kube::ObjectKey& job) { memory_.Forget(job); }

}  // namespace grus
