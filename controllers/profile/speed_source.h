// SPDX-License-Identifier: Apache-2.0
// The speed of one training: what the log of its container says, or the lines that it pushes.
//
// A log has one thread, which follows it until the destructor has returned; samples take less than 1 MiB. One lock,
// which that thread holds while it adds bytes. Thread-safe. Time is the clock's; that of lines is the node's.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "clientlib/runtime/log_follower.h"
#include "controllers/measure/speed_reader.h"

namespace grus {

class SpeedSource final : public kube::LogSink {
 public:
  // `wake` is called without a lock, on the thread of the log, when there is news of its state. `clock` must outlive
  // it.
  SpeedSource(const kube::Clock& clock, SpeedReader reader, std::function<void()> wake = {})
      : clock_(clock), wake_(std::move(wake)), reader_(std::move(reader)) {}

  // Call once at most. `client` must outlive it.
  void Follow(kube::Client& client, kube::LogFollowerOptions options);
  // The destructor then does not wait long.
  void RequestStop();
  // A line that was pushed. The same line again counts only once `same_is_news` has passed since the last.
  void AddLine(const std::string& text, std::optional<kube::Duration> same_is_news);

  SpeedObservation Look() const;
  // The whole log of the ended container was read.
  bool HasEnded() const;
  // Why the log may not be read; empty: it may.
  std::string Refusal() const;
  // More of the log may come: its end was not seen, and it had news in the last half minute, or a minute more if it
  // could not be read since.
  bool IsLogAwaited() const;
  // The end of a Retry-After for the log.
  kube::TimePoint busy_until() const { return follower_ ? follower_->busy_until() : kube::TimePoint{}; }

  void OnStart(std::optional<kube::Time> since) override;
  void OnBytes(std::string_view bytes) override;
  void OnState(kube::LogState state, const std::string& reason) override;

 private:
  const kube::Clock& clock_;
  const std::function<void()> wake_;
  const kube::TimePoint began_ = clock_.Now();
  const kube::WallTime began_wall_ = clock_.WallNow();
  mutable std::mutex mutex_;  // Guards what follows.
  SpeedReader reader_;
  SpeedState state_ = SpeedState::kWaiting;
  std::optional<kube::TimePoint> last_look_;
  std::string last_line_;
  kube::TimePoint last_line_at_{};
  kube::LogState log_ = kube::LogState::kWaiting;
  std::string refusal_;
  bool has_started_ = false;       // A stream of its log has begun.
  bool has_failed_ = false;        // Since its last news, the log could not be read.
  kube::TimePoint news_ = began_;  // When the log last brought something.

  std::unique_ptr<kube::LogFollower> follower_;  // Last: its thread calls this object until it is destroyed.
};

}  // namespace grus
