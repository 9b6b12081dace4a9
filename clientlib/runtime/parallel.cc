// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/parallel.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

namespace kube {

Status ForEachParallel(const Clock& clock, std::size_t count, std::size_t width,
                       const std::function<Status(std::size_t)>& body, std::stop_token stop) {
  std::mutex mutex;  // Guards what follows.
  std::size_t next = 0;
  std::optional<Error> error;
  const auto run = [&] {
    for (;;) {
      std::size_t index;
      {
        std::lock_guard lock(mutex);
        if (next >= count || error || stop.stop_requested()) return;
        index = next++;
      }
      Status done = body(index);
      if (done) continue;
      std::lock_guard lock(mutex);
      const auto wait_of = [](const Error& e) { return e.retry_after().value_or(Duration::zero()); };
      if (!error || wait_of(done.error()) > wait_of(*error)) error = std::move(done).error();
    }
  };
  {
    std::vector<Thread> helpers;
    for (std::size_t i = 1; i < std::min(width, count); ++i) {
      helpers.push_back(clock.Spawn([&run](std::stop_token) { run(); }));
    }
    run();
  }  // Joins.
  if (error) return *std::move(error);
  return next < count ? Status(Error(ErrorCode::kCancelled, "stopped before all was done")) : Status();
}

}  // namespace kube
