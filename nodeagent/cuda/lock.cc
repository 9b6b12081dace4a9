// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/lock.h"

namespace grus::cuda {
namespace {

const UnlockedInChild* first = nullptr;  // Set up before main().

}  // namespace

UnlockedInChild::UnlockedInChild(pthread_mutex_t& mutex) : mutex_(mutex), next_(first) {
  if (first == nullptr) pthread_atfork(nullptr, nullptr, UnlockAll);
  first = this;
}

void UnlockedInChild::UnlockAll() {
  for (const UnlockedInChild* one = first; one != nullptr; one = one->next_) pthread_mutex_init(&one->mutex_, nullptr);
}

}  // namespace grus::cuda
