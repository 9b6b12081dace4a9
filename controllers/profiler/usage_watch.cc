// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/usage_watch.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "clientlib/client/resource_path.h"
#include "clientlib/model/core_v1.h"
#include "controllers/policy/run_job.h"
#include "controllers/profiler/node_gpus.h"
#include "controllers/profiler/turns.h"
#include "controllers/telemetry/pod_usage.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using kube::Action;
using kube::Json;
using kube::KindOf;
using kube::ObjectKey;

// A run that is over and cannot be recorded is given up so long after its end, or after this process began to lead.
constexpr kube::Duration kGiveUp = std::chrono::minutes(15);
constexpr int kSweepsToSeeAll = 3, kSweepsBetweenSearches = 60;
// An ElasticHorovodJob says how it ended soon after its workers went.
constexpr kube::Duration kLastWord = std::chrono::minutes(2);
constexpr kube::Duration kLongestPause = std::chrono::minutes(64);

// What the cache knows of a pod that the API server no longer has.
Json TemplateOf(const kube::Pod& pod) {
  Json containers = Json::MakeArray();
  for (const kube::Container& container : pod.spec.containers) containers.Append(kube::ToJson(container));
  return Json::MakeObject({{"spec", Json::MakeObject({{"containers", std::move(containers)}})}});
}

JobRef JobOfRun(const api::WorkloadRun& run) {
  RunJob job = RunJobOf(run.job);
  return {std::move(job.kind), std::move(job.key), run.uid};
}

}  // namespace

UsageWatch::UsageWatch(kube::Client& client, UsageCaches caches, ProfileStore& store, Prometheus& prometheus,
                       UsageSource source, const kube::Clock& clock, const kube::Log& log)
    : client_(client),
      caches_(caches),
      store_(store),
      source_(std::move(source)),
      clock_(clock),
      log_(log),
      questions_(prometheus, source_, clock, log),
      characters_(prometheus, source_.url, source_.selector, clock, log) {
  if (source_.writes_alnair_annotations) annotations_.emplace(client, caches.pods, source_, clock, log);
}

void UsageWatch::FeedQueue(kube::WorkQueue& queue) {
  feed_.Open(queue);
  caches_.pods.AddHandler([this](const kube::Change& change, bool) { Note(change); });
  feed_.Add(Sweep());
}

void UsageWatch::Begin() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(has_begun_, true)) return;
    for (const auto& profile : caches_.profiles.List<api::WorkloadProfile>()) {
      for (const api::WorkloadRun& run : profile->spec.runs) {
        if (run.end) continue;
        recorded_[JobOfRun(run).Id()] = {profile->spec.fingerprint, profile->spec.workload};
      }
    }
  }
  began_ = clock_.Now();
  next_sweep_ = began_ + kEvery;
  for (const auto& pod : caches_.pods.List<kube::Pod>()) See(pod);  // Later ones are noted already.
}

void UsageWatch::Note(const kube::Change& change) {
  const auto* before = static_cast<const kube::Pod*>(change.before.get());
  const auto pod = std::static_pointer_cast<const kube::Pod>(change.after);
  const bool is_same = before != nullptr && pod && before->metadata.uid == pod->metadata.uid;
  {
    std::lock_guard lock(mutex_);
    if (!has_begun_) return;
    if (before != nullptr && !is_same) book_.Remove(before->metadata.Key(), before->metadata.uid, {clock_.WallNow()});
  }
  if (pod && !(is_same && before->status.phase == pod->status.phase)) See(pod);
}

void UsageWatch::See(const std::shared_ptr<const kube::Pod>& pod) {
  const auto node = caches_.nodes.Get<kube::Node>({"", pod->spec.node_name.str()});
  const std::optional<GpuPod> seen = GpuPodOf(*pod, node.get(), {clock_.WallNow()});
  if (!seen) return;
  // A kubelet refused it: it has used nothing, and of a flood of these each would be a run.
  const bool never_ran = seen->ended && pod->status.container_statuses.empty();
  const std::string owner = seen->owner->Id().ToString();
  {
    std::lock_guard lock(mutex_);
    if (never_ran && !book_.Has(*seen)) return;
    book_.See(*seen);
    if (!unresolved_.try_emplace(owner, Unresolved{*seen, pod}).second) return;
  }
  feed_.Add({seen->key.ns, owner}, News::kNow, true);
}

