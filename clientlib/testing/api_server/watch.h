// SPDX-License-Identifier: Apache-2.0
// Watches: what the server writes into them, and the stream that a client reads.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "clientlib/http/transport.h"
#include "clientlib/testing/api_server/selector.h"
#include "clientlib/testing/api_server/storage.h"

namespace kube::testing {

struct WatchSettings {
  std::string ns;  // Empty: all.
  Selector selector;
  bool has_bookmarks = false;
  Duration bookmark_period;
  TimePoint end;
  std::uint64_t begin = 0;  // The watch reports changes after this version.
};

// The events of one watch that its client has not read. Except in Read(), the server's lock is held.
class WatchQueue {
 public:
  WatchQueue(std::shared_ptr<const ResourceInfo> info, WatchSettings settings, const Clock& clock);

  void Push(const Change& change);                                       // If the selection includes it.
  void PushAdded(const RevisionPtr& object);                             // Likewise.
  void PushInitialEnd(std::uint64_t revision);                           // The bookmark that ends the initial events.
  void SkipUntil(std::uint64_t revision) { skipped_until_ = revision; }  // There are no changes up to `revision`.
  void PushError(const ApiError& error);                                 // And ends.
  void End();
  void Break(Error error);
  void Close() { is_closed_ = true; }  // The reader is gone.
  bool is_closed() const { return is_closed_; }

  // As ByteStream::Read(). Takes the lock itself.
  Result<std::string> Read(ServerShared& server, TimePoint until, const std::stop_token& stop);

 private:
  struct Event {
    const char* type;
    RevisionPtr object;
    std::string text{};  // Instead of `object`.
  };
  bool Selects(const RevisionPtr& revision) const;
  void Add(const char* type, RevisionPtr object, std::string text = {});
  std::string Bookmark(std::uint64_t revision, bool ends_initial_events) const;
  TimePoint NextBookmark() const;

  const std::shared_ptr<const ResourceInfo> info_;
  const WatchSettings settings_;
  const Clock& clock_;
  CondVar changed_;
  std::deque<Event> events_;
  std::optional<Error> broken_;
  bool is_ended_ = false;
  bool is_closed_ = false;
  std::uint64_t skipped_until_ = 0;
  TimePoint bookmark_due_;
};

std::unique_ptr<ByteStream> MakeStream(std::shared_ptr<ServerShared> server, std::shared_ptr<WatchQueue> queue);
std::unique_ptr<ByteStream> MakeStream(std::string body);

}  // namespace kube::testing
