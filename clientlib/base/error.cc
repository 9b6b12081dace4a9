// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/error.h"

namespace kube {

std::string_view ToString(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "InvalidArgument";
    case ErrorCode::kUnauthorized: return "Unauthorized";
    case ErrorCode::kForbidden: return "Forbidden";
    case ErrorCode::kNotFound: return "NotFound";
    case ErrorCode::kAlreadyExists: return "AlreadyExists";
    case ErrorCode::kConflict: return "Conflict";
    case ErrorCode::kGone: return "Gone";
    case ErrorCode::kInvalid: return "Invalid";
    case ErrorCode::kTooLarge: return "TooLarge";
    case ErrorCode::kTooManyRequests: return "TooManyRequests";
    case ErrorCode::kTimeout: return "Timeout";
    case ErrorCode::kUnavailable: return "Unavailable";
    case ErrorCode::kCancelled: return "Cancelled";
    case ErrorCode::kDecode: return "Decode";
    case ErrorCode::kInternal: return "Internal";
  }
  return "Unknown";
}

Error&& Error::with(std::string_view context) && {
  message_.insert(0, ": ").insert(0, context);
  return std::move(*this);
}

Error&& Error::with_http(int status, std::string reason) && {
  http_status_ = status;
  reason_ = std::move(reason);
  return std::move(*this);
}

Error&& Error::with_retry_after(Duration wait) && {
  retry_after_ = wait;
  return std::move(*this);
}

Error&& Error::as_terminal() && {
  is_terminal_ = true;
  return std::move(*this);
}

}  // namespace kube
