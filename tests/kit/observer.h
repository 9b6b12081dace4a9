// SPDX-License-Identifier: Apache-2.0
// Observes a cluster for a test or a bench: caches of some kinds, and a wait that checks again at each change.
//
// It never polls. Handlers run on the caches' threads. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "clientlib/cache/informer.h"
#include "clientlib/client/client.h"
#include "clientlib/model/meta.h"

namespace kit {

class Observer {
 public:
  using Handler = std::function<void(const kube::Kind& kind, const kube::Change& change)>;

  Observer(kube::Client& client, const kube::Clock& clock, const kube::Log& log,
           const std::vector<const kube::Kind*>& kinds);

  // `handler` is called for each change before waiters check again. It must live as long as this. An error names the
  // cache that did not sync in time.
  kube::Status Start(Handler handler, kube::Duration limit = std::chrono::seconds(60));

  // Throws for a kind that is not watched.
  const kube::Informer& Of(const kube::Kind& kind) const;

  // True as soon as `holds()` is; false at `until`. It is called without a lock of this.
  bool Await(const std::function<bool()>& holds, kube::TimePoint until);

 private:
  const kube::Clock& clock_;
  Handler handler_;
  std::mutex mutex_;  // Guards changes_.
  kube::CondVar changed_;
  std::uint64_t changes_ = 0;
  std::vector<std::unique_ptr<kube::Informer>> informers_;  // Last: they tell of changes until they are gone.
};

}  // namespace kit
