// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/alnair_annotations.h"

#include <algorithm>
#include <utility>

#include "clientlib/model/pod.h"
#include "crds/types/alnair_names.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {
namespace {

using kube::ErrorCode;
using kube::Json;

// Those that the manager may write anyway.
const OwnerKind kOwnKinds[] = {{"ai.centauruscloud.io", "elastichorovodjobs"}, {"batch", "jobs"}};
constexpr std::size_t kLongestName = 63;  // Of an annotation, behind its domain.

// An object of which only the metadata matter.
struct AnyObject : kube::Object {};

kube::Kind KindOfOwner(std::string_view api_version, std::string_view kind, std::string_view resource) {
  const std::size_t slash = api_version.find('/');
  return kube::MakeKind<AnyObject>({.group = slash == std::string_view::npos ? "" : api_version.substr(0, slash),
                                    .version = VersionOf(api_version),
                                    .kind = kind,
                                    .plural = resource});
}

bool IsOfThis(const kube::ObjectMeta& metadata) {
  return metadata.Annotation(api::kAlnairOfAnnotation) == metadata.uid;
}

// With the UID as a precondition: another object of that name is left alone.
Json PatchOf(const std::string& uid, const std::map<std::string, std::string>& annotations) {
  Json patch = Json::MakeObject();
  patch["metadata"]["uid"] = uid;
  Json& notes = patch["metadata"]["annotations"];
  for (const auto& [name, text] : annotations) notes[name] = text;
  notes[api::kAlnairOfAnnotation] = uid;
  return patch;
}

}  // namespace

AlnairAnnotations::AlnairAnnotations(kube::Client& client, const kube::Informer& pods, const UsageSource& source,
                                     const kube::Clock& clock, const kube::Log& log)
    : client_(client), pod_cache_(pods), source_(source), clock_(clock), log_(log) {}

bool AlnairAnnotations::Owner::IsDue(const std::string& pod) const {
  const AlnairOwned& so_far = pods.at(pod).so_far;
  const auto before = written.find(pod);
  if (before != written.end()) return HasRisen(before->second, so_far);
  return !so_far.numbers.empty() && written.size() < kMostPodsOfOwner;
}

void AlnairAnnotations::Take(const std::vector<RunBook::Running>& running, const UsageAnswer& answer) {
  for (auto& [uid, pod] : pods_) pod.is_running = false;
  for (auto& [id, owner] : owners_) {
    for (auto& [name, entry] : owner.pods) entry.is_running = false;
  }
  const PodUsage no_usage;
  const PodDetail no_detail;
  for (const auto& [seen, is_alone] : running) {
    const auto pod = pod_cache_.Get<kube::Pod>(seen.key);
    const bool is_it = pod && pod->metadata.uid == seen.uid && !pod->metadata.is_being_deleted();
    if (!is_it || !source_.Sees(seen.key.ns)) continue;
    const auto usage = answer.usage.find(seen.key);
    const auto detail = answer.details.find(seen.key);
    TakePod(*pod, seen.node, is_alone && usage != answer.usage.end() ? usage->second : no_usage,
            is_alone && detail != answer.details.end() ? detail->second : no_detail);
  }
  ForgetWhoIsGone();
  GatherDue();
}

void AlnairAnnotations::ForgetWhoIsGone() {
  std::erase_if(pods_, [](const auto& pod) { return !pod.second.is_running; });
  for (auto& [id, owner] : owners_) {
    std::erase_if(owner.pods, [&](const auto& pod) { return !pod.second.is_running && !owner.IsDue(pod.first); });
  }
  std::erase_if(owners_, [](const auto& owner) { return owner.second.pods.empty(); });
}

void AlnairAnnotations::TakePod(const kube::Pod& pod, const std::string& node, const PodUsage& usage,
                                const PodDetail& detail) {
  const auto [at, is_new] = pods_.try_emplace(pod.metadata.uid, Pod{.key = pod.metadata.Key()});
  Pod& kept = at->second;
  kept.is_running = true;
  if (is_new && IsOfThis(pod.metadata)) kept.so_far = kept.written = ReadAlnairPod(pod.metadata.annotations);
  Raise(AlnairPodOf(usage, detail), kept.so_far);
  TakeForOwner(pod, AlnairOwnedOf(usage, detail, node));
}

void AlnairAnnotations::TakeForOwner(const kube::Pod& pod, const AlnairOwned& now) {
  Owner* owner = OwnerToWrite(pod);
  if (owner == nullptr) return;
  const std::string& name = pod.metadata.name;
  if (owner->pods.size() >= kMostPodsOfOwner && !owner->pods.contains(name)) return;
  const auto [at, is_new] = owner->pods.try_emplace(name);
  at->second.is_running = true;
  AlnairOwned& so_far = at->second.so_far;
  const auto written = owner->written.find(name);
  if (is_new && written != owner->written.end()) so_far = written->second;
  if (!now.numbers.empty()) Raise(now, so_far);
}

AlnairAnnotations::Owner* AlnairAnnotations::OwnerToWrite(const kube::Pod& pod) {
  if (pod.metadata.Controller() == nullptr || pod.metadata.name.size() > kLongestName) return nullptr;
  const PodOwner owner = PodOwnerOf(pod);
  const OwnerKind* kind = KindIn(kOwnKinds, owner.api_version, owner.ref.kind);
  if (kind == nullptr) kind = KindIn(source_.owner_kinds, owner.api_version, owner.ref.kind);
  if (kind == nullptr) return nullptr;
  return &owners_
              .try_emplace(owner.ref.Id(), Owner{.key = owner.ref.key,
                                                 .uid = owner.ref.uid,
                                                 .api_version = owner.api_version,
                                                 .kind = owner.ref.kind,
                                                 .resource = kind->resource})
              .first->second;
}

