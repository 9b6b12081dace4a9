// SPDX-License-Identifier: Apache-2.0
// Many blocking calls at once, for a pass that writes hundreds of objects.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>

#include "clientlib/base/clock.h"
#include "clientlib/base/result.h"

namespace kube {

// Calls `body(0)` to `body(count - 1)`, started in this order, at most `width` at a time, on the caller's thread and on
// others of `clock`. Returns when all that were started have ended. After an error, or once `stop` is requested, no
// more are started. Returns the error with the longest Retry-After, or else the first; kCancelled if only the stop
// prevented calls. Thread-safe. REQUIRES: body is thread-safe and throws nothing.
Status ForEachParallel(const Clock& clock, std::size_t count, std::size_t width,
                       const std::function<Status(std::size_t)>& body, std::stop_token stop = {});

}  // namespace kube
