// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/alnair_annotations.h"

#include <algorithm>
#include <functional>
#include <set>
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

AlnairOwned AlnairAnnotations::Owner::Before(const std::string& pod) const {
  const auto text = texts.find(pod);
  return text == texts.end() ? AlnairOwned() : ReadAlnairOwned(text->second).value_or(AlnairOwned());
}

double AlnairAnnotations::Owner::Rise(const std::string& pod, const AlnairOwned& now) const {
  return texts.size() < kMostPodsOfOwner || texts.contains(pod) ? RiseOf(Before(pod), now) : 0;
}

AlnairPod AlnairAnnotations::Before(const kube::Pod& pod) const {
  const auto refused = refused_.find(pod.metadata.uid);
  if (refused != refused_.end()) return refused->second;
  return IsOfThis(pod.metadata) ? ReadAlnairPod(pod.metadata.annotations) : AlnairPod();
}

void AlnairAnnotations::Take(const std::vector<RunBook::Running>& running, const UsageAnswer& answer) {
  const PodUsage no_usage;
  const PodDetail no_detail;
  std::vector<Seen> seen;
  std::set<std::string> uids;
  for (auto& [id, owner] : owners_) owner.is_running = false;
  for (const auto& [known, is_alone] : running) {
    auto pod = pod_cache_.Get<kube::Pod>(known.key);
    const bool is_it = pod && pod->metadata.uid == known.uid && !pod->metadata.is_being_deleted();
    if (!is_it || !source_.Sees(known.key.ns)) continue;
    if (refused_.contains(known.uid)) uids.insert(known.uid);
    std::string owner = OwnerToWrite(*pod);
    const auto usage = answer.usage.find(known.key);
    const auto detail = answer.details.find(known.key);
    if (!is_alone || (usage == answer.usage.end() && detail == answer.details.end())) continue;
    seen.push_back({std::move(pod), known.node, std::move(owner),
                    usage != answer.usage.end() ? usage->second : no_usage,
                    detail != answer.details.end() ? detail->second : no_detail});
  }
  std::erase_if(owners_, [](const auto& owner) { return !owner.second.is_running; });
  std::erase_if(refused_, [&](const auto& pod) { return !uids.contains(pod.first); });
  Gather(seen);
  Fill(seen);
}

std::string AlnairAnnotations::OwnerToWrite(const kube::Pod& pod) {
  if (pod.metadata.Controller() == nullptr || pod.metadata.name.size() > kLongestName) return {};
  const PodOwner owner = PodOwnerOf(pod);
  const OwnerKind* kind = KindIn(kOwnKinds, owner.api_version, owner.ref.kind);
  if (kind == nullptr) kind = KindIn(source_.owner_kinds, owner.api_version, owner.ref.kind);
  if (kind == nullptr) return {};
  const auto [at, is_new] = owners_.try_emplace(owner.ref.Id());
  if (is_new) at->second = {owner.ref.key, owner.ref.uid, owner.api_version, owner.ref.kind, kind->resource};
  at->second.is_running = true;
  return at->first;
}

void AlnairAnnotations::Gather(const std::vector<Seen>& seen) {
  std::map<std::string, double> owners;
  due_.clear();
  for (const auto& [pod, node, owner, usage, detail] : seen) {
    const double rise = RiseOf(Before(*pod), AlnairPodOf(usage, detail));
    if (rise > 0) due_.push_back({.rise = rise, .id = pod->metadata.uid, .pod = pod->metadata.Key()});
    if (owner.empty()) continue;
    const double for_owner = owners_.at(owner).Rise(pod->metadata.name, AlnairOwnedOf(usage, detail, node));
    if (for_owner > 0) owners[owner] = std::max(owners[owner], for_owner);
  }
  for (const auto& [id, rise] : owners) due_.push_back({.rise = rise, .is_owner = true, .id = id});
  std::ranges::stable_sort(due_, std::greater(), &Due::rise);
  if (due_.size() > kMostDue) due_.resize(kMostDue);
}

void AlnairAnnotations::Fill(const std::vector<Seen>& seen) {
  std::map<std::string, Due*> chosen;
  for (Due& due : due_) chosen[due.id] = &due;
  for (const auto& [pod, node, owner, usage, detail] : seen) {
    if (const auto due = chosen.find(pod->metadata.uid); due != chosen.end()) {
      due->second->numbers = Before(*pod);
      Raise(AlnairPodOf(usage, detail), due->second->numbers);
    }
    if (const auto due = chosen.find(owner); due != chosen.end()) {
      due->second->pods[pod->metadata.name] = AlnairOwnedOf(usage, detail, node);
    }
  }
}

int AlnairAnnotations::WriteSome(int most, std::stop_token stop) {
  int tried = 0;
  for (; tried < most && !due_.empty() && !stop.stop_requested(); ++tried) {
    const Due due = std::move(due_.front());
    due_.pop_front();
    if (due.is_owner) WriteOwner(due, stop);
    else WritePod(due, stop);
  }
  return tried;
}

void AlnairAnnotations::WritePod(const Due& due, std::stop_token stop) {
  const auto live = pod_cache_.Get<kube::Pod>(due.pod);
  if (!live || live->metadata.uid != due.id) return;  // It is gone.
  const auto patched = client_.Patch(kube::KindOf<kube::Pod>(), due.pod, kube::PatchType::kMerge,
                                     PatchOf(due.id, AnnotationsOf(due.numbers)), {.metadata_only = true}, stop);
  const kube::Status done = patched ? kube::Status() : kube::Status(patched.error());
  if (!IsSettled(done, "Pod " + due.pod.ToString(), stop)) return;
  // Something may remove annotations on their way: then they are not written each minute.
  if (!done || !IsOfThis((*patched)->metadata)) refused_[due.id] = due.numbers;
  else refused_.erase(due.id);
}

void AlnairAnnotations::WriteOwner(const Due& due, std::stop_token stop) {
  const auto at = owners_.find(due.id);
  if (at == owners_.end()) return;
  Owner& owner = at->second;
  const kube::Kind kind = KindOfOwner(owner.api_version, owner.kind, owner.resource);
  kube::Status done = owner.is_read ? kube::Status() : ReadOwner(kind, owner, stop);
  std::map<std::string, std::string> texts, annotations;
  std::size_t count = owner.texts.size();
  for (const auto& [pod, now] : due.pods) {
    const bool is_more = !owner.texts.contains(pod);
    if (owner.Rise(pod, now) == 0 || (is_more && count == kMostPodsOfOwner)) continue;
    count += is_more ? 1 : 0;
    AlnairOwned entry = owner.Before(pod);
    Raise(now, entry);
    annotations[api::kAlnairOwnerPrefix + pod] = texts[pod] = TextOf(entry);
  }
  if (done && !texts.empty()) {
    const auto patched = client_.Patch(kind, owner.key, kube::PatchType::kMerge, PatchOf(owner.uid, annotations),
                                       {.metadata_only = true}, stop);
    if (!patched) done = patched.error();
  }
  if (!IsSettled(done, owner.kind + " " + owner.key.ToString(), stop)) return;
  for (auto& [pod, text] : texts) owner.texts[pod] = std::move(text);
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
    if (name.view().starts_with(prefix)) owner.texts[std::string(name.view().substr(prefix.size()))] = text.str();
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
