// SPDX-License-Identifier: Apache-2.0
// Follows the log of one container until the container has ended and its whole log was read, or its pod is gone.
//
// The sink gets the log's bytes, with timestamps, as they arrive; the follower keeps none. When a stream breaks or ends
// early, the follower opens another one at the time of the last line. The API takes whole seconds, so lines of that
// second come again: at OnStart() the sink drops an unfinished line, and it skips lines that it has. Lines are lost if
// the node drops them: when it rotates a long log, or when a container restarts while no stream is open. A container
// that may be restarted has not ended.
//
// Backoff 0.8 s doubling to 30 s, with jitter; each new line resets it. When a stream is quiet for `look_after`, the
// follower reads the pod; at the fifth time in a row it replaces the stream. A stream delivers at most 4 MiB (more only
// if one second of log has more), which bounds what waits for a slow sink; then another stream continues.
//
// Each follower has a thread (Clock::Spawn) that blocks in reads; the caller bounds the number of followers. Times in
// the log are the node's: they are only sent back to it, never compared with our clock. Not thread-safe. The sink is
// called on the follower's thread, one call at a time. The destructor stops the thread: no call comes after it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "clientlib/client/client.h"
#include "clientlib/model/time.h"

namespace kube {

enum class LogState {
  kWaiting,    // No stream: the container has not started, or the API server or the node does not answer.
  kFollowing,  // A stream is open.
  kEnded,      // No more bytes will come; the follower is done.
  kRefused,    // We may not read it, or there is no such container. Retried, since rights may change.
};
std::string_view ToString(LogState state);

class LogSink {
 public:
  virtual ~LogSink() = default;
  // A stream begins, at the start of a line: with the lines from second `since` on, or (empty) from the log's
  // beginning.
  virtual void OnStart(std::optional<Time> since) = 0;
  // `bytes` may be cut anywhere. Must not block for long: if the sink falls far behind, the stream is closed and opened
  // again.
  virtual void OnBytes(std::string_view bytes) = 0;
  // On each change of the state or its reason: "pods "w-0" is forbidden: User "u" cannot get resource "pods/log"".
  virtual void OnState(LogState state, const std::string& reason) = 0;
};

struct LogFollowerOptions {
  ObjectKey pod{};
  std::string uid{};                              // Another pod of that name is not followed. Empty: any pod.
  std::string container{};                        // Empty: the pod's only one.
  std::optional<Time> since{};                    // The first stream begins at this time,
  std::optional<std::int64_t> tail_lines{};       // with at most this many lines.
  Duration look_after = std::chrono::minutes(1);  // How long a stream may be quiet before the pod is read.
  TimePoint not_before{};                         // For the first request: busy_until() of the follower it replaces.
};

class LogFollower {
 public:
  // `client`, `clock` and `sink` must outlive it.
  LogFollower(Client& client, LogFollowerOptions options, const Clock& clock, LogSink& sink);
  ~LogFollower();
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

  void Start();  // Once.
  // Asks the thread to end and does not wait. Call it on all followers before you destroy the first.
  void RequestStop();
  // When the API server's last Retry-After ends; long past if there was none. Thread-safe.
  TimePoint busy_until() const { return busy_until_; }

 private:
  class Run;
  Client& client_;
  const LogFollowerOptions options_;
  const Clock& clock_;
  LogSink& sink_;
  std::atomic<TimePoint> busy_until_{};
  Thread thread_;
};

}  // namespace kube
