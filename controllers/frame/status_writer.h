// SPDX-License-Identifier: Apache-2.0
// Writes the status of objects: only the difference, and never to another object of the same name. Defers changes that
// decide nothing, to write them together with later ones, one in two seconds for all objects: in a burst, what matters
// is written first and makes most of them unnecessary. Notes its writes. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "clientlib/cache/write_tracker.h"
#include "clientlib/client/client.h"
#include "clientlib/model/json_writer.h"
#include "clientlib/runtime/object_memory.h"

namespace grus {

struct StatusChange {
  kube::Json before, after;           // Both are JSON objects.
  bool is_first = false;              // `before` is not ours: write every field, zeros too.
  std::string resource_version = {};  // If set and not the object's: kConflict.
};

// nullopt: nothing is left to write. Set: the status is not written yet; write it again after this long.
using Deferred = std::optional<kube::Duration>;

struct WrittenStatus {
  Deferred deferred;
  std::shared_ptr<kube::Object> object;  // With the status as it stands now; null: nothing was written.
};

class StatusWriter {
 public:
  // `writes` null: nobody waits for the cache to show the writes.
  StatusWriter(kube::Client& client, kube::WriteTracker* writes, const kube::Clock& clock)
      : client_(client), writes_(writes), clock_(clock) {}

  // Changes object.status to `status`. `patience`: how long the change may wait for others, counted from the first that
  // waits. Zero: writes now. Up to kSoonWait: writes when a turn is free, or after that long. More: writes when both
  // are true, or after four times as long. Errors: kNotFound: the object is gone; kInvalid: another one has its name.
  template <typename T>
  kube::Result<WrittenStatus> Write(const T& object, const decltype(T::status)& status, kube::Duration patience,
                                    std::stop_token stop) {
    if (status == object.status) {
      Forget(object.metadata.Key());
      return WrittenStatus{};
    }
    return Write(kube::KindOf<T>(), object.metadata,
                 {kube::ToJson(object.status), kube::ToJson(status), object.status.observed_generation == 0}, patience,
                 stop);
  }
  kube::Result<WrittenStatus> Write(const kube::Kind& kind, const kube::ObjectMeta& object, StatusChange change,
                                    kube::Duration patience, std::stop_token stop);
  void Forget(const kube::ObjectKey& key) { waits_.Forget(key); }

 private:
  // How long the change still waits; nullopt: write it now.
  std::optional<kube::Duration> TimeLeft(const kube::ObjectMeta& object, kube::Duration patience);
  // Deferred changes share one write in two seconds: takes the next one. False: none is free.
  bool TakeTurn();

  kube::Client& client_;
  kube::WriteTracker* const writes_;
  const kube::Clock& clock_;
  struct Wait {
    kube::TimePoint since, until;
  };
  kube::ObjectMemory<std::optional<Wait>> waits_;
  std::mutex mutex_;          // Guards what follows.
  kube::TimePoint taken_to_;  // Turns up to this time are taken, one for each kTurn.
};

}  // namespace grus
