// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/faults/refusal.h"

#include <string>
#include <string_view>
#include <utility>

#include "clientlib/testing/fake_transport.h"

namespace kube::testing {
namespace {

HttpResponse WithRetryAfter(HttpResponse response, std::string seconds) {
  response.headers.emplace_back("retry-after", std::move(seconds));
  return response;
}
HttpResponse Html() { return {200, {{"content-type", "text/html"}}, "<html><body><h1>It works!</h1></body></html>"}; }

// The answer of a refusing server. `fault` is the name of a fault, or its ending.
struct RefusalRow {
  std::string_view fault;
  int status;
  const char *reason, *message;
  const char* retry_after = nullptr;  // Seconds.
};
constexpr char kBusy[] = "the server has received too many requests and has asked us to try again later";
constexpr char kUnavailableText[] = "the server is currently unable to handle the request";
constexpr RefusalRow kRefusals[] = {
    {"conflict", 409, "Conflict", "the object has been modified; please apply your changes to the latest version"},
    {"busy", 429, "TooManyRequests", kBusy},
    {"-busy", 429, "TooManyRequests", kBusy, "7"},
    {"busy-retry-after", 429, "TooManyRequests", kBusy, "7"},
    {"error-500", 500, "InternalError", "an error on the server has prevented the request from succeeding"},
    {"error-503", 503, "ServiceUnavailable", kUnavailableText, "1"},
    {"-503", 503, "ServiceUnavailable", kUnavailableText},
    {"-504", 504, "Timeout", "the server was unable to return a response in the time allotted"},
    {"forbidden", 403, "Forbidden", "User \"grus\" cannot create resource \"things\" in the namespace \"default\""},
    {"invalid", 422, "Invalid", "an admission check refuses"},
    {"open-gone", 410, "Expired", "The resourceVersion for the provided watch is too old."},
    {"open-no-watch-list", 422, "Invalid",
     "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is "
     "enabled"},
};

}  // namespace

std::optional<HttpResponse> Refusal(const Fault& fault) {
  const std::string_view name = fault.kind->name;
  for (const RefusalRow& row : kRefusals) {
    const bool is_suffix = row.fault.starts_with('-');
    if (is_suffix ? !name.ends_with(row.fault) : name != row.fault) continue;
    HttpResponse response = StatusAnswer(row.status, row.reason, row.message);
    return row.retry_after == nullptr ? response : WithRetryAfter(std::move(response), row.retry_after);
  }
  if (name == "read-deep") return JsonAnswer(200, std::string(20'000, '[') + std::string(20'000, ']'));
  if (name.ends_with("-garbage") || name.ends_with("-html")) return Html();
  return std::nullopt;
}

}  // namespace kube::testing
