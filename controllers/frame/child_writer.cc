// SPDX-License-Identifier: Apache-2.0
#include "controllers/frame/child_writer.h"

#include <algorithm>

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Json;
using kube::Status;

// Of an answer the version and the UID are read, and a pod is long.
const kube::WriteOptions kMetadataOnly = {.metadata_only = true};

std::string NameOf(const Json& object) {
  const Json* name = object.At({"metadata", "name"});
  return name && name->AsString() ? *name->AsString() : std::string();
}

bool HasLabels(const kube::ObjectMeta& metadata, const Json& wanted) {
  const Json* labels = wanted.At({"metadata", "labels"});
  return std::all_of(labels->AsObject()->begin(), labels->AsObject()->end(), [&](const Json::Member& label) {
    return metadata.labels.Get(label.first) == *label.second.AsString();
  });
}

// Changes whenever somebody changes what we write. The status is not ours: if there is a generation, only that and the
// labels count.
std::string StateOf(const kube::ObjectMeta& child) {
  std::string state(child.uid);
  if (child.generation == 0) return state.append(child.resource_version);
  state.append(";").append(std::to_string(child.generation));
  for (const auto& [name, value] : child.labels) state.append(";").append(name).append("=").append(value);
  return state;
}

}  // namespace

ChildWriter::ChildWriter(kube::Client& client, kube::WriteTracker& writes, ChildMarks* marks,
                         const kube::Kind& owner_kind, const kube::ObjectMeta& owner, std::stop_token stop)
    : client_(client), writes_(writes), marks_(marks), owner_kind_(owner_kind), owner_(owner), stop_(std::move(stop)) {}

Status ChildWriter::Noted(kube::Result<kube::Client::ObjectPtr> answer, std::string_view verb, const kube::Kind& kind,
                          const std::string& name) {
  if (!answer) return With(std::move(answer).error(), verb, kind, name);
  writes_.Note(owner_, kind, **answer);
  return {};
}

Error ChildWriter::With(Error&& error, std::string_view verb, const kube::Kind& kind, const std::string& name) const {
  std::string context(verb);
  context.append(" ").append(kind.kind).append(" ").append(owner_.ns).append("/").append(name);
  return std::move(error).with(context);
}

Status ChildWriter::ConfirmOwner() {
  if (is_owner_confirmed_) return {};
  if (owner_error_) return *owner_error_;
  const auto live = client_.Get(owner_kind_, owner_.Key(), stop_);
  const bool is_gone = live ? (*live)->metadata.uid != owner_.uid || (*live)->metadata.is_being_deleted()
                            : live.error().code() == ErrorCode::kNotFound;
  is_owner_confirmed_ = live.ok() && !is_gone;
  if (is_gone) owner_error_ = Error(ErrorCode::kGone, "the owner is deleted");
  else if (!live) owner_error_ = With(Error(live.error()), "read", owner_kind_, owner_.name);
  return owner_error_ ? Status(*owner_error_) : Status();
}

Status ChildWriter::Bring(const WantedChild& child) {
  const kube::ObjectMeta* live = child.live ? &child.live->metadata : nullptr;
  if (!child.make) {
    return live == nullptr || live->is_being_deleted() ? Status() : Delete(child.kind, *live);
  }
  const auto marks = marks_->Get(owner_);
  const auto mark = marks.find(&child.kind);
  if (live == nullptr) return CreateOrTake(child.kind, child.make, child.was_there || mark != marks.end());
  if (live->is_being_deleted()) return {};  // A later pass creates it again.
  if (!child.has_changed && mark != marks.end() && mark->second == StateOf(*live)) return {};
  const Json wanted = child.make(true);
  if (!child.has_changed && HasLabels(*live, wanted) && child.is_right(wanted)) {
    marks_->With(owner_, [&](auto& kept) { kept[&child.kind] = StateOf(*live); });
    return {};
  }
  return Restore(child.kind, std::string(live->uid), wanted);
}

