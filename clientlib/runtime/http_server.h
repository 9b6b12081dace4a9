// SPDX-License-Identifier: Apache-2.0
// A small HTTP/1.1 server for /healthz, /readyz and /metrics, with TLS on request: GET and HEAD only, one thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "clientlib/auth/certificate_pair.h"
#include "clientlib/base/result.h"

namespace kube {

struct ServedRequest {
  std::string query{};          // What follows '?', still escaped.
  std::string authorization{};  // The header of that name.
};

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body{};
};

struct HttpServerLimits {
  // One more closes the connection that has waited longest for its request: whoever opens connections and says nothing
  // must not keep a probe from being answered.
  std::size_t connections = 256;
  std::size_t header_bytes = 8192;  // Of a request; more is answered with 431.
  // For a TLS handshake, for a whole request, however its bytes are spread, and for the silence between two requests.
  Duration time = std::chrono::seconds(5);
  Duration write_time = std::chrono::seconds(10);  // For an answer.
};

class HttpServer {
 public:
  using Handler = std::function<HttpReply(const ServedRequest&)>;
  // Called at the start, and for connections that come a minute or more after the last call, on the server's thread.
  using CertificateSource = std::function<Result<CertificatePair>()>;

  // `address` is "host:port", ":port" (all addresses) or "[v6]:port"; port 0 picks a free one. Listening
  // starts here; an address that cannot be bound is an error that names it. Handlers, found by path, run on
  // the server's thread, one at a time. With `certificates` it talks TLS 1.2 or newer; a certificate that cannot be
  // had or used is an error at the start, and later the one before stays in use.
  static Result<std::unique_ptr<HttpServer>> Start(const std::string& address, std::map<std::string, Handler> handlers,
                                                   HttpServerLimits limits = {}, CertificateSource certificates = {});
  ~HttpServer();  // Closes all connections and joins.

  int port() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kube
