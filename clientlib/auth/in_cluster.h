// SPDX-License-Identifier: Apache-2.0
// The configuration of a process that runs in a pod: from KUBERNETES_SERVICE_HOST and _PORT, and from the mounted
// service account. Thread-safe; blocks while it reads the files.
#pragma once

#include <string>

#include "clientlib/auth/client_config.h"

namespace kube {

// True if the environment says that this process runs in a pod.
bool IsInCluster();

// `root` is the folder of the mounted service account; tests pass their own. Without ca.crt or token in it, an error.
Result<ClientConfig> LoadInCluster(const std::string& root = "/var/run/secrets/kubernetes.io/serviceaccount");

}  // namespace kube
