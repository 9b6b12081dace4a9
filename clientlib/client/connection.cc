// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/connection.h"

#include <utility>
#include <vector>

#include "clientlib/auth/in_cluster.h"
#include "clientlib/auth/kubeconfig.h"
#include "clientlib/client/certificate_renewal.h"

namespace kube {
namespace {

constexpr Duration kReviewTimeout = std::chrono::seconds(5);
// Of the usual renew deadline (10 s), the last renewal takes 2 s, and one that hangs this. What is left is enough for
// three tries of the kernel to open a new connection; and a slow server has time to answer.
constexpr Duration kLeaseTimeout = std::chrono::seconds(4);

Result<ClientConfig> ReadConfig(const ConnectOptions& options) {
  if (options.kubeconfig.empty() && options.context.empty() && IsInCluster()) return LoadInCluster();
  return LoadKubeconfig({options.kubeconfig, options.context});
}

std::vector<std::pair<std::string, std::string>> ImpersonationHeaders(const ClientConfig& config) {
  std::vector<std::pair<std::string, std::string>> headers;
  if (!config.impersonate_user.empty()) headers.emplace_back("Impersonate-User", config.impersonate_user);
  if (!config.impersonate_uid.empty()) headers.emplace_back("Impersonate-Uid", config.impersonate_uid);
  for (const std::string& group : config.impersonate_groups) headers.emplace_back("Impersonate-Group", group);
  return headers;
}

}  // namespace

Result<std::unique_ptr<Connection>> Connect(const ConnectOptions& options, const Clock& clock) {
  auto connection = std::make_unique<Connection>();
  Result<ClientConfig> config = ReadConfig(options);
  if (!config) return std::move(config).error();
  connection->config = *std::move(config);

  TransportOptions transport;
  transport.server = connection->config.server;
  transport.ca_pem = connection->config.ca_pem;
  transport.cert_pem = connection->config.cert_pem;
  transport.key_pem = connection->config.key_pem;
  transport.tls_server_name = connection->config.tls_server_name;
  transport.proxy_url = connection->config.proxy_url;
  transport.insecure_skip_verify = connection->config.insecure_skip_verify;
  transport.body_limit = options.body_limit.value_or(transport.body_limit);
  Result<std::unique_ptr<CurlTransport>> made = CurlTransport::Create(transport, clock);
  if (!made) return std::move(made).error().with(connection->config.source);
  connection->transport = *std::move(made);
  connection->tokens =
      std::make_unique<CertificateRenewal>(MakeTokenSource(connection->config, clock), connection->config,
                                           std::move(transport), *connection->transport, clock, options.log);

  ClientOptions client;
  client.user_agent = options.user_agent;
  client.headers = ImpersonationHeaders(connection->config);
  const auto make = [&] {
    return std::make_unique<Client>(*connection->transport, connection->tokens.get(), clock, client, options.observer);
  };
  client.timeout = options.timeout.value_or(client.timeout);
  connection->client = make();
  client.timeout = kReviewTimeout;
  connection->review_client = make();
  client.timeout = kLeaseTimeout;
  client.pool = HttpPool::kLease;
  connection->lease_client = make();
  return connection;
}

}  // namespace kube
