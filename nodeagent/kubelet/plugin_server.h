// SPDX-License-Identifier: Apache-2.0
// Serves one DevicePlugin to the kubelet on a unix socket, from Start() until it is destroyed.
//
// Whoever watches the devices gets the whole list at once, and again after each change. A watch holds a thread; it
// finds out within half a second that the kubelet has gone. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "clientlib/base/result.h"
#include "nodeagent/kubelet/device_changes.h"
#include "nodeagent/kubelet/device_plugin.h"

namespace grus {

class PluginServer {
 public:
  // A socket at `path` that nobody listens at is replaced. `plugin` and `changes` must outlive the server;
  // `watch_ended` is called on a thread of the server when the kubelet stops to watch, and must not block.
  // kAlreadyExists: another process listens there.
  static kube::Result<std::unique_ptr<PluginServer>> Start(DevicePlugin& plugin, const std::string& path,
                                                           DeviceChanges& changes, std::function<void()> watch_ended);
  virtual ~PluginServer() = default;  // Withdraws it, and waits for calls that run.

  virtual void Withdraw() = 0;            // Removes the socket if it is in its place, and ends the watches.
  virtual bool IsInPlace() const = 0;     // Its socket is still the one at its path.
  virtual int open_watches() const = 0;   // How many watch the devices now,
  virtual int total_watches() const = 0;  // and ever did.
};

}  // namespace grus
