// SPDX-License-Identifier: Apache-2.0
// Writes the statuses of all objects of one kind, and tells users of faults that are new. Thread-safe.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "clientlib/base/log.h"
#include "clientlib/cache/informer.h"
#include "clientlib/runtime/event_recorder.h"
#include "clientlib/runtime/object_memory.h"
#include "controllers/allocator/queue_status.h"
#include "controllers/frame/planned_event.h"
#include "controllers/frame/retry_times.h"
#include "controllers/frame/status_writer.h"

namespace grus {

template <typename T>
class ObjectStatuses {
 public:
  ObjectStatuses(kube::Client& client, kube::Informer& objects, kube::EventRecorder& events, const kube::Clock& clock,
                 const kube::Log& log)
      : objects_(objects), events_(events), log_(log), writer_(client, &writes_, clock) {}

  // Calls `changed` when the spec of an object changes, or when somebody else changes its status.
  template <typename F>
  void OnChange(F changed) {
    objects_.AddHandler([this, changed](const kube::Change& change, bool is_initial) {
      if (IsNews(change)) changed(is_initial);
      if (!change.after) Forget(change.Any().metadata.Key());
    });
  }

  // When to look again; nullopt: no need. A refusal is told to users, and is no error.
  kube::Result<std::optional<kube::Duration>> Write(const T& object, const StatusPlan<T>& plan, std::stop_token stop) {
    const kube::ObjectMeta& metadata = object.metadata;
    if (!writes_.HasCaughtUp(metadata, {&objects_})) return std::optional(kCacheLag);
    // At once: passes because of numbers are a second apart.
    const auto written = writer_.Write(object, plan.status, kube::Duration::zero(), std::move(stop));
    if (written) {
      TellNew(object, plan);
      return std::optional<kube::Duration>();
    }
    const kube::ErrorCode code = written.error().code();
    if (code == kube::ErrorCode::kNotFound) return std::optional<kube::Duration>();  // Its event comes.
    if (code != kube::ErrorCode::kForbidden && code != kube::ErrorCode::kInvalid) return written.error();
    const bool was_told = memory_.With(metadata, [](Memory& kept) { return std::exchange(kept.is_refused, true); });
    if (!was_told) {
      Tell({{kube::EventType::kWarning, "NotPermitted", "WriteStatus", written.error().message()}}, events_, log_,
           kube::KindOf<T>(), metadata, "object");
    }
    return std::optional(kRefusedRetry);
  }

 private:
  // What is kept of an object between passes. A restart may lose it.
  struct Memory {
    std::optional<std::set<std::pair<std::string_view, std::string>>> told;  // Reasons and fields; empty: not known.
    bool is_refused = false;                                                 // The last write was.
  };

  bool IsNews(const kube::Change& change) const {
    if (!change.before || !change.after) return true;
    const auto& before = static_cast<const T&>(*change.before);
    const auto& after = static_cast<const T&>(*change.after);
    if (before.metadata.uid != after.metadata.uid || before.metadata.generation != after.metadata.generation)
      return true;
    return !(before.status == after.status) &&
           !writes_.IsOwnEcho(after.metadata.Key(), kube::KindOf<T>(), after.metadata.resource_version);
  }

  void Forget(const kube::ObjectKey& key) {
    writes_.Forget(key);
    writer_.Forget(key);
    memory_.Forget(key);
  }

  // A fault is new if the pass before did not find it. After a restart, those under the reason that the status has are
  // known: an earlier process told of them.
  void TellNew(const T& object, const StatusPlan<T>& plan) {
    std::vector<PlannedEvent> events;
    memory_.With(object.metadata, [&](Memory& kept) {
      const kube::Condition* ready = kube::FindCondition(object.status.conditions, "Ready");
      const bool were_told = !kept.told && ready && !plan.faults.empty() && ready->reason == plan.faults[0].reason;
      std::set<std::pair<std::string_view, std::string>> told;
      for (const ObjectFault& fault : plan.faults) {
        const bool is_known = were_told || (kept.told && kept.told->contains({fault.reason, fault.field}));
        if (!told.emplace(fault.reason, fault.field).second || is_known) continue;
        events.push_back({kube::EventType::kWarning, std::string(fault.reason), "CheckSpec", TextOf(fault)});
      }
      kept = {std::move(told), false};
    });
    Tell(events, events_, log_, kube::KindOf<T>(), object.metadata, "object");
  }

  kube::Informer& objects_;
  kube::EventRecorder& events_;
  const kube::Log& log_;
  kube::WriteTracker writes_;
  StatusWriter writer_;
  kube::ObjectMemory<Memory> memory_;
};

}  // namespace grus
