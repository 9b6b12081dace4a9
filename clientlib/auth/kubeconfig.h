// SPDX-License-Identifier: Apache-2.0
// Reads kubeconfig files as kubectl does. Thread-safe; blocks while it reads the files.
#pragma once

#include <functional>
#include <string>

#include "clientlib/auth/client_config.h"

namespace kube {

struct KubeconfigOptions {
  std::string path{};     // Empty: $KUBECONFIG (a list, merged: the first file that names an entry wins), else
                          // ~/.kube/config.
  std::string context{};  // Empty: current-context.
};

// Errors say which file, which entry and what to do: a missing or unreadable file, no current context, an entry that is
// named but does not exist, a CA that is not a certificate.
Result<ClientConfig> LoadKubeconfig(const KubeconfigOptions& options);

// The same with `read_file` in place of the file system, for the configuration and for what it names.
using FileReader = std::function<Result<std::string>(const std::string& path)>;
Result<ClientConfig> LoadKubeconfig(const KubeconfigOptions& options, const FileReader& read_file);

}  // namespace kube
