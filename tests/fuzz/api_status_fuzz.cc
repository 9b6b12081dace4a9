// SPDX-License-Identifier: Apache-2.0
// ErrorFromResponse() and ErrorFromStatus(): the status and a Retry-After on the first line, then the body.
// Rules: an error says something, keeps the status, and its HTTP status is one; a body that is no Status is
// cut short.
#include <charconv>

#include "clientlib/client/api_status.h"
#include "clientlib/model/json.h"
#include "clientlib/model/utf8.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = fuzz::Text(data, size);
  std::string_view retry_after = fuzz::Cut(rest, '\n');
  const std::string_view status = fuzz::Cut(retry_after, ' ').substr(0, 3);
  kube::HttpResponse response;
  std::from_chars(status.data(), status.data() + status.size(), response.status);
  response.headers = {{"retry-after", std::string(retry_after)}};
  response.body = rest;

  const kube::Error error = kube::ErrorFromResponse(response, kube::WallTime(std::chrono::hours(24 * 365 * 50)));
  fuzz::Require(!error.message().empty(), "an error says what is wrong");
  fuzz::Require(kube::IsValidUtf8(error.message()), "a message is valid UTF-8");
  fuzz::Require(error.retry_after().value_or(kube::Duration::zero()) >= kube::Duration::zero(), "no wait is negative");
  fuzz::Require(kube::ParseJson(rest).ok() || error.message().size() < 1000, "a page is cut short");
  if (response.status != 0) fuzz::Require(error.http_status() == response.status, "the status is the answer's");

  const kube::Error event = kube::ErrorFromStatus(rest);
  fuzz::Require(!event.message().empty(), "an event's error says what is wrong");
  fuzz::Require(event.http_status() >= 0 && event.http_status() < 1000, "an HTTP status has three digits");
  return 0;
}