kube::Result<Action> UsageWatch::Reconcile(const ObjectKey& key, std::stop_token stop) {
  if (key == Look()) {
    const bool has_more = characters_.LookAtNext([this](const JobRef& job) { return OnNodes(job); }, std::move(stop));
    return has_more ? Action::After(std::chrono::seconds(1)) : Action::AwaitChange();
  }
  if (key != Sweep()) return Resolve(key, std::move(stop));
  Begin();
  if (clock_.Now() >= next_sweep_) {
    next_sweep_ = clock_.Now() + kEvery;
    AskAll(stop);
    if (characters_.Choose(jobs_)) feed_.Add(Look(), News::kNow, true);
  }
  constexpr kube::Duration kPause = std::chrono::seconds(1);  // After the writes of a second.
  return Action::After(WriteSome(stop) ? kPause : std::max(next_sweep_ - clock_.Now(), kPause));
}

void UsageWatch::AskAll(std::stop_token stop) {
  const UsageColumn::NameOf name_of = [this](const ObjectKey& pod) {
    std::lock_guard lock(mutex_);
    return book_.NameOf(pod);
  };
  const UsageAnswer answer = questions_.Ask(name_of, std::move(stop));
  EndInterval(answer);
  if (annotations_) AnnotateSoon(answer);
}

void UsageWatch::AnnotateSoon(const UsageAnswer& answer) {
  const kube::Time now{clock_.WallNow()};
  std::vector<RunBook::Running> running;
  {
    std::lock_guard lock(mutex_);
    running = book_.RunningPods(now, std::chrono::duration<double>(answer.reach).count());
  }
  // Of the time before it began this process does not know which pods had whose names.
  if (clock_.Now() - began_ < answer.reach) {
    for (auto& [pod, is_alone] : running) is_alone = is_alone && now.value - pod.started.value >= answer.reach;
  }
  annotations_->Take(running, answer);
}

bool UsageWatch::WriteSome(std::stop_token stop) {
  int left = kWritesPerSecond;
  if (annotations_) {
    left -= annotations_->WriteSome(to_record_.empty() ? kAnnotationsPerSecond : kAnnotationsBesideRuns, stop);
  }
  while (!to_record_.empty() && !stop.stop_requested()) {
    if (std::optional<JobRun> run = RunOf(to_record_.front())) {
      const std::optional<int> writes = Record(*std::move(run), left, stop);
      if (!writes) return true;
      left -= *writes;
    }
    to_record_.pop_front();
  }
  return annotations_ && annotations_->has_more() && !stop.stop_requested();
}

void UsageWatch::EndInterval(const UsageAnswer& answer) {
  const auto gpus_of = [this](const std::string& name) {
    const auto node = caches_.nodes.Get<kube::Node>({"", name});
    return node ? NodeGpusOf(*node) : NodeGpus();
  };
  const kube::TimePoint now = clock_.Now();
  const kube::Duration since = now - std::exchange(last_sweep_, now).value_or(now - UsageQuestions::kShortest);
  const double window = std::chrono::duration<double>(since).count();
  const double reach = std::chrono::duration<double>(answer.reach).count();
  std::lock_guard lock(mutex_);
  jobs_ = book_.EndInterval(answer.usage, {clock_.WallNow()}, window, reach, gpus_of);
  // What was left of the last interval is among these too. Those that are over do not wait for the others' first word.
  to_record_.clear();
  lost_.clear();
  for (const bool is_over : {true, false}) {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      // Not always the same is last.
      const JobNow& job = jobs_[(i + static_cast<std::size_t>(sweeps_)) % jobs_.size()];
      if (job.is_over == is_over) to_record_.push_back(job.ref);
    }
  }
  TakeTurns(to_record_, [](const JobRef& job) { return job.key.ns.str(); });
  std::set<JobId> ids;
  for (const JobNow& job : jobs_) ids.insert(job.ref.Id());
  std::erase_if(records_, [&](const auto& record) { return !ids.contains(record.first); });
  if (++sweeps_ % kSweepsBetweenSearches == kSweepsToSeeAll) AddLostRuns();
}

std::vector<JobNow> UsageWatch::RunningJobs() const {
  std::lock_guard lock(mutex_);
  std::vector<JobNow> running;
  std::ranges::copy_if(jobs_, std::back_inserter(running), [](const JobNow& job) { return !job.is_over; });
  return running;
}

