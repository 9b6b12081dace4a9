// SPDX-License-Identifier: Apache-2.0
// What went wrong, as a value.
//
// An Error carries a code to act on, a message for a person, and what an HTTP answer said. Each layer that
// passes one on adds a phrase of context with `with(...)`, outermost first:
//   "apply StatefulSet team-a/bert-workers: field .spec.replicas is owned by "kubectl""
// Messages are lower case, without a full stop, and never hold a token, a key or a whole object.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kube {

using Duration = std::chrono::nanoseconds;

enum class ErrorCode {
  kInvalidArgument,  // The caller's or the user's input is wrong; trying again cannot help.
  kUnauthorized,     // 401
  kForbidden,        // 403
  kNotFound,         // 404
  kAlreadyExists,    // 409, reason AlreadyExists
  kConflict,         // 409, reason Conflict: the object changed, a precondition or a patch test failed.
  kGone,             // 410, or an ERROR event saying Expired or Gone.
  kInvalid,          // 422: the API server's validation refused the object.
  kTooLarge,         // A body, line or document is over our limit, or the server answered 413.
  kTooManyRequests,  // 429
  kTimeout,          // Our deadline passed, or the server answered 504.
  kUnavailable,      // The server could not be reached, the connection broke, or it answered 5xx.
  kCancelled,        // A stop was requested.
  kDecode,           // Input from outside is malformed.
  kInternal,         // Everything else.
};

std::string_view ToString(ErrorCode code);

class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // HTTP status of the answer that caused this, 0 if none.
  int http_status() const { return http_status_; }
  // `reason` of the API server's Status object, empty if none.
  const std::string& reason() const { return reason_; }
  // How long the server asked us to wait, if it did.
  std::optional<Duration> retry_after() const { return retry_after_; }
  // Trying again without a new spec cannot help.
  bool is_terminal() const { return is_terminal_; }

  Error&& with(std::string_view context) &&;
  Error&& with_http(int status, std::string reason) &&;
  Error&& with_retry_after(Duration wait) &&;
  Error&& as_terminal() &&;

  friend bool operator==(const Error&, const Error&) = default;

 private:
  ErrorCode code_;
  bool is_terminal_ = false;
  int http_status_ = 0;
  std::string message_;
  std::string reason_;
  std::optional<Duration> retry_after_;
};

}  // namespace kube
