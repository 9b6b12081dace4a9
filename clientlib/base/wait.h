// SPDX-License-Identifier: Apache-2.0
// A wait that a stop request ends early. Thread-safe.
#pragma once

#include <stop_token>

#include "clientlib/base/clock.h"
#include "clientlib/base/error.h"

namespace kube {

// Waits for `wait` on `clock`, less if `stop` is requested. False if it was.
bool WaitFor(const Clock& clock, Duration wait, const std::stop_token& stop);

}  // namespace kube
