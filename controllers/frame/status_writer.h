// SPDX-License-Identifier: Apache-2.0
// Writes the status of objects: what has changed alone, never to another object of the same name, and changes that
// decide nothing together with the next ones. Of those it writes two a second for all objects together: in a burst,
// what matters comes first, and most of them are overtaken by it. Notes its writes. Thread-safe.
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

  // From object.status to `status`. `patience`: how long the change may wait for others, from the first that waits.
  // Zero: it is written now. Up to kSoonWait: when it is its turn, or has waited that long. More: when both are true,
  // or it has waited four times as long. Errors: kNotFound: it is gone; kInvalid: another one of that name is there.
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
  // Takes one of the two writes a second for changes that can wait. False: none is left.
  bool TakeTurn();

  kube::Client& client_;
  kube::WriteTracker* const writes_;
  const kube::Clock& clock_;
  struct Wait {
    kube::TimePoint since, until;
  };
  kube::ObjectMemory<std::optional<Wait>> waits_;
  std::mutex mutex_;          // Guards what follows.
  kube::TimePoint taken_to_;  // The turns up to here are taken, one for each kTurn.
};

}  // namespace grus
