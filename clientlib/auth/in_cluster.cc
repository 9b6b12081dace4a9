// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/in_cluster.h"

#include <cstdlib>
#include <string_view>

#include "clientlib/auth/files.h"
#include "clientlib/auth/tls_material.h"

namespace kube {
namespace {

constexpr std::string_view kSource = "in-cluster service account";

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

bool IsInCluster() {
  return !Environment("KUBERNETES_SERVICE_HOST").empty() && !Environment("KUBERNETES_SERVICE_PORT").empty();
}

Result<ClientConfig> LoadInCluster(const std::string& root) {
  if (!IsInCluster()) {
    return Error(ErrorCode::kInvalidArgument,
                 "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this process does not run in a pod; "
                 "use a kubeconfig")
        .with(kSource);
  }
  ClientConfig config;
  const std::string host = Environment("KUBERNETES_SERVICE_HOST");
  const bool is_ipv6 = host.find(':') != std::string::npos;
  config.server = "https://" + (is_ipv6 ? "[" + host + "]" : host) + ":" + Environment("KUBERNETES_SERVICE_PORT");
  config.source = kSource;

  // Require it: without, the system's CAs would be trusted, and none of them signs the certificates of a cluster.
  config.ca_file = root + "/ca.crt";
  Result<std::string> ca = ReadSmallFile(config.ca_file);
  if (!ca) return std::move(ca).error().with(kSource);
  if (Status status = CheckCaCertificate(*ca); !status) {
    return std::move(status).error().with(config.ca_file).with(kSource);
  }
  config.ca_pem = *std::move(ca);

  config.token_file = root + "/token";
  Result<std::string> token = ReadSmallFile(config.token_file);
  if (!token) {
    return std::move(token)
        .error()
        .with("no service account token is mounted; set automountServiceAccountToken")
        .with(kSource);
  }
  token = CleanToken(*token);
  if (!token) return std::move(token).error().with(config.token_file).with(kSource);
  config.token = *std::move(token);

  // Some projected volumes lack this file: then use the default, as for a kubeconfig.
  if (Result<std::string> name = ReadSmallFile(root + "/namespace"); name) {
    if (Result<std::string> clean = CleanToken(*name); clean) config.default_namespace = *std::move(clean);
  }
  return config;
}

}  // namespace kube
