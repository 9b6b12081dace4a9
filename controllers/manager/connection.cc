// SPDX-License-Identifier: Apache-2.0
#include "controllers/manager/connection.h"

#include "clientlib/auth/in_cluster.h"
#include "clientlib/auth/kubeconfig.h"
#include "clientlib/base/backoff.h"
#include "clientlib/base/wait.h"
#include "clientlib/client/resource_path.h"
#include "crds/types/all_crds.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Result;
using kube::Status;

constexpr kube::BackoffPolicy kBackoff{std::chrono::seconds(1), std::chrono::seconds(30), 2.0, 0.2};

Result<kube::ClientConfig> ReadConfig(const Options& options) {
  if (options.kubeconfig.empty() && options.context.empty() && kube::IsInCluster()) return kube::LoadInCluster();
  return kube::LoadKubeconfig({options.kubeconfig, options.context});
}

std::vector<std::pair<std::string, std::string>> ImpersonationHeaders(const kube::ClientConfig& config) {
  std::vector<std::pair<std::string, std::string>> headers;
  if (!config.impersonate_user.empty()) headers.emplace_back("Impersonate-User", config.impersonate_user);
  if (!config.impersonate_uid.empty()) headers.emplace_back("Impersonate-Uid", config.impersonate_uid);
  for (const std::string& group : config.impersonate_groups) headers.emplace_back("Impersonate-Group", group);
  return headers;
}

// Our kinds, one request for each group and version.
Status CheckKinds(kube::Client& client, const std::string& ns, std::stop_token stop) {
  for (const kube::CrdInfo& crd : api::AllCrds()) {
    const std::string path = kube::CollectionPath(*crd.kind, ns);
    Result<std::string> answer = client.GetRaw(path + "?limit=1", stop);
    if (answer) continue;
    const std::string name = std::string(crd.kind->plural) + "." + std::string(crd.kind->group);
    if (answer.error().code() == ErrorCode::kNotFound) {
      return Error(ErrorCode::kNotFound, "the CustomResourceDefinition " + name +
                                             " is not installed: kubectl apply -f crds/generated");
    }
    return std::move(answer).error().with("list " + name);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Connection>> MakeConnection(const Options& options, const kube::Clock& clock,
                                                   kube::RequestObserver* observer) {
  auto connection = std::make_unique<Connection>();
  Result<kube::ClientConfig> config = ReadConfig(options);
  if (!config) return std::move(config).error();
  connection->config = *std::move(config);

  kube::TransportOptions transport;
  transport.server = connection->config.server;
  transport.ca_pem = connection->config.ca_pem;
  transport.cert_pem = connection->config.cert_pem;
  transport.key_pem = connection->config.key_pem;
  transport.tls_server_name = connection->config.tls_server_name;
  transport.proxy_url = connection->config.proxy_url;
  transport.insecure_skip_verify = connection->config.insecure_skip_verify;
  Result<std::unique_ptr<kube::CurlTransport>> made = kube::CurlTransport::Create(std::move(transport), clock);
  if (!made) return std::move(made).error().with(connection->config.source);
  connection->transport = *std::move(made);
  connection->tokens = kube::MakeTokenSource(connection->config, clock);

  kube::ClientOptions client;
  client.user_agent = std::string("grus-manager/") + kVersion;
  client.headers = ImpersonationHeaders(connection->config);
  connection->client = std::make_unique<kube::Client>(*connection->transport, connection->tokens.get(), clock, client,
                                                      observer);
  client.pool = kube::HttpPool::kLease;
  client.timeout = std::chrono::seconds(5);  // Half the renew deadline: one hung request must not lose the lease.
  connection->lease_client = std::make_unique<kube::Client>(*connection->transport, connection->tokens.get(), clock,
                                                            client, observer);
  return connection;
}

Status WaitForServer(Connection& connection, const std::string& ns, const kube::Clock& clock, const kube::Log& log,
                     std::stop_token stop) {
  kube::Backoff backoff(kBackoff);
  for (;;) {
    Status ready = CheckKinds(*connection.client, ns, stop);
    if (ready || stop.stop_requested()) return {};
    const Error& error = ready.error();
    if (error.is_terminal() || error.code() == ErrorCode::kUnauthorized) {
      return std::move(ready).error().with(connection.config.source);
    }
    const kube::Duration wait = backoff.Next();
    log.Warn("waiting for the API server",
             {{"error", error.message()},
              {"retry_in_seconds", std::chrono::duration_cast<std::chrono::seconds>(wait).count()}});
    if (!kube::WaitFor(clock, wait, stop)) return {};
  }
}

}  // namespace grus
