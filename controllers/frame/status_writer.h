// SPDX-License-Identifier: Apache-2.0
// Writes the status of objects: what has changed alone, never to another object of the same name, and changes that
// decide nothing together with the next ones. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>

#include "clientlib/client/client.h"
#include "clientlib/model/json_writer.h"

namespace grus {

struct StatusChange {
  kube::Json before, after;  // Objects.
  bool is_first = false;     // Nothing in `before` is ours: everything is said, also zeros.
};

struct WrittenStatus {
  std::optional<kube::Duration> deferred;  // It is to be written after so long.
  std::shared_ptr<kube::Object> object;    // With the status as it stands now; null: nothing was written.
};

class StatusWriter {
 public:
  StatusWriter(kube::Client& client, const kube::Clock& clock) : client_(client), clock_(clock) {}

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
  void Forget(const kube::ObjectKey& key);

 private:
  struct Waiting {
    std::string uid;
    kube::TimePoint since;
  };
  // How long the change still may wait.
  std::optional<kube::Duration> TimeLeft(const kube::ObjectMeta& object, kube::Duration patience);

  kube::Client& client_;
  const kube::Clock& clock_;
  std::mutex mutex_;  // Guards waiting_.
  std::unordered_map<kube::ObjectKey, Waiting> waiting_;
};

}  // namespace grus
