// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/conflict_retry.h"

#include "clientlib/base/wait.h"

namespace kube {

Status RetryOnConflict(const Clock& clock, const std::function<Status()>& attempt, std::stop_token stop,
                       const ConflictRetry& retry) {
  Backoff backoff(retry.wait, clock.RandomSeed());
  for (int tries = 1;; ++tries) {
    Status done = attempt();
    if (done || done.error().code() != ErrorCode::kConflict || tries >= retry.tries) return done;
    if (!WaitFor(clock, backoff.Next(), stop)) return done;
  }
}

}  // namespace kube
