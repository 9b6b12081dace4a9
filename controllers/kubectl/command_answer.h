// SPDX-License-Identifier: Apache-2.0
// How commands of kubectl-grus end: what they write, and their exit status.
#pragma once

#include <iosfwd>
#include <string>

#include "clientlib/base/error.h"

namespace grus {

inline constexpr int kCommandFailed = 1, kCommandWrongUse = 2;

// Each returns the exit status. What stands in objects and files does not control the user's terminal.
int SayWrongUse(std::ostream& error, const std::string& what);
int SayFailed(std::ostream& error, const kube::Error& why);
int Finish(std::ostream& out, std::ostream& error, const std::string& answer);

}  // namespace grus
