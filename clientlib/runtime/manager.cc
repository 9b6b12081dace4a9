// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/manager.h"

#include <mutex>

namespace kube {

Manager::Manager(Client& client, const Clock& clock, const Log& log, Registry& metrics, ManagerOptions options)
    : client_(client), clock_(clock), log_(log), metrics_(metrics), options_(options) {}

Manager::~Manager() {
  // Informers feed the controllers' queues: end them before the queues are destroyed.
  for (auto& informer : informers_) informer->Stop();
  informers_.clear();
}

Informer& Manager::AddInformer(const Kind& kind, InformerOptions options) {
  informers_.push_back(std::make_unique<Informer>(client_, kind, std::move(options), clock_, log_));
  metrics_.AddCounterFunction("reflector_skipped_total", "Watch events and listed objects that could not be read.",
                              {"group", "kind"}, {std::string(kind.group), std::string(kind.kind)}, [this, &kind] {
                                double skipped = 0;
                                for (const auto& informer : informers_) {
                                  if (&informer->kind() == &kind) {
                                    skipped += static_cast<double>(informer->stats().bad_events);
                                  }
                                }
                                return skipped;
                              });
  return *informers_.back();
}

Controller& Manager::AddController(Reconciler& reconciler, ControllerOptions options) {
  controllers_.push_back(std::make_unique<Controller>(reconciler, std::move(options), clock_, log_, metrics_));
  return *controllers_.back();
}

Status Manager::WaitForCaches(std::stop_token stop) {
  const TimePoint until = clock_.Now() + options_.sync_timeout;
  for (auto& informer : informers_) {
    if (informer->WaitForSync(until, stop) || stop.stop_requested()) continue;
    Error error(ErrorCode::kTimeout, "the cache of " + std::string(informer->kind().plural) + " did not sync");
    if (const std::string why = informer->stats().last_error; !why.empty()) {
      return Error(ErrorCode::kTimeout, error.message() + ": " + why);
    }
    return error;
  }
  return {};
}

// `stop` fires for a planned stop and for a lost lease, `lost` for the latter alone.
void Manager::Work(std::stop_token stop, std::stop_token lost) {
  for (auto& controller : controllers_) controller->Start();
  {
    std::mutex mutex;
    CondVar wake;
    std::stop_callback on_stop(stop, [&] {
      std::lock_guard lock(mutex);
      wake.NotifyAll();
    });
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) clock_.WaitUntil(lock, wake, TimePoint::max());
  }
  // Once the lease is lost another process may lead: cut off our passes at once (rule E4), even while they drain.
  const TimePoint until = clock_.Now() + (lost.stop_requested() ? Duration::zero() : options_.drain_timeout);
  std::stop_callback on_lost(lost, [this] {
    for (auto& controller : controllers_) controller->CutOff();
  });
  std::vector<Thread> stops;  // In parallel: no controller starts passes while another one drains.
  for (auto& controller : controllers_) {
    stops.push_back(clock_.Spawn([&](const std::stop_token&) {
      if (!controller->Stop(until)) log_.Warn("reconciles were cut off", {{"controller", controller->name()}});
    }));
  }
}

Status Manager::Run(std::stop_token stop, LeaderElector* elector) {
  for (auto& informer : informers_) informer->Start();
  Status result = WaitForCaches(stop);
  if (result && !stop.stop_requested()) {
    is_ready_ = true;
    log_.Info("caches are synced", {{"kinds", informers_.size()}});
    if (elector == nullptr) {
      Work(stop, {});
    } else {
      result = elector->Run(
          stop, [this](std::stop_token lead, std::stop_token lost) { Work(std::move(lead), std::move(lost)); });
    }
  }
  is_ready_ = false;
  for (auto& informer : informers_) informer->Stop();
  // The caller may destroy what handlers use once Run() has returned.
  for (auto& informer : informers_) informer->Join();
  return result;
}

}  // namespace kube
