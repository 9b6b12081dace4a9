// SPDX-License-Identifier: Apache-2.0
// A small HTTP/1.1 server for probes, metrics and webhooks: GET, HEAD and POST, with TLS and clients' certificates on
// request. One thread moves bytes; handlers run on it, or on threads of their own.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "clientlib/auth/certificate_pair.h"
#include "clientlib/base/result.h"
#include "clientlib/runtime/http_handler.h"

namespace kube {

struct HttpServerLimits {
  // One more closes the connection that has waited longest for its request: whoever opens connections and says nothing
  // must not keep a probe from being answered. If all are being answered by other threads, the new one is closed.
  std::size_t connections = 256;
  std::size_t header_bytes = 8192;  // Of a request; more is answered with 431.
  // For a TLS handshake, and for the header of a request, however its bytes are spread.
  Duration time = std::chrono::seconds(5);
  // For the silence between two requests; 0: it belongs to the header's time. Clients that keep connections, and do not
  // send a POST again if it meets our end of one, should be the ones to close: Go's do so after 90 s.
  Duration idle_time{};
  Duration write_time = std::chrono::seconds(10);  // For an answer.

  std::size_t body_bytes = 0;  // Of a POST; more is answered with 413, without reading it.
  // Of all POSTs together until their answers are sent; more is answered with 503.
  std::size_t bodies_bytes = 64UL << 20;
  Duration body_time = std::chrono::seconds(10);  // For a body, however its bytes are spread, from the header's end.

  // That run handlers. 1: the thread that moves bytes runs them, one at a time. More: threads beside that one, and
  // handlers are called by several at once.
  int threads = 1;
};

// Whose certificates are accepted.
struct HttpClientTrust {
  // Certificates in PEM: one of these must have signed the client's. Null: clients need no certificate.
  std::function<Result<std::string>()> ca{};
  std::vector<std::string> names{};  // Common names or DNS names, one of which the client's has. Empty: any.
};

class HttpServer {
 public:
  using Handler = HttpHandler;
  // Called at the start, and for connections that come a minute or more after the last call, on the server's thread.
  // So is HttpClientTrust::ca.
  using CertificateSource = std::function<Result<CertificatePair>()>;

  // `address` is "host:port", ":port" (all addresses) or "[v6]:port"; port 0 picks a free one. Listening starts here;
  // an address that cannot be bound is an error that names it. Handlers are found by path, as HttpRoutes says. With
  // `certificates` it talks TLS 1.2 or newer; with `clients.ca`, the handshake fails for clients without a valid
  // certificate. Certificates that cannot be had or used are an error at the start, and later the ones before stay in
  // use.
  static Result<std::unique_ptr<HttpServer>> Start(const std::string& address, std::map<std::string, Handler> handlers,
                                                   HttpServerLimits limits = {}, CertificateSource certificates = {},
                                                   HttpClientTrust clients = {});
  ~HttpServer();  // Closes all connections, waits for the handlers that run, and joins.

  int port() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kube