std::optional<JobOnNodes> UsageWatch::OnNodes(const JobRef& job) {
  std::vector<GpuPod> pods;
  {
    std::lock_guard lock(mutex_);
    pods = book_.PodsOf(job.Id());
  }
  if (pods.empty()) return std::nullopt;
  std::ranges::sort(pods, {}, &GpuPod::key);
  JobOnNodes found{.pods = {.ns = pods.front().key.ns}};
  std::set<std::string> nodes;
  std::set<double> cores, memories;  // Of a pod, and of a GPU.
  for (const GpuPod& pod : pods) {
    nodes.insert(pod.node.str());
    found.gpus += pod.gpus;
    found.since = std::max(found.since, pod.started);
    const auto node = caches_.nodes.Get<kube::Node>({"", pod.node.str()});
    memories.insert(node ? NodeGpusOf(*node).memory : 0);
    const auto object = caches_.pods.Get<kube::Pod>(pod.key);
    cores.insert(object ? CoreLimitOf(*object).value_or(0) : 0);
    if (found.pods.names.size() < CharacterWatch::kMostPods) found.pods.names.push_back(pod.key.name.str());
  }
  if (cores.size() == 1) found.cores_of_pod = *cores.begin();
  if (memories.size() == 1) found.gpu_memory = *memories.begin();
  found.nodes = static_cast<std::int32_t>(nodes.size());
  return found;
}

void UsageWatch::AddLostRuns() {
  std::set<JobId> known;
  for (const JobRef& job : to_record_) known.insert(job.Id());
  for (const auto& profile : caches_.profiles.List<api::WorkloadProfile>()) {
    for (const api::WorkloadRun& run : profile->spec.runs) {
      const JobRef job = JobOfRun(run);
      if (run.end || !source_.Sees(job.key.ns) || known.contains(job.Id())) continue;
      JobRun& lost = lost_[job.Id()] = {job, run};
      lost.run.end = EarliestEndOf(run);  // Nobody saw it.
      records_[job.Id()] = {.identity = {profile->spec.fingerprint, profile->spec.workload},
                            .was_resumed = true,
                            .written = WrittenRun(run)};
      to_record_.push_back(job);
    }
  }
  recorded_.clear();
}

kube::Result<Action> UsageWatch::Resolve(const ObjectKey& owner, std::stop_token stop) {
  std::optional<Unresolved> sample;
  {
    std::lock_guard lock(mutex_);
    const auto at = unresolved_.find(owner.name);
    if (at == unresolved_.end()) return Action::AwaitChange();
    sample = at->second;
  }
  const kube::Result<JobRef> root = RootOf(client_, PodOwnerOf(*sample->object), source_.owner_kinds, stop);
  if (!root) return root.error();
  std::optional<WorkloadIdentity> identity;
  {
    std::lock_guard lock(mutex_);
    book_.SetRoot(sample->pod.owner->Id(), *root);
    unresolved_.erase(owner.name);
    if (records_.contains(root->Id())) return Action::AwaitChange();
    if (const auto recorded = recorded_.find(root->Id()); recorded != recorded_.end()) identity = recorded->second;
  }
  if (!identity) identity = IdentityFor(*root, *sample->object, stop);
  std::lock_guard lock(mutex_);
  records_.try_emplace(root->Id(), RunRecord{.identity = *std::move(identity)});
  return Action::AwaitChange();
}

WorkloadIdentity UsageWatch::IdentityFor(const JobRef& job, const kube::Pod& pod, std::stop_token stop) {
  if (job.kind == KindOf<ElasticHorovodJob>().kind) {
    const auto live = caches_.jobs.Get<ElasticHorovodJob>(job.key);
    if (live && live->metadata.uid == job.uid) return IdentityOf(live->spec, live->metadata, store_.trust());
  }
  const auto body = client_.GetRaw(kube::ObjectPath(KindOf<kube::Pod>(), pod.metadata.Key()), std::move(stop));
  const kube::Result<Json> object = body ? kube::ParseJson(*body) : kube::Result<Json>(Json());
  const bool is_it = object && object->At({"spec", "containers"}) != nullptr;
  WorkloadIdentity identity = is_it ? IdentityOfRunningPod(*object, pod.metadata, store_.trust())
                                    : IdentityOfPod(TemplateOf(pod), pod.metadata, store_.trust());
  // Whoever reads profiles need not read what others' programs are told.
  identity.workload.command.clear();
  identity.workload.args.clear();
  return identity;
}

std::optional<JobRun> UsageWatch::RunOf(const JobRef& job) const {
  if (const auto lost = lost_.find(job.Id()); lost != lost_.end()) return lost->second;
  std::lock_guard lock(mutex_);
  return book_.RunOf(job.Id());
}

