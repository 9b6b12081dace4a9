// SPDX-License-Identifier: Apache-2.0
// All controllers of grus: what grus-manager runs once it is connected, without the network, signals and servers around
// it, so that the fault campaign runs the same code in virtual time.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/client/client.h"
#include "clientlib/runtime/leader_elector.h"
#include "clientlib/runtime/metrics.h"
#include "controllers/manager/options.h"
#include "controllers/prometheus/prometheus.h"

namespace grus {

class Extender;

class App {
 public:
  // Our own kinds that the controllers of `options` need.
  static std::vector<const kube::Kind*> Kinds(const Options& options);

  // `instance` names this process in events. `elector` may be null; with one, the client writes only while it leads.
  // `to_prometheus`: empty: over the network. All must outlive the app.
  App(const Options& options, kube::Client& client, kube::LeaderElector* elector, const kube::Clock& clock,
      const kube::Log& log, kube::Registry& metrics, const std::string& instance,
      Prometheus::Connect to_prometheus = nullptr);
  ~App();

  // Blocks until `stop`. Errors: caches that do not sync in time, leadership lost.
  kube::Status Run(std::stop_token stop);
  bool IsReady() const;  // Thread-safe.
  Extender* extender();  // Null: it does not run.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace grus