void AlnairAnnotations::GatherDue() {
  due_.clear();
  for (const auto& [uid, pod] : pods_) {
    if (HasRisen(pod.written, pod.so_far)) due_.push_back({false, uid, pod.last_write});
  }
  for (const auto& [id, owner] : owners_) {
    const bool is_due = std::ranges::any_of(owner.pods, [&](const auto& pod) { return owner.IsDue(pod.first); });
    if (is_due) due_.push_back({true, id, owner.last_write});
  }
  std::ranges::stable_sort(due_, {}, &Due::last_write);
}

int AlnairAnnotations::WriteSome(int most, std::stop_token stop) {
  int tried = 0;
  for (; tried < most && !due_.empty() && !stop.stop_requested(); ++tried) {
    const Due due = std::move(due_.front());
    due_.pop_front();
    if (due.is_owner) WriteOwner(due.id, stop);
    else WritePod(due.id, stop);
  }
  return tried;
}

void AlnairAnnotations::WritePod(const std::string& uid, std::stop_token stop) {
  const auto at = pods_.find(uid);
  if (at == pods_.end()) return;
  Pod& pod = at->second;
  const auto live = pod_cache_.Get<kube::Pod>(pod.key);
  if (!live || live->metadata.uid != uid) return;  // It is gone.
  pod.last_write = clock_.Now();
  const auto patched = client_.Patch(kube::KindOf<kube::Pod>(), pod.key, kube::PatchType::kMerge,
                                     PatchOf(uid, AnnotationsOf(pod.so_far)), {.metadata_only = true}, stop);
  if (IsSettled(patched ? kube::Status() : kube::Status(patched.error()), "Pod " + pod.key.ToString(), stop)) {
    pod.written = pod.so_far;
  }
}

void AlnairAnnotations::WriteOwner(const std::string& id, std::stop_token stop) {
  const auto at = owners_.find(id);
  if (at == owners_.end()) return;
  Owner& owner = at->second;
  const kube::Kind kind = KindOfOwner(owner.api_version, owner.kind, owner.resource);
  owner.last_write = clock_.Now();
  kube::Status done = owner.is_read ? kube::Status() : ReadOwner(kind, owner, stop);
  std::map<std::string, AlnairOwned> entries;
  std::size_t count = owner.written.size();
  for (const auto& [pod, entry] : owner.pods) {
    const bool is_more = !owner.written.contains(pod);
    if (!owner.IsDue(pod) || (is_more && count == kMostPodsOfOwner)) continue;
    count += is_more ? 1 : 0;
    entries[pod] = entry.so_far;
  }
  if (done && !entries.empty()) {
    std::map<std::string, std::string> annotations;
    for (const auto& [pod, entry] : entries) annotations[api::kAlnairOwnerPrefix + pod] = TextOf(entry);
    const auto patched = client_.Patch(kind, owner.key, kube::PatchType::kMerge, PatchOf(owner.uid, annotations),
                                       {.metadata_only = true}, stop);
    if (!patched) done = patched.error();
  }
  if (!IsSettled(done, owner.kind + " " + owner.key.ToString(), stop)) return;
  for (auto& [pod, entry] : entries) owner.written[pod] = std::move(entry);
}

kube::Status AlnairAnnotations::ReadOwner(const kube::Kind& kind, Owner& owner, std::stop_token stop) {
  const auto live = client_.Get(kind, owner.key, std::move(stop));
  if (!live) return live.error();
  const kube::ObjectMeta& metadata = (*live)->metadata;
  if (metadata.uid != owner.uid) return kube::Error(ErrorCode::kNotFound, "another one has its name");
  owner.is_read = true;
  if (!IsOfThis(metadata)) return {};
  const std::string_view prefix = api::kAlnairOwnerPrefix;
  for (const auto& [name, text] : metadata.annotations) {
    if (!name.view().starts_with(prefix)) continue;
    const std::string pod(name.view().substr(prefix.size()));
    const auto entry = ReadAlnairOwned(text.view());
    if (!entry) continue;
    owner.written[pod] = *entry;
    const auto known = owner.pods.find(pod);
    if (known == owner.pods.end()) continue;
    const AlnairOwned now = std::exchange(known->second.so_far, *entry);
    if (!now.numbers.empty()) Raise(now, known->second.so_far);
  }
  return {};
}

bool AlnairAnnotations::IsSettled(const kube::Status& done, const std::string& object, const std::stop_token& stop) {
  if (done) return true;
  const ErrorCode code = done.error().code();
  if (code == ErrorCode::kNotFound || code == ErrorCode::kConflict) return true;  // It is gone, or another one.
  if (!stop.stop_requested() && news_.IsNews(done.error(), clock_.Now())) {
    log_.Warn("what pods use could not be written for Alnair's tools",
              {{"object", object}, {"error", done.error().message()}});
  }
  return code == ErrorCode::kForbidden || code == ErrorCode::kInvalid || code == ErrorCode::kInvalidArgument;
}

}  // namespace grus
