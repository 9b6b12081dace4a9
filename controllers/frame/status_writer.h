// SPDX-License-Identifier: Apache-2.0
// Writes the status of objects: what has changed alone, never to another object of the same name, and changes that
// decide nothing together with the next ones. Notes its writes. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "clientlib/cache/write_tracker.h"
#include "clientlib/client/client.h"
#include "clientlib/model/json_writer.h"
#include "clientlib/runtime/object_memory.h"

namespace grus {

struct StatusChange {
  kube::Json before, after;           // Objects.
  bool is_first = false;              // Nothing in `before` is ours: everything is said, also zeros.
  std::string resource_version = {};  // If set, the write is refused (kConflict) unless it is the object's.
};

struct WrittenStatus {
  std::optional<kube::Duration> deferred;  // It is to be written after so long.
  std::shared_ptr<kube::Object> object;    // With the status as it stands now; null: nothing was written.
};

class StatusWriter {
 public:
  // `writes` null: nobody waits for the cache to see them.
  StatusWriter(kube::Client& client, kube::WriteTracker* writes, const kube::Clock& clock)
      : client_(client), writes_(writes), clock_(clock) {}

  // From object.status to `status`. `patience`: so long the change may wait for others, from the first that waits.
  // Errors: kNotFound: it is gone; kInvalid: another one of that name is there.
  template <typename T>
  kube::Result<WrittenStatus> Write(const T& object, const decltype(T::status)& status, kube::Duration patience,
                                    std::stop_token stop) {
    if (status == object.status) return WrittenStatus{};
    return Write(kube::KindOf<T>(), object.metadata,
                 {kube::ToJson(object.status), kube::ToJson(status), object.status.observed_generation == 0}, patience,
                 stop);
  }
  kube::Result<WrittenStatus> Write(const kube::Kind& kind, const kube::ObjectMeta& object, StatusChange change,
                                    kube::Duration patience, std::stop_token stop);
  void Forget(const kube::ObjectKey& key) { waiting_since_.Forget(key); }

 private:
  // How long the change still may wait.
  std::optional<kube::Duration> TimeLeft(const kube::ObjectMeta& object, kube::Duration patience);

  kube::Client& client_;
  kube::WriteTracker* const writes_;
  const kube::Clock& clock_;
  kube::ObjectMemory<std::optional<kube::TimePoint>> waiting_since_;
};

}  // namespace grus
