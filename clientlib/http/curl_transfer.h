// SPDX-License-Identifier: Apache-2.0
// A curl easy handle: set up once for a server, then used for one exchange after another.
//
// Not thread-safe: lives on its pool's I/O thread.
#pragma once

#include <curl/curl.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "clientlib/http/curl_transport.h"
#include "clientlib/http/exchange.h"

namespace kube {

// What the transfers of a pool share; outlives them.
struct CurlShared {
  std::shared_ptr<const TransportOptions> options;
  CURLSH* tls_sessions = nullptr;
  std::atomic<std::int64_t>& connections_opened;
  int http_major = 0;          // Of the newest answer: 1 or 2; 0 before the first.
  std::uint64_t tls_ends = 0;  // Connections that the other side has ended in order.
};

class CurlTransfer {
 public:
  explicit CurlTransfer(CurlShared& shared);
  ~CurlTransfer();
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  // Takes on an exchange. `may_share_connection`: wait for a connection being opened and share it.
  // REQUIRES: the handle is not in a multi handle.
  void Prepare(std::shared_ptr<Exchange> exchange, bool may_share_connection);
  void SetMayShareConnection(bool may_share_connection);
  // Reports the end of the exchange and lets go of it.
  void End(CURLcode code);
  // Lets go of the exchange and, if `error`, reports it.
  void Drop(std::optional<Error> error);

  CURL* easy() const { return easy_; }
  const Exchange* exchange() const { return exchange_.get(); }
  bool was_sent() const { return was_sent_; }
  static CurlTransfer& From(CURL* easy);

 private:
  template <typename T>
  void Set(CURLoption option, T value);
  void SetUpConnection();
  void SetUpTls();
  void SetMethodAndBody();
  void SetHeaders();
  Error ErrorFor(CURLcode code) const;
  bool WasRefused() const;

  static std::size_t OnHeader(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* self);
  static int BeforeRequest(void* self, char*, char*, int, int);
  static int OnSocket(void*, curl_socket_t socket, curlsocktype);

  CurlShared& shared_;
  CURL* easy_;
  curl_slist* headers_ = nullptr;
  curl_slist* connect_to_ = nullptr;
  std::string base_url_;     // What a target is appended to.
  std::string host_header_;  // Set if the URL names another host than the server.
  std::shared_ptr<Exchange> exchange_;
  bool was_sent_ = false;
  bool is_http2_ = false;  // The connection that it was sent on.
  std::uint64_t tls_ends_before_ = 0;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
};

}  // namespace kube
