// SPDX-License-Identifier: Apache-2.0
// ParseRetryAfter() and RetryDelay(), at any time. Rules: a wait is neither negative nor longer than a day,
// and a try again is never sooner than the backoff.
#include "clientlib/http/retry.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view value = fuzz::Text(data, size);
  constexpr kube::Duration kBackoff = std::chrono::milliseconds(50);
  kube::HttpResponse response;
  response.status = 503;
  response.headers = {{"retry-after", std::string(value)}};
  for (const kube::WallTime now : {kube::WallTime::min(), kube::WallTime(std::chrono::seconds(784111777)),
                                   kube::WallTime(std::chrono::seconds(1767323045)), kube::WallTime::max()}) {
    const std::optional<kube::Duration> wait = kube::ParseRetryAfter(value, now);
    fuzz::Require(!wait || (*wait >= kube::Duration::zero() && *wait <= std::chrono::hours(24)), "a wait is bounded");
    const std::optional<kube::Duration> delay = kube::RetryDelay("PATCH", response, 1, kBackoff, now);
    fuzz::Require(delay.has_value() == wait.has_value(), "an answer is tried again when it says so");
    fuzz::Require(!delay || (*delay >= kBackoff && *delay >= *wait), "no try is too soon");
  }
  return 0;
}
