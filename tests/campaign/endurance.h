// SPDX-License-Identifier: Apache-2.0
// Hours of coming and going in virtual time: does the manager's memory stay where it is?
#pragma once

#include <cstdint>

namespace grus::testing {

// Plays `hours` of a cluster on which jobs, gangs and trials start, end and are deleted, and prints after each hour,
// when all of them are gone, how many bytes of heap the process has in use. The fake API server and cluster are in the
// same process, so their memory counts too; what they keep of the past is dropped first. Returns the exit status: 1 if
// the heap grew, if something was left over, or if hardly anything ran.
int RunEndurance(int hours, std::uint64_t seed);

}  // namespace grus::testing
