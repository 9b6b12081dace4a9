// SPDX-License-Identifier: Apache-2.0
// Transport over libcurl: HTTP/2 where the server speaks it, TLS by OpenSSL.
//
// Each pool is a curl multi handle with an I/O thread of its own, which moves bytes and never parses them. When
// credentials on disk are replaced, or a request has timed out, running exchanges end on the old pools and connections,
// and later ones get new ones.
#pragma once

#include <memory>
#include <string>

#include "clientlib/http/transport.h"

namespace kube {

struct TransportOptions {
  std::string server{};    // "https://host:port" or with a path prefix; no trailing slash.
  std::string ca_pem{};    // Empty: the system's roots.
  std::string cert_pem{};  // Client certificate and key, both or neither.
  std::string key_pem{};
  std::string tls_server_name{};  // Name to verify instead of the host's; empty: the host's.
  std::string proxy_url{};        // http, https or socks5; empty: none, whatever the environment says.
  std::string no_proxy{};
  bool insecure_skip_verify = false;  // Never together with ca_pem.

  int watch_connections = 4;  // At most this many TCP connections per pool, beside those that only end.
  int request_connections = 2;
  int lease_connections = 1;
  Duration connect_timeout = std::chrono::seconds(10);
  std::size_t body_limit = 512UL << 20;          // Send(): a larger body is kTooLarge.
  std::size_t stream_buffer_limit = 64UL << 20;  // Open(): unread bytes held for a slow reader.
};

class CurlTransport final : public Transport {
 public:
  // Fails with kInvalidArgument on options that contradict each other or PEM text that does not parse.
  static Result<std::unique_ptr<CurlTransport>> Create(TransportOptions options, const Clock& clock);
  ~CurlTransport() override;  // Ends all exchanges with kCancelled and joins the I/O threads.

  Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop) override;
  Result<StreamResponse> Open(const HttpRequest& request, std::stop_token stop) override;
  Status Reload(TransportOptions options);

  // TCP connections opened since the start, all pools: for tests, benches and metrics.
  std::int64_t connections_opened() const;

 private:
  struct Impl;
  explicit CurlTransport(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kube
