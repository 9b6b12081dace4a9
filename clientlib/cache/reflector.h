// SPDX-License-Identifier: Apache-2.0
// List and watch: keeps a sink up to date with one kind of the API server (docs/runtime-rules.md, section L).
//
// Starts with a watch-list (KEP-3157) and falls back to list + watch where the server does not know it. A watch that
// ends or breaks is resumed from the last resource version; only 410 Gone, and errors that would recur (MayResume),
// cost a relist. Backoff 0.8 s doubling to 30 s, or to 1.5 s while the network fails. A stream that outlives its
// timeout is given up (L13). Run() blocks on the caller's thread until `stop`; everything is decoded and delivered on
// that thread.
#pragma once

#include <mutex>
#include <random>
#include <stop_token>
#include <string>
#include <unordered_set>
#include <vector>

#include "clientlib/base/backoff.h"
#include "clientlib/base/failure_news.h"
#include "clientlib/base/log.h"
#include "clientlib/cache/store.h"
#include "clientlib/cache/watch_event.h"
#include "clientlib/client/client.h"
#include "clientlib/model/object_list.h"

namespace kube {

// Receives what the reflector sees. Called on the reflector's thread, one call at a time.
class ReflectorSink {
 public:
  virtual ~ReflectorSink() = default;
  virtual void OnReplace(std::vector<ConstObject> objects, const std::string& resource_version) = 0;
  virtual void OnPut(ConstObject object) = 0;
  virtual void OnDelete(ConstObject last_state) = 0;
  virtual void OnBookmark(const std::string& resource_version) = 0;
  virtual void OnRefused() {}  // See ReflectorOptions::is_optional. May be called more than once.
  // What the sink has of this object; null: nothing. It keeps its place while its new state cannot be read (L15).
  virtual ConstObject Known(const ObjectKey&) { return nullptr; }
};

struct ReflectorOptions {
  std::string ns{};  // Empty: all namespaces.
  std::string label_selector{}, field_selector{};
  bool use_watch_list = true;
  // Without permission, or if the server does not know the kind: log this once, tell the sink, and keep trying.
  bool is_optional = false;
};

// What happened so far: for metrics and messages. Thread-safe to read through Reflector::stats().
struct ReflectorStats {  // Bad events: also objects of lists that cannot be read.
  std::uint64_t lists = 0, watches = 0, events = 0, bad_events = 0, failures = 0;
  std::string last_error;  // Empty while all is well.
};

class Reflector {
 public:
  Reflector(Client& client, const Kind& kind, ReflectorOptions options, const Clock& clock, const Log& log,
            ReflectorSink& sink, std::uint64_t seed);

  void Run(std::stop_token stop);
  ReflectorStats stats() const;

 private:
  struct Position {
    std::string resource_version;  // Resume here; empty: nothing seen yet.
    bool is_refused = false;       // The server said that it is too old or too new: ask without a version.
    bool is_synced = false;        // A watch can start at resource_version.
  };

  Status ListAll(std::stop_token stop);
  Status WatchFrom(std::stop_token stop);
  Status ReadStream(ByteStream& stream, bool is_initial, TimePoint end_of_watch, std::stop_token stop);
  Status HandleLine(std::string_view line, bool& is_initial, std::vector<ConstObject>& initial);
  Duration WatchTimeout(bool is_initial);
  void NoteFailure(const Error& error);
  void CountBadEvent(const Error& error);
  void CountUnreadable(const UnreadableObject& object);
  ConstObject LastStateOf(const Object& identity);
  void HandleUnreadable(WatchEventType type, const UnreadableObject& object, bool is_initial,
                        std::vector<ConstObject>& initial);

  Client& client_;
  const Kind& kind_;
  const ReflectorOptions options_;
  const Clock& clock_;
  const Log& log_;
  ReflectorSink& sink_;
  std::minstd_rand random_;
  Backoff backoff_, network_backoff_;  // After what a server said; after failures of the network.
  bool was_open_ = false;              // In this try, the server began to send.
  Position position_;
  bool watch_list_works_;
  bool is_refusal_logged_ = false;
  FailureNews failure_news_;  // What of failures is logged.
  int unfinished_lists_ = 0;  // Watch-lists in a row that ended before the mark.
  std::uint64_t events_in_watch_ = 0;
  std::unordered_set<ObjectKey> unreadable_;  // Objects whose latest state cannot be read, so that each is logged once.

  mutable std::mutex stats_mutex_;  // Guards stats_.
  ReflectorStats stats_;
};

}  // namespace kube
