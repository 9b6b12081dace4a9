// SPDX-License-Identifier: Apache-2.0
// Where the API server is and how to authenticate, from a kubeconfig or a pod's service account.
//
// A value without behaviour. LoadKubeconfig() and LoadInCluster() return one; client/connection.h makes a transport and
// a TokenSource from it. It contains secrets: log only what Describe() returns.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clientlib/base/result.h"

namespace kube {

// A plugin program that gives credentials, as a kubeconfig describes it.
struct ExecCredentialConfig {
  std::string api_version;
  std::string command;  // Relative to the kubeconfig's folder when it contains a slash and is not absolute.
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  bool provide_cluster_info = false;
  std::string interactive_mode = "IfAvailable";
  std::string install_hint;
};

struct ClientConfig {
  std::string server;
  std::string ca_pem;
  std::string ca_file;  // Where ca_pem was read from; empty if inline.
  std::string tls_server_name;
  std::string proxy_url;
  bool insecure_skip_verify = false;

  std::string cert_pem, key_pem;
  std::string cert_file, key_file;  // Where they were read from; empty if inline.
  std::string token;                // A fixed bearer token.
  std::string token_file;           // Re-read at least every minute; wins over `token`.
  std::string username, password;
  std::optional<ExecCredentialConfig> exec;

  std::string impersonate_user, impersonate_uid;
  std::vector<std::string> impersonate_groups;

  std::string default_namespace = "default";
  std::string source;  // For messages: `kubeconfig "/path", context "dev"` or `in-cluster service account`.
};

// One line for logs: server, identity kind and source; no secret.
std::string Describe(const ClientConfig& config);

}  // namespace kube
