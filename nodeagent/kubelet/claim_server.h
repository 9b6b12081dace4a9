// SPDX-License-Identifier: Apache-2.0
// Serves one ClaimDriver to the kubelet: on a socket in the folder where the kubelet looks for plugins, until it is
// destroyed. The kubelet finds the socket, also after it has started anew, asks there whose it is, and says whether it
// takes it. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "clientlib/base/result.h"
#include "nodeagent/kubelet/claim_driver.h"

namespace grus {

inline constexpr char kPluginRegistryFolder[] = "/var/lib/kubelet/plugins_registry";

class ClaimServer {
 public:
  // Called on a thread of the server, whenever the kubelet says whether it takes the driver. Must not block.
  using OnStatus = std::function<void(const kube::Status& status)>;

  // A socket at `path` that nobody listens at is replaced. `driver` must outlive the server. kAlreadyExists: another
  // process listens there.
  static kube::Result<std::unique_ptr<ClaimServer>> Start(ClaimDriver& driver, const std::string& path,
                                                          OnStatus on_status);
  virtual ~ClaimServer() = default;  // Removes the socket, and waits for calls that run.

  virtual bool IsInPlace() const = 0;  // Its socket is still the one at its path.
};

}  // namespace grus
