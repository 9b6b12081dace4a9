// SPDX-License-Identifier: Apache-2.0
// Memory that a forked child finds zeroed: for what holds for one process alone, such as locks that another thread of
// the parent may have held, and the place of the parent in the account.
//
// The kernel does it (MADV_WIPEONFORK, Linux 4.14), also for a raw clone(); before 4.14 a handler of pthread_atfork
// does, which a raw clone() does not run. A child that shares the memory of its parent (vfork, until it execs) finds it
// as it is, and counts as its parent.
#pragma once

#include <cstddef>

namespace grus::cuda {

// Zeroed, aligned as a page, never freed; null: there is no memory. Thread-safe. Sets errno.
void* MapWipedOnFork(std::size_t bytes);

}  // namespace grus::cuda
