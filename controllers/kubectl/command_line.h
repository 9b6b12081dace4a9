// SPDX-License-Identifier: Apache-2.0
// The command line of kubectl-grus, which kubectl runs as `kubectl grus`.
#pragma once

#include <iosfwd>

namespace grus {

// Does what the arguments say. Answers go to `out`, errors as one line to `error`. Returns the exit status: 0, 1 if it
// could not be done, 2 if the arguments are wrong.
int RunCommand(int argc, const char* const* argv, std::ostream& out, std::ostream& error);

}  // namespace grus
