// SPDX-License-Identifier: Apache-2.0
#include "controllers/frame/status_writer.h"

#include <utility>

#include "clientlib/client/patch.h"

namespace grus {

std::optional<kube::Duration> StatusWriter::TimeLeft(const kube::ObjectMeta& object, kube::Duration patience) {
  if (patience <= kube::Duration::zero()) return std::nullopt;
  const kube::TimePoint now = clock_.Now();
  const kube::TimePoint since = waiting_since_.With(object, [&](std::optional<kube::TimePoint>& kept) {
    if (!kept) kept = now;
    return *kept;
  });
  const kube::Duration left = since + patience - now;
  return left > kube::Duration::zero() ? std::optional(left) : std::nullopt;
}

kube::Result<WrittenStatus> StatusWriter::Write(const kube::Kind& kind, const kube::ObjectMeta& object,
                                                StatusChange change, kube::Duration patience, std::stop_token stop) {
  if (const auto left = TimeLeft(object, patience)) return WrittenStatus{left, nullptr};
  const kube::ObjectKey key = object.Key();
  kube::Json patch = kube::Json::MakeObject();
  // A precondition: a status never lands on another object of the same name.
  patch["metadata"]["uid"] = object.uid;
  if (!change.resource_version.empty()) patch["metadata"]["resourceVersion"] = std::move(change.resource_version);
  if (change.is_first) {
    for (const auto& [field, value] : *change.after.AsObject()) change.before.Erase(field);
  }
  patch["status"] = kube::MergePatchBetween(change.before, change.after);
  if (patch["status"].AsObject()->empty()) return WrittenStatus{};
  kube::WriteOptions options;
  options.subresource = "status";
  auto patched = client_.Patch(kind, key, kube::PatchType::kMerge, patch, options, stop);
  if (!patched) {
    return std::move(patched).error().with("write the status of " + std::string(kind.kind) + " " + key.ToString());
  }
  Forget(key);
  if (writes_ != nullptr) writes_->Note(object, kind, **patched);
  return WrittenStatus{std::nullopt, *std::move(patched)};
}

}  // namespace grus
