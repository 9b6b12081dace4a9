// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/child_writer.h"

#include "clientlib/model/batch_v1.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Json;

std::string NameOf(const Json& object) {
  const Json* name = object.At({"metadata", "name"});
  return name && name->AsString() ? *name->AsString() : std::string();
}

}  // namespace

ChildWriter::ChildWriter(kube::Client& client, kube::WriteTracker& writes, const api::ElasticHorovodJob& job,
                         std::stop_token stop)
    : client_(client), writes_(writes), job_(job), stop_(std::move(stop)) {}

void ChildWriter::Note(const kube::Kind& kind, const kube::Object& answer) {
  last_version_ = std::string(answer.metadata.resource_version);
  writes_.Note(job_.metadata.Key(), std::string(job_.metadata.uid), kind, last_version_);
}

Error ChildWriter::With(Error&& error, std::string_view verb, const kube::Kind& kind, const std::string& name) const {
  std::string context(verb);
  context.append(" ").append(kind.kind).append(" ").append(job_.metadata.ns).append("/").append(name);
  return std::move(error).with(context);
}

kube::Status ChildWriter::ConfirmJob() {
  if (is_job_confirmed_) return {};
  const kube::Kind& owner = api::ElasticHorovodJob::ResourceKind();
  const auto live = client_.Get(owner, job_.metadata.Key(), stop_);
  const bool is_gone = live ? (*live)->metadata.uid != job_.metadata.uid || (*live)->metadata.is_being_deleted()
                            : live.error().code() == ErrorCode::kNotFound;
  if (is_gone) return Error(ErrorCode::kGone, "the job is deleted");
  if (!live) return With(kube::Error(live.error()), "read", owner, job_.metadata.name);
  is_job_confirmed_ = true;
  return {};
}

kube::Status ChildWriter::Create(const kube::Kind& kind, const Json& child, bool was_there) {
  if (was_there) {
    if (kube::Status confirmed = ConfirmJob(); !confirmed) return confirmed;
  }
  const std::string name = NameOf(child);
  ++write_count_;
  auto created = client_.Create(kind, job_.metadata.ns, child, {}, stop_);
  if (created) {
    Note(kind, **created);
    return {};
  }
  if (created.error().code() != ErrorCode::kAlreadyExists) {
    return With(std::move(created).error(), "create", kind, name);
  }

  auto live = client_.Get(kind, {job_.metadata.ns, name}, stop_);
  if (!live) return With(std::move(live).error(), "read", kind, name);
  const kube::ObjectMeta& metadata = (*live)->metadata;
  const kube::OwnerReference* owner = metadata.Controller();
  if (owner && owner->uid == job_.metadata.uid) {
    if (metadata.is_being_deleted()) {
      return With(Error(ErrorCode::kConflict, "the one before is still being deleted"), "create", kind, name);
    }
    // Nothing in an immutable Secret to restore; others may have lost the label by which our caches find them.
    if (child.Find("immutable")) return {};
    Json wanted = child;
    if (&kind == &kube::KindOf<kube::Job>()) wanted.Erase("spec");  // A Job's template cannot be changed.
    return Restore(kind, std::string(metadata.uid), wanted);
  }
  if (owner && owner->kind == api::ElasticHorovodJob::ResourceKind().kind && owner->name == job_.metadata.name) {
    return With(Error(ErrorCode::kConflict, "the one of the deleted job of this name is not gone yet"), "create", kind,
                name);
  }
  const std::string holder =
      owner ? std::string(owner->kind) + " \"" + std::string(owner->name) + "\"" : "nobody that grus knows";
  return Error(ErrorCode::kAlreadyExists, std::string(kind.kind) + " \"" + name + "\" exists and belongs to " + holder +
                                              "; delete or rename it, or give the job another name");
}

kube::Status ChildWriter::Restore(const kube::Kind& kind, const std::string& uid, const Json& wanted) {
  kube::JsonPatch patch;
  patch.Test({"metadata", "uid"}, uid);
  patch.Add({"metadata", "labels"}, *wanted.At({"metadata", "labels"}));
  patch.Add({"metadata", "ownerReferences"}, *wanted.At({"metadata", "ownerReferences"}));
  if (const Json* annotations = wanted.At({"metadata", "annotations"})) {
    patch.Add({"metadata", "annotations"}, *annotations);
  }
  if (const Json* data = wanted.Find("data")) patch.Add({"data"}, *data);
  if (const Json* spec = wanted.Find("spec")) {
    for (const auto& [key, value] : *spec->AsObject()) patch.Add({"spec", key}, value);
  }
  return Patch(kind, NameOf(wanted), patch);
}

kube::Status ChildWriter::Patch(const kube::Kind& kind, const std::string& name, const kube::JsonPatch& patch) {
  ++write_count_;
  auto patched = client_.Patch(kind, {job_.metadata.ns, name}, kube::PatchType::kJson, patch.operations(), {}, stop_);
  if (!patched) return With(std::move(patched).error(), "patch", kind, name);
  Note(kind, **patched);
  return {};
}

kube::Status ChildWriter::Delete(const kube::Kind& kind, const kube::Object& child,
                                 const kube::DeleteOptions& options) {
  ++write_count_;
  kube::DeleteOptions with_uid = options;
  with_uid.uid = std::string(child.metadata.uid);
  kube::Status deleted = client_.Delete(kind, child.metadata.Key(), with_uid, stop_);
  if (!deleted) return With(std::move(deleted).error(), "delete", kind, child.metadata.name);
  return {};
}

}  // namespace grus
