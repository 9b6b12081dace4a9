// SPDX-License-Identifier: Apache-2.0
// A lock for the time of a block, and locks that a forked child finds unlocked.
#pragma once

#include <pthread.h>

#include "nodeagent/cuda/old_glibc.h"

namespace grus::cuda {

class Lock {
 public:
  explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~Lock() { pthread_mutex_unlock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

// Beside a mutex of static storage: a thread of the parent may hold it at a fork(), and the child has no such thread.
// What the mutex guards may be half changed there. It is of the parent's use of the driver, which a child cannot use.
class UnlockedInChild {
 public:
  explicit UnlockedInChild(pthread_mutex_t& mutex);
  UnlockedInChild(const UnlockedInChild&) = delete;
  UnlockedInChild& operator=(const UnlockedInChild&) = delete;

 private:
  static void UnlockAll();
  pthread_mutex_t& mutex_;
  const UnlockedInChild* const next_;
};

}  // namespace grus::cuda
