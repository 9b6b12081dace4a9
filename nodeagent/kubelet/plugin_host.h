// SPDX-License-Identifier: Apache-2.0
// Keeps device plugins known to this node's kubelet: serves each on a socket of its own, `grus-RESOURCE.sock`, and
// registers it, again whenever the kubelet restarts or a socket is lost.
//
// It watches the kubelet's folder (inotify), and looks every five seconds besides. A kubelet that comes has the plugins
// within a second. What fails is tried again, later each time, up to five seconds, and told in the log once a minute.
// Thread-safe, but for Run(). Time comes from `clock`; the deadlines of calls are real time.
#pragma once

#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/base/backoff.h"
#include "clientlib/base/clock.h"
#include "clientlib/base/failure_news.h"
#include "clientlib/base/log.h"
#include "nodeagent/kubelet/device_plugin.h"

namespace grus {

class FolderWatch;
class KeptPlugin;

inline constexpr char kDevicePluginFolder[] = "/var/lib/kubelet/device-plugins";

class PluginHost {
 public:
  // None of `plugins` is null; all must outlive it. `folder`: where the kubelet listens as kubelet.sock.
  PluginHost(const std::vector<DevicePlugin*>& plugins, std::string folder, const kube::Clock& clock,
             const kube::Log& log);
  ~PluginHost();

  void Run(const std::stop_token& stop);  // Blocks until `stop`. The sockets are gone when it returns.
  void NotifyChanged();                   // The devices of plugins have changed: the kubelet gets all lists again.
  int registered() const;                 // How many plugins the kubelet knows now.
  int registrations() const;              // How often it was told of one, so far.

 private:
  void Wake(bool has_news);
  bool Wait(kube::TimePoint until, const std::stop_token& stop);  // Whether there is news.
  kube::TimePoint LookOnce(FolderWatch& watch, bool has_news, const std::stop_token& stop);
  bool IsThere(FolderWatch& watch);  // The folder.

  const std::string folder_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  std::vector<std::unique_ptr<KeptPlugin>> plugins_;
  kube::Backoff retry_;  // For the folder.
  kube::FailureNews news_;
  bool is_watched_ = false;

  std::mutex mutex_;  // Guards what follows.
  kube::CondVar wake_;
  bool is_woken_ = false, has_news_ = false;
};

}  // namespace grus