Status ChildWriter::Create(const kube::Kind& kind, const Json& child, std::string* uid) {
  auto created = client_.Create(kind, owner_.ns, child, kMetadataOnly, stop_);
  if (created && uid != nullptr) *uid = (*created)->metadata.uid;
  return Noted(std::move(created), "create", kind, NameOf(child));
}

Status ChildWriter::CreateOrTake(const kube::Kind& kind, const std::function<Json(bool)>& make, bool was_there) {
  if (was_there) {
    if (Status confirmed = ConfirmOwner(); !confirmed) return confirmed;
  }
  const Json child = make(false);
  Status created = Create(kind, child);
  if (created || created.error().code() != ErrorCode::kAlreadyExists) return created;

  const std::string name = NameOf(child);
  auto live = client_.Get(kind, {owner_.ns, name}, stop_);
  if (!live) return With(std::move(live).error(), "read", kind, name);
  const kube::ObjectMeta& metadata = (*live)->metadata;
  const kube::OwnerReference* owner = metadata.Controller();
  if (owner && owner->uid == owner_.uid) {
    if (metadata.is_being_deleted()) {
      return With(Error(ErrorCode::kConflict, "the previous one is still being deleted"), "create", kind, name);
    }
    // It may have lost the label by which our caches find it.
    const Json wanted = make(true);
    if (wanted.Find("spec") || wanted.Find("data")) return Restore(kind, std::string(metadata.uid), wanted);
    // Nothing of it can be changed but what makes it ours, beside what others have added.
    Json patch;
    patch["metadata"]["labels"] = *wanted.At({"metadata", "labels"});
    return Merge(kind, name, std::string(metadata.uid), std::move(patch));
  }
  if (owner && owner->kind == owner_kind_.kind && owner->name == owner_.name) {
    return With(Error(ErrorCode::kConflict, "that of the deleted job of this name still exists"), "create", kind, name);
  }
  const std::string whose =
      owner ? "belongs to " + std::string(owner->kind) + " \"" + std::string(owner->name) + "\"" : "has no controller";
  return Error(ErrorCode::kAlreadyExists, std::string(kind.kind) + " \"" + name + "\" exists and " + whose +
                                              "; delete or rename it, or give the job another name");
}

Status ChildWriter::Restore(const kube::Kind& kind, const std::string& uid, const Json& wanted) {
  kube::JsonPatch patch;
  patch.Test({"metadata", "uid"}, uid);
  patch.Add({"metadata", "labels"}, *wanted.At({"metadata", "labels"}));
  patch.Add({"metadata", "ownerReferences"}, *wanted.At({"metadata", "ownerReferences"}));
  if (const Json* notes = wanted.At({"metadata", "annotations"})) patch.Add({"metadata", "annotations"}, *notes);
  if (const Json* data = wanted.Find("data")) patch.Add({"data"}, *data);
  if (const Json* spec = wanted.Find("spec")) {
    for (const auto& [key, value] : *spec->AsObject()) patch.Add({"spec", key}, value);
  }
  return Patch(kind, NameOf(wanted), patch);
}

Status ChildWriter::Patch(const kube::Kind& kind, const std::string& name, const kube::JsonPatch& patch) {
  return Noted(client_.Patch(kind, {owner_.ns, name}, kube::PatchType::kJson, patch.operations(), kMetadataOnly, stop_),
               "patch", kind, name);
}

Status ChildWriter::Merge(const kube::Kind& kind, const std::string& name, const std::string& uid, Json patch) {
  patch["metadata"]["uid"] = uid;
  return Noted(client_.Patch(kind, {owner_.ns, name}, kube::PatchType::kMerge, patch, kMetadataOnly, stop_), "patch",
               kind, name);
}

Status ChildWriter::Delete(const kube::Kind& kind, const kube::ObjectMeta& child, const kube::DeleteOptions& options) {
  kube::DeleteOptions with_uid = options;
  with_uid.uid = std::string(child.uid);
  Status deleted = client_.Delete(kind, {owner_.ns, child.name}, with_uid, stop_);
  return deleted ? Status() : With(std::move(deleted).error(), "delete", kind, child.name);
}

}  // namespace grus
