// SPDX-License-Identifier: Apache-2.0
// Follows the log of one container until the container has ended and its whole log was read, or its pod is gone.
//
// The sink gets the bytes of the log, with timestamps, as they come: the follower keeps none. When a stream breaks or
// ends early, another one is opened at the time of the last line. The API takes whole seconds, so lines of that second
// are repeated, and an unfinished line is void: OnStart() says so, and the sink skips lines that it has. Lines are lost
// if the node has dropped them: by rotating a long log, or what a container wrote before its restart while no stream
// was open. A container that may be restarted has not ended.
//
// Backoff 0.8 s doubling to 30 s, with jitter; it is reset by each new line. A quiet stream is not broken, but the pod
// is read now and then, and after five reads the stream is replaced. A stream has at most 4 MiB, more only if one
// second has more, so that no more than this waits for a slow sink; then another stream continues.
//
// One thread each (Clock::Spawn), which blocks in reads and so costs its stack; the caller bounds the number of
// followers. All times are the node's and are only sent back to it, never compared with our clock. Not thread-safe. The
// sink is called on the follower's thread, one call at a time, and never after the destructor, which stops it, has
// returned.
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
  kEnded,      // No more bytes will come; the thread has ended its work.
  kRefused,    // We may not read it, or there is no such container. Tried again, since rights change.
};
std::string_view ToString(LogState state);

class LogSink {
 public:
  virtual ~LogSink() = default;
  // A stream begins, with the start of a line; `since`: from that second on, empty: from the log's beginning.
  virtual void OnStart(std::optional<Time> since) = 0;
  // Cut anywhere. Must not block for long: if the reader falls far behind, the stream is closed and opened again.
  virtual void OnBytes(std::string_view bytes) = 0;
  // On each change of the state or its reason: "pods "w-0" is forbidden: User "u" cannot get resource "pods/log"".
  virtual void OnState(LogState state, const std::string& reason) = 0;
};

struct LogFollowerOptions {
  ObjectKey pod{};
  std::string uid{};                              // Another pod of that name is not followed. Empty: any.
  std::string container{};                        // Empty: the pod's only one.
  std::optional<Time> since{};                    // The first stream begins there;
  std::optional<std::int64_t> tail_lines{};       // and with no more than so many lines.
  Duration look_after = std::chrono::minutes(1);  // How long a stream may be quiet before the pod is looked at.
  TimePoint not_before{};                         // The first request: busy_until() of the one whose place it takes.
};

class LogFollower {
 public:
  // `client`, `clock` and `sink` must outlive it.
  LogFollower(Client& client, LogFollowerOptions options, const Clock& clock, LogSink& sink);
  ~LogFollower();
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

  void Start();  // Once.
  // Asks the thread to end, and does not wait: for many at once, before they are destroyed.
  void RequestStop();
  // The end of the API server's last Retry-After; long past: there was none. Thread-safe.
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
