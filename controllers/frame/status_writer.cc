// SPDX-License-Identifier: Apache-2.0
#include "controllers/frame/status_writer.h"

#include <algorithm>
#include <utility>

#include "clientlib/client/patch.h"
#include "controllers/frame/retry_times.h"

namespace grus {
namespace {

// At two a second, the storm of bench/ wrote 0.2 statuses a job more, and nobody reads one of many hundred that fast.
constexpr kube::Duration kTurn = std::chrono::seconds(2);
constexpr int kSavedTurns = 10;   // Unused turns that a burst may take at once.
constexpr int kLongestWaits = 4;  // A change waits at most this many times its patience.

}  // namespace

bool StatusWriter::TakeTurn() {
  const kube::TimePoint now = clock_.Now();
  std::lock_guard lock(mutex_);
  const kube::TimePoint from = std::max(taken_to_, now - kSavedTurns * kTurn);
  if (from + kTurn > now) return false;
  taken_to_ = from + kTurn;
  return true;
}

std::optional<kube::Duration> StatusWriter::TimeLeft(const kube::ObjectMeta& object, kube::Duration patience) {
  if (patience <= kube::Duration::zero()) return std::nullopt;
  const kube::TimePoint now = clock_.Now();
  return waits_.With(object, [&](std::optional<Wait>& wait) -> std::optional<kube::Duration> {
    if (!wait) wait = Wait{now, now + patience};
    wait->until = std::min(wait->until, now + patience);
    const bool has_waited = wait->until <= now;
    const bool is_due = has_waited && (patience <= kSoonWait || now >= wait->since + kLongestWaits * patience);
    const bool may_have_turn = has_waited || patience <= kSoonWait;
    if (is_due || (may_have_turn && TakeTurn())) return std::nullopt;
    if (has_waited) wait->until = now + patience;
    return wait->until - now;
  });
}

kube::Result<WrittenStatus> StatusWriter::Write(const kube::Kind& kind, const kube::ObjectMeta& object,
                                                StatusChange change, kube::Duration patience, std::stop_token stop) {
  if (const auto left = TimeLeft(object, patience)) return WrittenStatus{left, nullptr};
  const kube::ObjectKey key = object.Key();
  kube::Json patch = kube::Json::MakeObject();
  // A precondition: the status must not reach another object of the same name.
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
