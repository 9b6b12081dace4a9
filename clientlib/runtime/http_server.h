// SPDX-License-Identifier: Apache-2.0
// A small HTTP/1.1 server for /healthz, /readyz and /metrics: GET and HEAD only, one thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "clientlib/base/result.h"

namespace kube {

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body{};
};

struct HttpServerLimits {
  int connections = 64;             // One more is closed at once.
  std::size_t header_bytes = 8192;  // Of a request; more is answered with 431.
  // To read a request, and again to write its answer. An idle connection is closed after the same time.
  Duration time = std::chrono::seconds(10);
};

class HttpServer {
 public:
  using Handler = std::function<HttpReply(const std::string& query)>;  // What follows '?', still escaped.

  // `address` is "host:port", ":port" (all addresses) or "[v6]:port"; port 0 picks a free one. Listening
  // starts here; an address that cannot be bound is an error that names it. Handlers, found by path, run on
  // the server's thread, one at a time.
  static Result<std::unique_ptr<HttpServer>> Start(const std::string& address, std::map<std::string, Handler> handlers,
                                                   HttpServerLimits limits = {});
  ~HttpServer();  // Closes all connections and joins.

  int port() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kube