bool UsageWatch::IsResolved(const JobRef& job) const {
  std::lock_guard lock(mutex_);
  return records_.contains(job.Id());
}

std::optional<api::WorkloadRun> UsageWatch::RunInProfile(const std::string& fingerprint, const JobRef& job) const {
  const auto profile = caches_.profiles.Get<api::WorkloadProfile>({"", fingerprint});
  if (!profile) return std::nullopt;
  const auto run = std::ranges::find(profile->spec.runs, job.uid.view(), &api::WorkloadRun::uid);
  return run == profile->spec.runs.end() ? std::nullopt : std::optional(*run);
}

std::optional<RunRecord> UsageWatch::RecordOf(const JobRef& job) {
  std::lock_guard lock(mutex_);
  const auto at = records_.find(job.Id());
  if (at == records_.end()) return std::nullopt;
  if (std::exchange(at->second.was_resumed, true)) return at->second;
  const auto before = RunInProfile(at->second.identity.fingerprint, job);
  if (!before) return at->second;
  book_.Resume(job.Id(), *before);
  at->second.written.emplace(*before);
  if (before->character) characters_.Resume(job.Id(), *before->character);
  return std::nullopt;  // The next sweep has both.
}

std::optional<int> UsageWatch::Record(JobRun now, int left, std::stop_token stop) {
  // How long it has been known here.
  const kube::Duration ago =
      now.is_over() ? std::min(clock_.WallNow() - now.run.end->value, clock_.Now() - began_) : kube::Duration::zero();
  const std::optional<RunRecord> known = RecordOf(now.job);
  if (!known) {
    if (ago > kGiveUp && !IsResolved(now.job)) Forget(now.job);
    return 0;
  }
  now.run.character = characters_.Of(now.job.Id());
  // Of a run that ended while nobody looked, what was recorded stays.
  if (!now.run.character && now.is_over() && known->written && known->written->has_character) {
    if (const auto before = RunInProfile(known->identity.fingerprint, now.job)) now.run.character = before->character;
  }
  const bool is_empty = now.run.usage == api::ResourceUsage();  // No source told anything.
  if (is_empty || !known->IsWorthWriting(now.run)) {
    const bool may_be_told = is_empty && questions_.is_failing() && ago <= kGiveUp;
    if (now.is_over() && !may_be_told) Forget(now.job);
    return 0;
  }
  if (clock_.Now() < known->not_before) return 0;
  NewSpeeds record{known->identity.fingerprint, known->identity.workload};
  api::WorkloadRun& run = record.runs.emplace_back(now.run);
  const auto job = caches_.jobs.Get<ElasticHorovodJob>(now.job.key);
  if (now.is_over() && job && job->metadata.uid == now.job.uid) {  // Its workers never say whether it succeeded.
    if (job->status.phase == "Succeeded") run.outcome = api::RunOutcome::kSucceeded;
    else if (job->status.phase == "Failed") run.outcome = api::RunOutcome::kFailed;
    else if (ago < kLastWord && !job->metadata.is_being_deleted()) return 0;
  }
  const int writes = store_.WritesOf(record.fingerprint, record.workload.ns);
  if (writes > left) return std::nullopt;
  const kube::Status saved = store_.Save(record, std::move(stop));
  NoteWritten(now, run, saved);
  if (saved ? now.is_over() : ago > kGiveUp) Forget(now.job);
  return writes;
}

void UsageWatch::NoteWritten(const JobRun& now, const api::WorkloadRun& run, const kube::Status& saved) {
  bool is_first = false;
  {
    std::lock_guard lock(mutex_);
    const auto at = records_.find(now.job.Id());
    if (at == records_.end()) return;
    RunRecord& record = at->second;
    if (saved) {
      record.written.emplace(run);
      record.failures = 0;
    } else {
      is_first = record.failures++ == 0;
      record.not_before = clock_.Now() + std::min(kLongestPause, kEvery * (1 << std::min(record.failures, 6)));
    }
  }
  if (is_first) {
    log_.Warn("what a job used could not be recorded",
              {{"job", now.job.ToString()}, {"error", saved.error().message()}});
  }
}

void UsageWatch::Forget(const JobRef& job) {
  std::lock_guard lock(mutex_);
  // Its pods may have come back meanwhile: then it goes on.
  if (book_.Forget(job.Id())) records_.erase(job.Id());
}

}  // namespace grus
