// SPDX-License-Identifier: Apache-2.0
// One plugin, served and registered again whenever the kubelet or its socket has changed.
//
// The kubelet forgets a plugin when it starts, and when it has lost the plugin's list of devices. It also mixes up two
// connections of one resource: when the older one ends, it drops the newer. So before each registration the old server
// ends, and the kubelet gets time to notice; also where the agent before was killed, and left its socket. Look() and
// End() are for one thread; the rest is thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "clientlib/base/backoff.h"
#include "clientlib/base/clock.h"
#include "clientlib/base/failure_news.h"
#include "clientlib/base/log.h"
#include "nodeagent/kubelet/device_changes.h"
#include "nodeagent/kubelet/plugin_server.h"
#include "nodeagent/kubelet/plugin_socket.h"

namespace grus {

// A server that is no longer used, on a thread of its own until its last call is over.
class EndingServer {
 public:
  EndingServer(std::unique_ptr<PluginServer> server, const kube::Clock& clock)
      : server_(std::move(server)), thread_(clock.Spawn([this](const std::stop_token&) {
          server_.reset();
          is_over_ = true;
        })) {}
  bool is_over() const { return is_over_; }

 private:
  std::atomic<bool> is_over_ = false;
  std::unique_ptr<PluginServer> server_;
  kube::Thread thread_;
};

class KeptPlugin {
 public:
  // `folder`: where the kubelet's socket and those of plugins are. `wake` asks for a Look(). All must outlive it.
  KeptPlugin(DevicePlugin& plugin, const std::string& folder, std::function<void()> wake, const kube::Clock& clock,
             const kube::Log& log);

  const std::string& socket_name() const { return socket_name_; }
  bool is_registered() const { return is_registered_; }
  int registrations() const { return registrations_; }  // So far.
  void NotifyChanged() { changes_.Add(); }

  // Does what is to do now, and says when to look again at the latest. `has_news`: something has changed in the folder,
  // so that a failure of before says little.
  kube::TimePoint Look(bool has_news, const std::stop_token& stop);
  void End();  // Its socket is gone then.

 private:
  // Why the kubelet does not use this server any more; empty: it does, or is about to.
  std::string WhyLost(const std::optional<FileIdentity>& kubelet, kube::TimePoint now) const;
  void Drop();
  kube::TimePoint NextTry(const std::optional<FileIdentity>& kubelet) const;
  kube::Status Register(const std::optional<FileIdentity>& kubelet, const std::stop_token& stop);
  void Failed(const kube::Error& error);

  DevicePlugin& plugin_;
  const std::string resource_, folder_, socket_name_;
  const std::function<void()> wake_;
  const kube::Clock& clock_;
  const kube::Log& log_;

  DeviceChanges changes_;
  std::unique_ptr<PluginServer> server_;
  std::vector<std::unique_ptr<EndingServer>> ending_;
  std::optional<FileIdentity> registered_with_;  // The kubelet's socket.
  kube::TimePoint registered_at_;
  std::atomic<bool> is_registered_ = false;
  std::atomic<int> registrations_ = 0;
  kube::TimePoint tried_at_ = kube::TimePoint::min(), next_try_ = kube::TimePoint::min();
  std::optional<FileIdentity> left_;  // The kubelet's socket with which a server was registered that has ended,
  kube::TimePoint left_at_;           // and when it has.
  bool has_looked_ = false;
  kube::Backoff retry_;
  kube::FailureNews news_;
};

}  // namespace grus
