// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server for tests; the test controls its answers down to single bytes.
//
// Each connection has a thread that reads requests and calls the handler; the handler answers through its
// TestConnection and may block on an Event. Destroying the server breaks all connections.
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
#include <utility>
#include <vector>

namespace kube::testing {

struct TestRequest {
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;  // Names in lower case.
  std::string body;

  std::string Header(std::string_view lower_case_name) const;
};

// What a handler answers through. All bytes are sent at once. Used by the connection's own thread only.
class TestConnection {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;
  virtual ~TestConnection() = default;

  virtual void Raw(std::string_view bytes) = 0;
  virtual void Close() = 0;         // At once, without a TLS close.
  virtual void AwaitClosing() = 0;  // Until the client has closed the connection.
  virtual void Tunnel(
      int port) = 0;  // Answers a CONNECT to that port of 127.0.0.1, and carries bytes until one closes.

  void Respond(int status, std::string_view body = {}, const Headers& headers = {});
  void StartChunks(int status = 200, const Headers& headers = {});
  void Chunk(std::string_view bytes);
  void EndChunks() { Raw("0\r\n\r\n"); }
};

class TestServer {
 public:
  using Handler = std::function<void(const TestRequest&, TestConnection&)>;
  struct Options {
    std::string cert_pem{}, key_pem{};  // Empty: plain HTTP.
    std::string client_ca_pem{};        // Set: a client certificate of this CA is demanded.
    int newest_tls = 0;                 // For example TLS1_1_VERSION, which then works; 0: what OpenSSL has.
  };

  TestServer(const Options& options, Handler handler);
  ~TestServer();

  int port() const { return port_; }
  std::string url() const;  // "https://127.0.0.1:port".
  int connections() const { return connections_; }
  int resumed_sessions() const { return resumed_sessions_; }  // TLS handshakes that used an earlier session.

 private:
  class Connection;
  void Accept();

  Handler handler_;
  std::shared_ptr<SSL_CTX> tls_;
  int port_ = 0;
  int listener_ = -1;
  std::atomic<int> connections_{0};
  std::atomic<int> resumed_sessions_{0};
  std::atomic<bool> is_stopping_{false};
  std::mutex mutex_;  // Guards open_.
  std::list<std::unique_ptr<Connection>> open_;
  std::thread acceptor_;
};

// A port of 127.0.0.1 on which nobody listens. This reserves it while it lives, so that nobody else can.
class ClosedPort {
 public:
  ClosedPort();
  ~ClosedPort();
  ClosedPort(const ClosedPort&) = delete;
  ClosedPort& operator=(const ClosedPort&) = delete;

  int port() const { return port_; }

 private:
  int port_ = 0;
  const int socket_;
};

}  // namespace kube::testing
