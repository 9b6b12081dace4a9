// SPDX-License-Identifier: Apache-2.0
// By which numbers a process is known in the PID namespaces that it is in.
#pragma once

#include <string>
#include <vector>

namespace grus {

// Its number in that of `proc` first, in its own last. Empty: it has ended. `pid`: as `proc` has it.
std::vector<int> NamespacePids(const std::string& proc, int pid);

}  // namespace grus
