// SPDX-License-Identifier: Apache-2.0
// Reads kubeconfig files as kubectl does.
#pragma once

#include <string>

#include "clientlib/auth/client_config.h"

namespace kube {

struct KubeconfigOptions {
  std::string path{};  // Empty: $KUBECONFIG (a list, merged: the first file that names an entry wins), else
                       // ~/.kube/config.
  std::string context{};  // Empty: current-context.
};

// Errors say which file, which entry and what to do: a missing or unreadable file, no current context, an
// entry that is named but not there, a CA that is no certificate. Blocking file I/O.
Result<ClientConfig> LoadKubeconfig(const KubeconfigOptions& options);

}  // namespace kube
