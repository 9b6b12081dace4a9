// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/usage_watch.h"

#include <algorithm>
#include <utility>

#include "clientlib/client/resource_path.h"
#include "clientlib/model/core_v1.h"
#include "controllers/telemetry/pod_usage.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using kube::Action;
using kube::Json;
using kube::KindOf;
using kube::ObjectKey;

// A run that is over and cannot be recorded is given up then.
constexpr kube::Duration kGiveUp = std::chrono::minutes(15);
// The newest sample may be this old when it is asked for.
constexpr std::chrono::seconds kScrapeLag{5}, kShortest{60}, kLongest{600};

// Volumes that the API server adds to each pod, with a name that differs each time.
void DropTokenVolumes(Json& spec) {
  const auto is_token = [](const Json& item) {
    const Json* name = item.Find("name");
    return name != nullptr && name->AsString() != nullptr && name->AsString()->starts_with("kube-api-access-");
  };
  const auto drop = [&](Json* list) {
    if (list != nullptr && list->AsArray() != nullptr) std::erase_if(*list->AsArray(), is_token);
  };
  drop(spec.Find("volumes"));
  Json* containers = spec.Find("containers");
  if (containers == nullptr || containers->AsArray() == nullptr) return;
  for (Json& container : *containers->AsArray()) drop(container.Find("volumeMounts"));
}

// What the cache knows of a pod that the API server no longer has.
Json TemplateOf(const kube::Pod& pod) {
  Json containers = Json::MakeArray();
  for (const kube::Container& container : pod.spec.containers) containers.Append(kube::ToJson(container));
  return Json::MakeObject({{"spec", Json::MakeObject({{"containers", std::move(containers)}})}});
}

}  // namespace

UsageWatch::UsageWatch(kube::Client& client, UsageCaches caches, ProfileStore& store, Prometheus& prometheus,
                       std::string url, const kube::Clock& clock, const kube::Log& log)
    : client_(client),
      caches_(caches),
      store_(store),
      prometheus_(prometheus),
      url_(std::move(url)),
      clock_(clock),
      log_(log) {}

void UsageWatch::FeedQueue(kube::WorkQueue& queue) {
  feed_.Open(queue);
  caches_.pods.AddHandler([this](const kube::Change& change, bool) { Note(change); });
  feed_.AddAfter(Sweep(), kEvery);
}

void UsageWatch::Note(const kube::Change& change) {
  const kube::Time now{clock_.WallNow()};
  const auto* pod = static_cast<const kube::Pod*>(change.after.get());
  const auto* before = static_cast<const kube::Pod*>(change.before.get());
  const bool is_same = before != nullptr && pod != nullptr && before->metadata.uid == pod->metadata.uid;
  if (before != nullptr && !is_same) {
    std::lock_guard lock(mutex_);
    book_.Remove(before->metadata.uid, now);
  }
  if (pod == nullptr || (is_same && before->status.phase == pod->status.phase)) return;
  const std::optional<GpuPod> seen = GpuPodOf(*pod, now);
  if (!seen) return;
  {
    std::lock_guard lock(mutex_);
    book_.See(*seen);
    if (!unresolved_.try_emplace(seen->owner.Id(), *seen).second) return;
  }
  feed_.Add({seen->key.ns, seen->owner.Id()}, News::kNow, true);
}

kube::Result<Action> UsageWatch::Reconcile(const ObjectKey& key, std::stop_token stop) {
  if (key != Sweep()) return Resolve(key, std::move(stop));
  if (clock_.Now() >= next_sweep_) {
    next_sweep_ = clock_.Now() + kEvery;
    EndInterval(Ask(stop));
  }
  for (int written = 0; !to_record_.empty() && !stop.stop_requested();) {
    if (written == kWritesPerSecond) return Action::After(std::chrono::seconds(1));
    const JobRun run = std::move(to_record_.front());
    to_record_.pop_front();
    if (Record(run, stop)) ++written;
  }
  return Action::After(std::max(next_sweep_ - clock_.Now(), kube::Duration::zero()));
}

void UsageWatch::EndInterval(const UsageByPod& usage) {
  const auto type_of = [this](const std::string& name) {
    const auto node = caches_.nodes.Get<kube::Node>({"", name});
    return node ? std::string(node->metadata.Label(kGpuProductLabel)) : std::string();
  };
  std::lock_guard lock(mutex_);
  const std::vector<JobRun> runs = book_.EndInterval(usage, {clock_.WallNow()}, type_of);
  to_record_.assign(runs.begin(), runs.end());  // What was left of the last interval is in the new runs too.
  std::set<std::string> known;
  for (const JobRun& run : runs) known.insert(run.job.Id());
  std::erase_if(workloads_, [&](const auto& workload) { return !known.contains(workload.first); });
}

