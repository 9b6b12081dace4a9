// SPDX-License-Identifier: Apache-2.0
// An HTTP/2 server over TLS, for tests of what HTTP/1.1 does not have: streams, their refusal, and GOAWAY.
//
// Each connection has a thread, which calls the handler once a request has come completely. Destroying the server
// breaks all connections.
#pragma once

#include <openssl/types.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "tests/kit/certificates.h"
#include "tests/kit/test_server.h"

namespace kube::testing {

// What a server does with a request.
enum class Fate {
  kAnswer,        // 200, and the target as body.
  kStream,        // 200, and then what Stream() sends.
  kNoAnswer,      // The connection lives on.
  kRefuse,        // RST_STREAM with REFUSED_STREAM: it was not processed.
  kGoAwayBefore,  // GOAWAY whose last stream is the one before: it was not processed.
  kGoAwayAfter,  // GOAWAY that names it as the last stream, then the end of the connection: it may have been processed.
  kAnswerAndGoAway,  // kAnswer, and the connection takes no more.
  kReset,            // RST_STREAM with INTERNAL_ERROR,
  kResetAndClose,    // and the connection ends in order.
  kClose,            // The connection ends in order,
  kBreak,            // or with a TCP reset.
};

class Http2Server {
 public:
  // `connection` counts from 1.
  using Handler = std::function<Fate(const TestRequest& request, int connection)>;

  Http2Server(const CertifiedKey& key, Handler handler);
  ~Http2Server();

  int port() const { return port_; }
  std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }
  int connections() const { return connections_; }
  // To every request with the fate kStream.
  void Stream(std::string_view bytes);

 private:
  class Connection;
  void Accept();

  const Handler handler_;
  const std::shared_ptr<SSL_CTX> tls_;
  int port_ = 0;
  const int listener_;
  std::atomic<int> connections_{0};
  std::mutex mutex_;  // Guards open_.
  std::list<std::unique_ptr<Connection>> open_;
  std::thread acceptor_;
};

}  // namespace kube::testing
