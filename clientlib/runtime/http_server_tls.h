// SPDX-License-Identifier: Apache-2.0
// The TLS side of the server: its certificate, and whose certificates it accepts, both read anew while it runs.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "clientlib/runtime/http_server.h"
#include "clientlib/runtime/http_server_asio.h"

namespace kube {

// Of the server's thread.
class HttpServerTls {
 public:
  // `clients.ca` may be null.
  HttpServerTls(HttpServer::CertificateSource certificates, HttpClientTrust clients);

  // Asks the sources if the last time is a minute ago. What cannot be had or used leaves that in use which was before;
  // the error says why. After an error at the first time there is no context.
  Status Refresh(std::chrono::steady_clock::time_point now);

  // A connection keeps it until its end.
  const std::shared_ptr<boost::asio::ssl::context>& context() const { return context_; }

 private:
  struct Material {
    CertificatePair own{};
    std::string client_ca{};
  };
  Result<std::shared_ptr<boost::asio::ssl::context>> ContextOf(const Material& material) const;
  Status Adopt(Material material);

  const HttpServer::CertificateSource certificates_;
  const HttpClientTrust clients_;
  Material in_use_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::chrono::steady_clock::time_point read_at_;
};

}  // namespace kube
