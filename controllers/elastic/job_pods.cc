// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/job_pods.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "clientlib/model/json_writer.h"
#include "controllers/elastic/elastic_children.h"
#include "controllers/policy/cluster_objects.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using kube::Duration;
using kube::Json;

// A LimitRange that is made later is found; answers are not asked for with each pod of the namespace.
constexpr Duration kAskAgain = std::chrono::minutes(1);
// What refuses may stop soon: a quota that is full, a webhook that is being restarted.
constexpr Duration kAskAgainAtMost = std::chrono::seconds(5);

// What decides what the API server makes of the pods, but for the job's own name.
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

// Whether other nodes can hold it, or fewer of it.
bool IsOtherToNodes(const kube::Pod& a, const kube::Pod& b) {
  const PodShape x = ShapeOf(a), y = ShapeOf(b);
  return !(x.request == y.request) || x.node_selector != y.node_selector || !(x.node_affinity == y.node_affinity);
}

}  // namespace

bool IsFinal(const kube::Error& refusal) {
  const kube::ErrorCode code = refusal.code();
  return code == kube::ErrorCode::kForbidden || code == kube::ErrorCode::kInvalid ||
         code == kube::ErrorCode::kInvalidArgument;
}

JobPods::Memory& JobPods::MemoryLocked(const ElasticHorovodJob& job) {
  Memory& memory = memory_[job.metadata.Key()];
  if (memory.question && memory.uid == job.metadata.uid && memory.generation == job.metadata.generation) return memory;
  const Memory before = std::exchange(memory, {});  // Its question may be the same.
  memory.uid = job.metadata.uid;
  memory.generation = job.metadata.generation;
  memory.worker.stated = std::make_shared<const kube::Pod>(WorkerPod(job));
  memory.launcher.stated = std::make_shared<const kube::Pod>(LauncherPodOf(job));
  std::erase_if(questions_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Question>& question = questions_[QuestionOf(job)];
  memory.question = question.lock();
  if (!memory.question) question = memory.question = std::make_shared<Question>();
  return memory;
}

Duration JobPods::AgeLeft(const Answer& answer) const {
  if (!answer.when) return Duration::zero();
  return (answer.refusal ? kAskAgainAtMost : kAskAgain) - (clock_.Now() - *answer.when);
}

JobPods::Answer JobPods::AnswerTo(const Json& workload, const std::string& ns, std::stop_token stop) const {
  kube::WriteOptions options;
  options.dry_run = true;
  auto created = client_.Create(kube::KindOf<kube::Pod>(), ns, PodOfTemplate(workload), options, stop);
  Answer answer;
  answer.when = clock_.Now();
  if (created) answer.pod = std::static_pointer_cast<const kube::Pod>(*created);
  else answer.refusal = std::move(created).error();
  return answer;
}

void JobPods::Ask(const ElasticHorovodJob& job, std::stop_token stop) {
  std::shared_ptr<Question> question;
  bool is_worker_old, is_launcher_old;
  {
    std::lock_guard lock(mutex_);
    question = MemoryLocked(job).question;
    if (clock_.Now() < busy_until_) return;
    is_worker_old = AgeLeft(question->worker) <= Duration::zero();
    is_launcher_old = AgeLeft(question->launcher) <= Duration::zero();
  }
  // False: the API server cannot answer now, whatever it is asked.
  const auto ask = [&](const Json& workload, Answer& answer) {
    Answer fresh = AnswerTo(workload, job.metadata.ns, stop);
    const bool can_answer = !fresh.refusal || IsFinal(*fresh.refusal);
    std::lock_guard lock(mutex_);
    if (fresh.refusal && fresh.refusal->retry_after()) busy_until_ = *fresh.when + *fresh.refusal->retry_after();
    if (!fresh.pod) fresh.pod = answer.pod;
    answer = std::move(fresh);
    return can_answer;
  };
  if (is_worker_old && !ask(MakeWorkers(job, {1, 1, false, false}), question->worker)) return;
  if (is_launcher_old) (void)ask(MakeLauncher(job), question->launcher);
}

JobPod JobPods::PodLocked(Made& made, const Answer& answer) const {
  if (answer.pod && made.answer != answer.pod) {
    auto pod = std::make_shared<kube::Pod>(*made.stated);
    pod->spec = answer.pod->spec;
    made.is_changed = IsOtherToNodes(*pod, *made.stated);
    made.made = std::move(pod);
    made.answer = answer.pod;
  }
  JobPod result;
  result.pod = made.made ? made.made : made.stated;
  result.is_changed = made.is_changed;
  result.is_known = answer.pod || (answer.refusal && IsFinal(*answer.refusal));
  result.refusal = answer.refusal;
  if (clock_.Now() < busy_until_) result.look_again = busy_until_ - clock_.Now();
  if (!answer.when || result.look_again) return result;
  // A pass that could not ask comes back when it can.
  const Duration left = AgeLeft(answer);
  const bool was_just_asked = *answer.when == clock_.Now();
  result.look_again = was_just_asked || left <= Duration::zero() ? kAskAgain : left;
  return result;
}

JobPod JobPods::Worker(const ElasticHorovodJob& job) {
  std::lock_guard lock(mutex_);
  Memory& memory = MemoryLocked(job);
  return PodLocked(memory.worker, memory.question->worker);
}

JobPod JobPods::Launcher(const ElasticHorovodJob& job) {
  std::lock_guard lock(mutex_);
  Memory& memory = MemoryLocked(job);
  return PodLocked(memory.launcher, memory.question->launcher);
}

bool JobPods::HasVolumes(const kube::ObjectKey& job) const {
  std::lock_guard lock(mutex_);
  const auto it = memory_.find(job);
  return it != memory_.end() &&
         (!it->second.worker.stated->spec.volumes.empty() || !it->second.launcher.stated->spec.volumes.empty());
}

void JobPods::Forget(const kube::ObjectKey& job) {
  std::lock_guard lock(mutex_);
  memory_.erase(job);
}

}  // namespace grus
