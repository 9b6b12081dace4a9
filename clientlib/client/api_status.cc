// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/api_status.h"

#include "clientlib/http/retry.h"
#include "clientlib/model/json.h"
#include "clientlib/model/utf8.h"

namespace kube {
namespace {

constexpr std::size_t kMaxMessageBytes = 300;

ErrorCode CodeOf(int http_status, std::string_view reason) {
  switch (http_status) {
    case 400: return reason == "Expired" ? ErrorCode::kGone : ErrorCode::kInvalidArgument;
    case 401: return ErrorCode::kUnauthorized;
    case 403: return ErrorCode::kForbidden;
    case 404: return ErrorCode::kNotFound;
    case 409: return reason == "AlreadyExists" ? ErrorCode::kAlreadyExists : ErrorCode::kConflict;
    case 410: return ErrorCode::kGone;
    case 413: return ErrorCode::kTooLarge;
    case 422: return ErrorCode::kInvalid;
    case 429: return ErrorCode::kTooManyRequests;
    case 504: return ErrorCode::kTimeout;
    default: break;
  }
  if (reason == "Expired" || reason == "Gone") return ErrorCode::kGone;
  return http_status >= 500 ? ErrorCode::kUnavailable : ErrorCode::kInternal;
}

std::string OneLine(std::string_view body) {
  std::string line;
  for (const char c : body.substr(0, kMaxMessageBytes)) {
    const bool is_space = c == '\n' || c == '\r' || c == '\t' || c == ' ';
    if (!is_space) line += c;
    else if (!line.empty() && line.back() != ' ') line += ' ';
  }
  return RepairUtf8(line);  // A page may be in any encoding, and the cut may be within a character.
}

std::string StringAt(const Json& json, std::string_view key) {
  const Json* found = json.Find(key);
  const std::string* text = found ? found->AsString() : nullptr;
  return text ? *text : std::string();
}

Error MakeError(int http_status, std::string_view body) {
  const Result<Json> json = ParseJson(body, {.max_bytes = 1 << 20, .max_depth = 20});
  std::string reason, message;
  if (json && StringAt(*json, "kind") == "Status") {
    reason = StringAt(*json, "reason");
    message = StringAt(*json, "message");
    const Json* const code = json->Find("code");
    const std::int64_t value = code && code->AsInt() ? *code->AsInt() : 0;
    if (http_status == 0 && value >= 100 && value <= 999) http_status = static_cast<int>(value);
  }
  if (message.empty()) {
    message = "server answered " + std::to_string(http_status);
    if (const std::string line = OneLine(body); !line.empty()) message += ": " + line;
  }
  const ErrorCode code = CodeOf(http_status, reason);
  return Error(code, std::move(message)).with_http(http_status, std::move(reason));
}

}  // namespace

Error ErrorFromResponse(const HttpResponse& response, WallTime now) {
  Error error = MakeError(response.status, response.body);
  // Name the flow schema (API Priority and Fairness) that throttled us, for an administrator to widen (H2).
  const std::string& flow = response.Header("x-kubernetes-pf-flowschema-uid");
  if (response.status == 429 && !flow.empty()) {
    error =
        Error(error.code(), error.message() + " (flow schema " + flow + ")").with_http(response.status, error.reason());
  }
  if (const auto wait = ParseRetryAfter(response.Header("retry-after"), now)) {
    return std::move(error).with_retry_after(*wait);
  }
  return error;
}

Error ErrorFromStatus(std::string_view status_json) { return MakeError(0, status_json); }

}  // namespace kube
