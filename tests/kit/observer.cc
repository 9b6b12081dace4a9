// SPDX-License-Identifier: Apache-2.0
#include "tests/kit/observer.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace kit {

Observer::Observer(kube::Client& client, const kube::Clock& clock, const kube::Log& log,
                   const std::vector<const kube::Kind*>& kinds)
    : clock_(clock) {
  for (const kube::Kind* kind : kinds) {
    auto informer = std::make_unique<kube::Informer>(client, *kind, kube::InformerOptions{}, clock, log);
    informer->AddIndex([](const kube::Object& object) { return std::vector<std::string>{object.metadata.ns}; });
    informers_.push_back(std::move(informer));
  }
}

kube::Status Observer::Start(Handler handler, kube::Duration limit) {
  handler_ = std::move(handler);
  for (auto& informer : informers_) {
    informer->AddHandler([this, &kind = informer->kind()](const kube::Change& change, bool) {
      handler_(kind, change);
      std::lock_guard lock(mutex_);
      ++changes_;
      changed_.NotifyAll();
    });
    informer->Start();
  }
  const kube::TimePoint until = clock_.Now() + limit;
  for (auto& informer : informers_) {
    if (informer->WaitForSync(until)) continue;
    return kube::Error(kube::ErrorCode::kTimeout, "the observer's own cache of " +
                                                      std::string(informer->kind().plural) +
                                                      " did not sync: " + informer->stats().last_error);
  }
  return {};
}

const kube::Informer& Observer::Of(const kube::Kind& kind) const {
  for (const auto& informer : informers_) {
    if (&informer->kind() == &kind) return *informer;
  }
  throw std::logic_error(std::string(kind.plural) + " are not watched");
}

bool Observer::Await(const std::function<bool()>& holds, kube::TimePoint until) {
  for (;;) {
    std::unique_lock lock(mutex_);
    const std::uint64_t seen = changes_;
    lock.unlock();
    if (holds()) return true;
    lock.lock();
    while (changes_ == seen && clock_.Now() < until) clock_.WaitUntil(lock, changed_, until);
    if (changes_ == seen) return false;
  }
}

}  // namespace kit
