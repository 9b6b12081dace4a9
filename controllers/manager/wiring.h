// SPDX-License-Identifier: Apache-2.0
// Builds everything, passes it down, starts it, and takes it apart in reverse order.
#pragma once

#include <stop_token>

#include "controllers/manager/options.h"

namespace grus {

// Blocks until `stop` (then the exit status is 0) or until something makes going on useless: the reason is then one
// line in the log and the exit status is 1.
int RunManager(const Options& options, std::stop_token stop);

}  // namespace grus
