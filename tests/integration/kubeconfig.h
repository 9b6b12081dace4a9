// SPDX-License-Identifier: Apache-2.0
// Kubeconfigs that lead to the test cluster another way, or to another server.
#pragma once

#include <string>

#include "clientlib/auth/client_config.h"

namespace grus::testing {

// With the credentials of `config`, which has a client certificate.
std::string KubeconfigText(const kube::ClientConfig& config, const std::string& server, const std::string& ca_pem);

// https://127.0.0.1:PORT
std::string ServerAt(int port);
int ServerPort(const kube::ClientConfig& config);

}  // namespace grus::testing
