// SPDX-License-Identifier: Apache-2.0
// Keeps a driver for claimed devices known to this node's kubelet: serves it as `DRIVER-grus.sock` in the kubelet's
// folder for plugins, and again within five seconds when the socket is lost. A kubelet that starts finds the socket by
// itself. What fails is tried again, and told in the log once a minute. Thread-safe, but for Run().
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "clientlib/base/clock.h"
#include "clientlib/base/failure_news.h"
#include "clientlib/base/log.h"
#include "nodeagent/kubelet/claim_server.h"

namespace grus {

class ClaimHost {
 public:
  // All must outlive it. `folder`: the kubelet's for plugins.
  ClaimHost(ClaimDriver& driver, const std::string& folder, const kube::Clock& clock, const kube::Log& log);

  void Run(const std::stop_token& stop);  // Blocks until `stop`. The socket is gone when it returns.
  const std::string& socket() const { return socket_; }
  bool is_registered() const { return is_registered_; }  // The kubelet has taken it, so far as is known.

 private:
  void LookOnce();
  void Note(const kube::Status& status);

  ClaimDriver& driver_;
  const std::string socket_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  std::unique_ptr<ClaimServer> server_;
  kube::FailureNews news_;
  std::atomic<bool> is_registered_ = false;
  std::mutex mutex_;  // Guards refused_.
  kube::FailureNews refused_;
};

}  // namespace grus
