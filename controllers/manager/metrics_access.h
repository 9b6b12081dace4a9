// SPDX-License-Identifier: Apache-2.0
// Who may read /metrics, and the certificate it is served with: --metrics-secure.
#pragma once

#include <optional>
#include <string>

#include "clientlib/client/connection.h"
#include "clientlib/runtime/access_reviewer.h"
#include "clientlib/runtime/http_server.h"
#include "controllers/manager/options.h"

namespace grus {

class MetricsAccess {
 public:
  // All must outlive it.
  MetricsAccess(kube::Connection& connection, const Options& options, std::string host, const kube::Clock& clock,
                const kube::Log& log);

  // The answer to a request that may not be served. Without --metrics-secure, none. Blocks while the API server is
  // asked. Not thread-safe: for the metrics server's thread.
  std::optional<kube::HttpReply> Refusal(const kube::ServedRequest& request);
  // Null without --metrics-secure. Logs why files cannot be read. It must not outlive this.
  kube::HttpServer::CertificateSource Certificates();

 private:
  std::optional<kube::AccessReviewer> reviewer_;  // Null: plain HTTP for everybody.
  const std::string cert_file_, key_file_;        // Empty: one of its own, for `host_`.
  const std::string host_;
  const kube::Log& log_;
};

}  // namespace grus
