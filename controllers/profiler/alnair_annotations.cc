// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/alnair_annotations.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "clientlib/client/resource_path.h"
#include "clientlib/model/pod.h"
#include "controllers/profiler/turns.h"
#include "crds/types/alnair_names.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {
namespace {

using kube::ErrorCode;
using kube::Json;

// Those that the manager may write anyway.
const OwnerKind kOwnKinds[] = {{"ai.centauruscloud.io", "elastichorovodjobs", "ElasticHorovodJob"},
                               {"batch", "jobs", "Job"}};
constexpr std::size_t kLongestName = 63;  // Of an annotation, behind its domain.

// An object of which only the metadata matter.
struct AnyObject : kube::Object {};

// `name`: as objects of the kind, or metrics, have it.
kube::Kind KindOfOwner(const PodOwner& owner, std::string_view resource, std::string_view name) {
  return kube::MakeKind<AnyObject>({.group = owner.group, .version = owner.version, .kind = name, .plural = resource});
}

std::size_t BytesOf(const std::string& pod, const std::string& text) {
  return std::string_view(api::kAlnairOwnerPrefix).size() + pod.size() + text.size();
}

bool IsOfThis(const kube::ObjectMeta& metadata) {
  return metadata.Annotation(api::kAlnairOfAnnotation) == metadata.uid;
}

// With the UID as a precondition: another object of that name is left alone.
Json PatchOf(const std::string& uid, Json notes) {
  notes[api::kAlnairOfAnnotation] = uid;
  Json patch = Json::MakeObject();
  patch["metadata"]["uid"] = uid;
  patch["metadata"]["annotations"] = std::move(notes);
  return patch;
}

Json NotesOf(const AlnairPod& pod) {
  Json notes = Json::MakeObject();
  for (const auto& [name, text] : AnnotationsOf(pod)) notes[name] = text;
  return notes;
}

AlnairOwned TextIn(const std::map<std::string, std::string>& texts, const std::string& pod) {
  const auto text = texts.find(pod);
  return text == texts.end() ? AlnairOwned() : ReadAlnairOwned(text->second).value_or(AlnairOwned());
}

}  // namespace

AlnairAnnotations::AlnairAnnotations(kube::Client& client, const kube::Informer& pods, const UsageSource& source,
                                     const kube::Clock& clock, const kube::Log& log)
    : client_(client), pod_cache_(pods), source_(source), clock_(clock), log_(log) {}

AlnairOwned AlnairAnnotations::Owner::Before(const std::string& pod) const {
  AlnairOwned before = TextIn(texts, pod);
  if (refused.contains(pod)) Raise(TextIn(refused, pod), before);
  return before;
}

double AlnairAnnotations::Owner::Rise(const std::string& pod, const AlnairOwned& now) const {
  AlnairOwned raised = Before(pod);
  const double rise = RiseOf(raised, now);
  if (rise == 0) return 0;
  Raise(now, raised);
  return Fits(pod, TextOf(raised)) ? rise : 0;
}

bool AlnairAnnotations::Owner::Fits(const std::string& pod, const std::string& text) const {
  const auto before = texts.find(pod);
  const bool is_more = before == texts.end();
  const std::size_t rest = bytes - std::min(bytes, is_more ? 0 : BytesOf(pod, before->second));
  return text.size() <= kLongestAlnairText && (!is_more || pods < kMostPodsOfOwner) &&
         rest + BytesOf(pod, text) <= kMostBytesOfOwner;
}

// REQUIRES: it is not gone.
void AlnairAnnotations::Owner::Put(const std::string& pod, const std::string& text) {
  const auto [at, is_new] = texts.try_emplace(pod);
  if (is_new) ++pods;
  else bytes -= std::min(bytes, BytesOf(pod, at->second));
  bytes += BytesOf(pod, text);
  at->second = text;
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
    if (refused_.contains(known.uid.str())) uids.insert(known.uid.str());
    std::string owner = OwnerToWrite(*pod);
    const PodUsage* usage = answer.usage.Find(known.key);
    const auto detail = answer.details.find(known.key);
    if (!is_alone || (usage == nullptr && detail == answer.details.end())) continue;
    seen.push_back({std::move(pod), known.node.str(), std::move(owner), usage != nullptr ? *usage : no_usage,
                    detail != answer.details.end() ? detail->second : no_detail});
  }
  std::erase_if(owners_, [](const auto& owner) { return !owner.second.is_running; });
  std::erase_if(refused_, [&](const auto& pod) { return !uids.contains(pod.first); });
  for (auto& [id, owner] : owners_) Measure(owner);
  Gather(seen);
  Fill(seen);
}

