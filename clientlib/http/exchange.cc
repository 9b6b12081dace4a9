// SPDX-License-Identifier: Apache-2.0
#include "clientlib/http/exchange.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "clientlib/base/lower_case.h"

namespace kube {
namespace {

constexpr std::size_t kChunkBytes = 64UL << 10;      // What one ByteStream::Read() hands over.
constexpr std::size_t kErrorBodyBytes = 64UL << 10;  // Of a refused stream: enough for any Status object.
constexpr std::size_t kReserveBytes = 4UL << 20;     // The most reserved for a Content-Length before bytes come.

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// The status of "HTTP/1.1 200 OK" or "HTTP/2 200"; 0 if there is none.
int StatusOf(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return 0;
  int status = 0;
  std::from_chars(line.data() + space + 1, line.data() + line.size(), status);
  return status;
}

}  // namespace

Exchange::Exchange(Kind kind, HttpRequest request, std::size_t limit, const Clock& clock)
    : kind_(kind), request_(std::move(request)), limit_(limit), clock_(clock) {}

bool Exchange::OnHeaderLine(std::string_view line) {
  if (in_body_) return false;  // A trailer.
  line = Trim(line);
  if (line.starts_with("HTTP/")) {
    // Also the start of the final answer after a "100 Continue".
    response_.status = StatusOf(line);
    response_.headers.clear();
    http_major_ = line.size() > 5 ? line[5] - '0' : 0;
    return false;
  }
  if (!line.empty()) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return false;
    response_.headers.emplace_back(LowerCase(line.substr(0, colon)), Trim(line.substr(colon + 1)));
    return false;
  }
  if (response_.status < 200) return false;

  in_body_ = true;
  if (kind_ == Kind::kWhole) {
    const std::string& length = response_.Header("content-length");
    std::size_t bytes = 0;
    std::from_chars(length.data(), length.data() + length.size(), bytes);
    response_.body.reserve(std::min({bytes, limit_, kReserveBytes}));
  } else if (response_.status == 200) {
    {
      std::lock_guard lock(mutex_);
      has_head_ = true;
    }
    changed_.NotifyAll();
  }
  return true;
}

bool Exchange::OnBody(std::string_view bytes) {
  if (kind_ == Kind::kStream && response_.status == 200) return OnStreamBody(bytes);
  std::string& body = response_.body;
  if (kind_ == Kind::kStream) {
    body.append(bytes.substr(0, kErrorBodyBytes - body.size()));
    is_cut_ = body.size() == kErrorBodyBytes;
    return !is_cut_;
  }
  if (bytes.size() > limit_ - body.size()) {
    refusal_ = Error(ErrorCode::kTooLarge, "the answer is larger than " + std::to_string(limit_) + " bytes");
    return false;
  }
  body.append(bytes);
  return true;
}

bool Exchange::OnStreamBody(std::string_view bytes) {
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    if (bytes.size() > limit_ - unread_bytes_) {
      refusal_ =
          Error(ErrorCode::kTooLarge, "the reader fell behind by more than " + std::to_string(limit_) + " bytes");
      chunks_.clear();
      return false;
    }
    wake = chunks_.empty();  // A reader waits only while there are no chunks.
    if (chunks_.empty() || chunks_.back().size() + bytes.size() > kChunkBytes) chunks_.emplace_back();
    chunks_.back().append(bytes);
    unread_bytes_ += bytes.size();
  }
  if (wake) changed_.NotifyAll();
  return true;
}

void Exchange::OnEnd(std::optional<Error> error) {
  if (is_cut_) error.reset();
  if (refusal_) error = std::move(refusal_);
  {
    std::lock_guard lock(mutex_);
    error_ = std::move(error);
    has_ended_ = true;
  }
  changed_.NotifyAll();
}

template <typename Predicate>
Status Exchange::Await(TimePoint until, const std::stop_token& stop, Predicate holds) {
  // Taking the lock closes the gap between a waiter's check of `stop` and its wait. The callback object must outlive
  // the lock below: its destructor waits for a callback that is running.
  std::stop_callback wake(stop, [this] {
    { std::lock_guard lock(mutex_); }
    changed_.NotifyAll();
  });
  std::unique_lock lock(mutex_);
  while (!holds()) {
    if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped while waiting for the server");
    if (clock_.Now() >= until) return Error(ErrorCode::kTimeout, "the server did not answer in time");
    clock_.WaitUntil(lock, changed_, until);
  }
  return {};
}

Result<HttpResponse> Exchange::AwaitWhole(TimePoint until, std::stop_token stop) {
  Status status = Await(until, stop, [this] { return has_ended_; });
  if (!status) return std::move(status).error();
  // No lock: the I/O thread does not touch the fields after it has set has_ended_.
  if (error_) return *std::move(error_);
  return std::move(response_);
}

Result<HttpResponse> Exchange::AwaitHead(TimePoint until, std::stop_token stop) {
  bool is_stream = false;
  Status status = Await(until, stop, [&] {
    is_stream = has_head_;
    return has_head_ || has_ended_;
  });
  if (!status) return std::move(status).error();
  if (!is_stream) {
    if (error_) return *std::move(error_);
    return std::move(response_);
  }
  // The I/O thread still reads response_.status for each piece of the body.
  HttpResponse head;
  head.status = response_.status;
  head.headers = std::move(response_.headers);
  return head;
}

Result<std::string> Exchange::AwaitChunk(TimePoint until, std::stop_token stop) {
  std::string chunk;
  bool at_end = false;
  Status status = Await(until, stop, [&] {
    if (!chunks_.empty()) {
      chunk = std::move(chunks_.front());
      chunks_.pop_front();
      unread_bytes_ -= chunk.size();
      return true;
    }
    at_end = has_ended_;
    return at_end;
  });
  if (!status) return std::move(status).error();
  if (at_end && error_) return *error_;
  return chunk;
}

bool Exchange::has_ended() const {
  std::lock_guard lock(mutex_);
  return has_ended_;
}

}  // namespace kube
