// SPDX-License-Identifier: Apache-2.0
// Whether and when to send a request again. Pure: numbers in, decision out.
#pragma once

#include <optional>
#include <string_view>

#include "clientlib/base/clock.h"
#include "clientlib/http/transport.h"

namespace kube {

inline constexpr int kMaxTries = 10;  // Of one request, the first included; as client-go.

// A Retry-After header: seconds or an HTTP date (RFC 9110, 10.2.3). Zero if the date has passed; nullopt if
// it is neither.
std::optional<Duration> ParseRetryAfter(std::string_view value, WallTime now);

// How long to wait before sending again, after the `tries`-th try (from 1) ended as `outcome`; nullopt: give
// the outcome to the caller.
// - 429 or 5xx with Retry-After: the longer of that and `backoff`. Without the header, a retry may not help.
// - GET and HEAD whose connection broke: `backoff`. A write may have been carried out, so the caller decides.
std::optional<Duration> RetryDelay(std::string_view method, const Result<HttpResponse>& outcome, int tries,
                                   Duration backoff, WallTime now);

}  // namespace kube
