// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/pod_log.h"

namespace kube {

// Match the kubelet's message: it has no reason or code of its own (validateContainerLogStatus in
// pkg/kubelet/kubelet_pods.go). "is not available": the kubelet has not looked at the container yet.
bool IsWaitingToStart(const Error& error) {
  if (error.http_status() == 204) return true;
  if (error.http_status() != 400) return false;
  const std::string& message = error.message();
  return message.find(" is waiting to start") != std::string::npos ||
         (message.find("container \"") != std::string::npos && message.find(" is not available") != std::string::npos);
}

}  // namespace kube
