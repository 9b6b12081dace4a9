// SPDX-License-Identifier: Apache-2.0
// Owns informers and controllers and runs them in the right order.
//
// Run() starts the informers. Once all are synced it starts the controllers: at once, or when this process becomes
// leader. Caches stay warm while another process leads. A stop drains the controllers first, then ends the informers.
// Not thread-safe except IsReady().
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>
#include <vector>

#include "clientlib/cache/informer.h"
#include "clientlib/runtime/controller.h"
#include "clientlib/runtime/leader_elector.h"

namespace kube {

struct ManagerOptions {
  Duration sync_timeout = std::chrono::minutes(2);
  Duration drain_timeout = std::chrono::seconds(30);
};

class Manager {
 public:
  Manager(Client& client, const Clock& clock, const Log& log, Registry& metrics, ManagerOptions options = {});
  ~Manager();

  // The results live as long as the manager. REQUIRES: before Run().
  Informer& AddInformer(const Kind& kind, InformerOptions options = {});
  Controller& AddController(Reconciler& reconciler, ControllerOptions options);

  // Blocks until `stop`. `elector` may be null. Errors: caches that do not sync in time, leadership lost.
  Status Run(std::stop_token stop, LeaderElector* elector = nullptr);

  // True from when all caches have synced until the stop.
  bool IsReady() const { return is_ready_.load(); }

 private:
  Status WaitForCaches(std::stop_token stop);
  void Work(std::stop_token stop, std::stop_token lost);

  Client& client_;
  const Clock& clock_;
  const Log& log_;
  Registry& metrics_;
  const ManagerOptions options_;
  std::vector<std::unique_ptr<Informer>> informers_;
  std::vector<std::unique_ptr<Controller>> controllers_;
  std::atomic<bool> is_ready_{false};
};

}  // namespace kube