std::string AlnairAnnotations::OwnerToWrite(const kube::Pod& pod) {
  if (pod.metadata.Controller() == nullptr || pod.metadata.name.size() > kLongestName) return {};
  const PodOwner owner = PodOwnerOf(pod);
  const OwnerKind* kind = KindIn(kOwnKinds, owner);
  if (kind == nullptr) kind = KindIn(source_.owner_kinds, owner);
  if (kind == nullptr) return {};
  const auto [at, is_new] = owners_.try_emplace(owner.ref.Id().ToString());
  if (is_new) at->second = {owner, *kind};
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
  TakeTurns(due_,
            [this](const Due& due) { return due.is_owner ? owners_.at(due.id).is.ref.key.ns.str() : due.pod.ns; });
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
                                     PatchOf(due.id, NotesOf(due.numbers)), {.metadata_only = true}, stop);
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
  kube::Status done = owner.is_read ? kube::Status() : ReadOwner(owner, stop);
  Owner with = owner;  // What is to be written.
  std::map<std::string, std::string> texts;
  for (const auto& [pod, now] : due.pods) {
    if (with.Rise(pod, now) == 0) continue;
    AlnairOwned entry = with.Before(pod);
    Raise(now, entry);
    with.Put(pod, texts[pod] = TextOf(entry));
    with.refused.erase(pod);
  }
  if (texts.empty()) return;
  if (done) done = PatchOwner(with, texts, stop);
  if (done) {
    owner = std::move(with);
  } else if (IsSettled(done, owner.is.ref.ToString(), stop)) {
    for (auto& [pod, text] : texts) owner.refused[pod] = std::move(text);
  }
}

kube::Status AlnairAnnotations::ReadOwner(Owner& owner, std::stop_token stop) {
  const PodOwner& is = owner.is;
  const kube::Kind kind = KindOfOwner(is, owner.kind.resource, is.ref.kind);
  const auto body = client_.GetRaw(kube::ObjectPath(kind, is.ref.key), std::move(stop));
  if (!body) return body.error();
  const auto live = kube::DecodeObject(kind, *body);  // Of no other kind.
  if (!live) return live.error();
  const kube::ObjectMeta& metadata = (*live)->metadata;
  if (metadata.uid != is.ref.uid) return kube::Error(ErrorCode::kNotFound, "another one has its name");
  owner.is_read = true;
  if (!IsOfThis(metadata)) return {};
  const std::string_view prefix = api::kAlnairOwnerPrefix;
  for (const auto& [name, text] : metadata.annotations) {
    if (!name.view().starts_with(prefix)) continue;
    const std::string pod(name.view().substr(prefix.size()));
    if (owner.Fits(pod, text.str())) owner.Put(pod, text.str());  // What does not is not grus'.
  }
  Measure(owner);
  return {};
}

kube::Status AlnairAnnotations::PatchOwner(Owner& with, const std::map<std::string, std::string>& texts,
                                           std::stop_token stop) {
  Json notes = Json::MakeObject();
  for (const auto& [pod, text] : texts) notes[api::kAlnairOwnerPrefix + pod] = text;
  std::size_t bytes = 0;
  for (const auto& [pod, text] : with.texts) bytes += BytesOf(pod, text);
  for (auto at = with.texts.begin(); at != with.texts.end();) {
    const bool is_full = with.texts.size() > kMostPodsOfOwner || bytes > kMostBytesOfOwner;
    if (!is_full || !IsGone(with, at->first)) {
      ++at;
      continue;
    }
    notes[api::kAlnairOwnerPrefix + at->first] = Json();
    bytes -= BytesOf(at->first, at->second);
    at = with.texts.erase(at);
  }
  // Not as a tenant calls it: metrics of requests have that name.
  const std::string& name = with.kind.kind.empty() ? with.kind.resource : with.kind.kind;
  const kube::Kind kind = KindOfOwner(with.is, with.kind.resource, name);
  const auto patched = client_.Patch(kind, with.is.ref.key, kube::PatchType::kMerge,
                                     PatchOf(with.is.ref.uid, std::move(notes)), {.metadata_only = true}, stop);
  if (!patched) return patched.error();
  if (!IsOfThis((*patched)->metadata)) return kube::Error(ErrorCode::kInvalid, "something removes the annotations");
  return {};
}

bool AlnairAnnotations::IsGone(const Owner& owner, const std::string& pod) const {
  const auto text = owner.texts.find(pod);
  const bool is_ours = text == owner.texts.end() || ReadAlnairOwned(text->second).has_value();
  return is_ours && !pod_cache_.Get<kube::Pod>({owner.is.ref.key.ns, pod});
}

void AlnairAnnotations::Measure(Owner& owner) const {
  std::erase_if(owner.refused, [&](const auto& text) { return IsGone(owner, text.first); });
  owner.pods = owner.bytes = 0;
  for (const auto& [pod, text] : owner.texts) {
    if (IsGone(owner, pod)) continue;
    ++owner.pods;
    owner.bytes += BytesOf(pod, text);
  }
}

bool AlnairAnnotations::IsSettled(const kube::Status& done, const std::string& object, const std::stop_token& stop) {
  if (done) return true;
  const ErrorCode code = done.error().code();
  if (code == ErrorCode::kNotFound || code == ErrorCode::kConflict) return true;  // It is gone, or another one.
  if (!stop.stop_requested() && news_.IsNews(done.error(), clock_.Now())) {
    log_.Warn("what pods use could not be written for Alnair's tools",
              {{"object", object}, {"error", done.error().message()}});
  }
  return code == ErrorCode::kForbidden || code == ErrorCode::kInvalid || code == ErrorCode::kInvalidArgument ||
         code == ErrorCode::kTooLarge || code == ErrorCode::kDecode;
}

}  // namespace grus
