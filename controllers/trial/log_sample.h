// SPDX-License-Identifier: Apache-2.0
// Reads the speed that a launcher prints from now on. Earlier lines of its log may be about another size.
//
// One thread, which follows the log until the destructor has returned. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "clientlib/runtime/log_follower.h"
#include "controllers/measure/speed_reader.h"

namespace grus {

class LogSample final : public kube::LogSink {
 public:
  // `client` and `clock` must outlive it.
  LogSample(kube::Client& client, const kube::Clock& clock, const kube::ObjectKey& launcher, const std::string& uid);

  struct Seen {
    SpeedObservation speed;
    bool has_ended = false;  // No more lines will come.
    std::string refusal;     // Why we may not read it; empty: we may.
  };
  Seen Look() const;

  void OnStart(std::optional<kube::Time> since) override;
  void OnBytes(std::string_view bytes) override;
  void OnState(kube::LogState state, const std::string& reason) override;

 private:
  const kube::Clock& clock_;
  mutable std::mutex mutex_;  // Guards what follows.
  SpeedReader reader_;
  bool has_ended_ = false;
  std::string refusal_;

  kube::LogFollower follower_;  // Last: its thread calls this object until it is destroyed.
};

}  // namespace grus
