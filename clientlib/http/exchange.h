// SPDX-License-Identifier: Apache-2.0
// One request and its answer, shared by the calling thread and a pool's I/O thread.
//
// The I/O thread reports what arrives (On...); the calling thread waits for it (Await...). A stream's body
// waits in chunks for its reader, up to a limit: the I/O thread never waits for a reader. No curl type here.
// Thread-safe for one I/O thread and one calling thread.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "clientlib/http/transport.h"

namespace kube {

class Exchange {
 public:
  enum class Kind { kWhole, kStream };

  // `limit`: bytes of a whole body, or of a stream's unread bytes.
  Exchange(Kind kind, HttpRequest request, std::size_t limit, const Clock& clock);

  const HttpRequest& request() const { return request_; }

  // --- I/O thread ---

  // A header line with or without its line end. True if it ended the header block of the final answer.
  bool OnHeaderLine(std::string_view line);
  // False: the rest is not wanted, end the transfer.
  bool OnBody(std::string_view bytes);
  // The transfer ended, with `error` if it broke. No On...() after it.
  void OnEnd(std::optional<Error> error);
  // Of the newest status line: 1, 2; 0 before one came.
  int http_major() const { return http_major_; }

  // --- calling thread ---

  // Waits for the end of the exchange, at most until `until`.
  Result<HttpResponse> AwaitWhole(TimePoint until, std::stop_token stop);
  // Waits for the headers of a 200, or else for the whole (cut) answer.
  Result<HttpResponse> AwaitHead(TimePoint until, std::stop_token stop);
  // As ByteStream::Read(). REQUIRES: AwaitHead() returned a 200.
  Result<std::string> AwaitChunk(TimePoint until, std::stop_token stop);
  bool has_ended() const;

 private:
  template <typename Predicate>
  Status Await(TimePoint until, const std::stop_token& stop, Predicate holds);
  bool OnStreamBody(std::string_view bytes);

  const Kind kind_;
  const HttpRequest request_;
  const std::size_t limit_;
  const Clock& clock_;

  // I/O thread only, until has_head_ or has_ended_ hands response_ to the calling thread.
  HttpResponse response_;
  int http_major_ = 0;
  bool in_body_ = false;
  bool is_cut_ = false;
  std::optional<Error> refusal_;  // Why OnBody() returned false, unless the body was only cut.

  mutable std::mutex mutex_;  // Guards all below.
  CondVar changed_;
  bool has_head_ = false;
  bool has_ended_ = false;
  std::optional<Error> error_;
  std::deque<std::string> chunks_;
  std::size_t unread_bytes_ = 0;
};

}  // namespace kube