kube::Result<Action> UsageWatch::Resolve(const ObjectKey& owner, std::stop_token stop) {
  GpuPod sample;
  {
    std::lock_guard lock(mutex_);
    const auto at = unresolved_.find(owner.name);
    if (at == unresolved_.end()) return Action::AwaitChange();
    sample = at->second;
  }
  const kube::Result<JobRef> root = RootOf(client_, sample.owner, stop);
  if (!root) return root.error();
  bool is_known = false;
  {
    std::lock_guard lock(mutex_);
    book_.SetRoot(owner.name, *root);
    is_known = workloads_.contains(root->Id());
  }
  if (!is_known) {
    const auto pod = caches_.pods.Get<kube::Pod>(sample.key);
    WorkloadIdentity identity = IdentityFor(*root, pod ? *pod : kube::Pod(), stop);
    std::lock_guard lock(mutex_);
    workloads_.try_emplace(root->Id(), Workload{std::move(identity), false, {}});
  }
  std::lock_guard lock(mutex_);
  unresolved_.erase(owner.name);
  return Action::AwaitChange();
}

WorkloadIdentity UsageWatch::IdentityFor(const JobRef& job, const kube::Pod& pod, std::stop_token stop) {
  if (job.kind == KindOf<ElasticHorovodJob>().kind) {
    const auto live = caches_.jobs.Get<ElasticHorovodJob>(job.key);
    if (live && live->metadata.uid == job.uid) return IdentityOf(live->spec, live->metadata, store_.trust());
  }
  kube::ObjectMeta metadata = pod.metadata;
  metadata.ns = job.key.ns;
  const auto body = client_.GetRaw(kube::ObjectPath(KindOf<kube::Pod>(), pod.metadata.Key()), std::move(stop));
  kube::Result<Json> object = body ? kube::ParseJson(*body) : kube::Result<Json>(TemplateOf(pod));
  if (!object) object = TemplateOf(pod);
  if (Json* spec = object->Find("spec")) DropTokenVolumes(*spec);
  return IdentityOfPod(*object, metadata, store_.trust());
}

UsageByPod UsageWatch::Ask(std::stop_token stop) {
  const kube::TimePoint now = clock_.Now();
  const auto last = std::exchange(last_asked_, now);
  const auto since = last ? std::chrono::ceil<std::chrono::seconds>(now - *last) + kScrapeLag : kShortest;
  UsageByPod usage;
  for (const UsageQuery& query : UsageQueries(std::clamp<std::chrono::seconds>(since, kShortest, kLongest).count())) {
    const kube::Status asked = prometheus_.AskAll(
        url_, query.text, [&](const QuerySample& sample) { AddRow(query, sample.labels, sample.value, usage); }, stop);
    if (asked) {
      failing_.erase(query.name);
    } else if (!stop.stop_requested() && failing_.insert(query.name).second) {
      log_.Warn("what jobs use is not known", {{"of", query.name}, {"error", asked.error().message()}});
    }
  }
  return usage;
}

bool UsageWatch::IsWorthWriting(const JobRun& now, const Workload& known) const {
  if (!known.written) return true;
  const api::WorkloadRun& before = *known.written;
  return now.is_over != before.end.has_value() || now.run.gpus > before.gpus || IsNews(before.usage, now.run.usage);
}

std::optional<UsageWatch::Workload> UsageWatch::WorkloadOf(const JobRef& job) {
  std::lock_guard lock(mutex_);
  const auto at = workloads_.find(job.Id());
  if (at == workloads_.end()) return std::nullopt;
  if (std::exchange(at->second.was_resumed, true)) return at->second;
  const auto profile = caches_.profiles.Get<api::WorkloadProfile>({"", at->second.identity.fingerprint});
  if (!profile) return at->second;
  const auto before = std::ranges::find(profile->spec.runs, job.uid, &api::WorkloadRun::uid);
  if (before == profile->spec.runs.end()) return at->second;
  book_.Resume(job.Id(), *before);
  at->second.written = *before;
  return std::nullopt;  // The next sweep has both.
}

bool UsageWatch::Record(const JobRun& now, std::stop_token stop) {
  const bool is_late = now.is_over && clock_.WallNow() - now.run.end->value > kGiveUp;
  const std::optional<Workload> known = WorkloadOf(now.job);
  if (!known) {
    if (is_late) Forget(now.job);
    return false;
  }
  const bool is_empty = now.run.usage == api::ResourceUsage();  // No source told anything.
  if (is_empty || !IsWorthWriting(now, *known)) {
    if (now.is_over) Forget(now.job);
    return false;
  }
  NewSpeeds record{known->identity.fingerprint, known->identity.workload};
  api::WorkloadRun& run = record.runs.emplace_back(now.run);
  const auto job = caches_.jobs.Get<ElasticHorovodJob>(now.job.key);
  if (now.is_over && job && job->metadata.uid == now.job.uid) {  // Its workers never say whether it succeeded.
    if (job->status.phase == "Succeeded") run.outcome = api::RunOutcome::kSucceeded;
    if (job->status.phase == "Failed") run.outcome = api::RunOutcome::kFailed;
  }
  if (const kube::Status saved = store_.Save(record, std::move(stop)); !saved) {
    log_.Warn("what a job used could not be recorded",
              {{"job", now.job.ToString()}, {"error", saved.error().message()}});
    if (is_late) Forget(now.job);
    return true;
  }
  if (now.is_over) {
    Forget(now.job);
    return true;
  }
  std::lock_guard lock(mutex_);
  if (const auto at = workloads_.find(now.job.Id()); at != workloads_.end()) at->second.written = run;
  return true;
}

void UsageWatch::Forget(const JobRef& job) {
  std::lock_guard lock(mutex_);
  book_.Forget(job.Id());
  workloads_.erase(job.Id());
}

}  // namespace grus
