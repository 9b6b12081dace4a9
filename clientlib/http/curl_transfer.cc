// SPDX-License-Identifier: Apache-2.0
#include "clientlib/http/curl_transfer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <string_view>
#include <utility>

#include "clientlib/base/lower_case.h"
#include "clientlib/http/url.h"

namespace kube {
namespace {

// A peer that acknowledges nothing for this long is gone; without the limit, detecting a dead network takes minutes.
// Below the renew deadline of a lease (10 s). Also bounds the pause between two attempts of the kernel, and with it how
// long a connection needs to go on after the network is back.
constexpr unsigned kTcpUserTimeoutMs = 8'000;
constexpr long kKeepAliveIdleSeconds = 20;
constexpr long kKeepAliveIntervalSeconds = 5;
// Below the 90 s after which the API server closes an idle connection, so that no request meets the close.
constexpr long kIdleConnectionSeconds = 80;

bool IsHeader(std::string_view have, std::string_view lower_case_name) {
  return std::ranges::equal(have, lower_case_name, [](char a, char b) { return LowerCase(a) == b; });
}

curl_blob BlobOf(const std::string& text) {
  // Not copied: the options outlive every transfer.
  return curl_blob{const_cast<char*>(text.data()), text.size(), CURL_BLOB_NOCOPY};
}

// curl begins its messages with a capital letter; ours are lower case. "SSL ..." stays.
std::string PartOfSentence(std::string_view text) {
  const bool is_word = text.size() > 1 && text[1] >= 'a' && text[1] <= 'z';
  return is_word ? LowerFirst(text) : std::string(text);
}

bool SpeaksHttp2(CURL* easy) {
  curl_tlssessioninfo* tls = nullptr;
  const CURLcode code = curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &tls);
  if (code != CURLE_OK || tls == nullptr || tls->backend != CURLSSLBACKEND_OPENSSL || tls->internals == nullptr) {
    return false;
  }
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(static_cast<const SSL*>(tls->internals), &protocol, &size);
  return std::string_view(reinterpret_cast<const char*>(protocol), size) == "h2";
}

bool IsKnownCurl() {
  static const unsigned version = curl_version_info(CURLVERSION_NOW)->version_num;
  return version >= 0x075800 && version < 0x075900;
}

// Where a TLS context keeps the CurlShared of its pool.
int SharedIndex() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

void OnTlsEvent(const SSL* ssl, int where, int value) {
  const bool is_end = (where & SSL_CB_READ_ALERT) == SSL_CB_READ_ALERT && (value & 0xff) == SSL_AD_CLOSE_NOTIFY;
  if (is_end) ++static_cast<CurlShared*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), SharedIndex()))->tls_ends;
}

CURLcode OnTlsContext(CURL*, void* context, void* shared) {
  auto* tls = static_cast<SSL_CTX*>(context);
  SSL_CTX_set_ex_data(tls, SharedIndex(), shared);
  SSL_CTX_set_info_callback(tls, OnTlsEvent);
  return CURLE_OK;
}

std::string ExplainCertificate(std::string_view detail, bool has_own_ca) {
  const auto mentions = [&](std::string_view words) { return detail.find(words) != std::string_view::npos; };
  std::string_view what = has_own_ca ? "is not trusted by the configured CA" : "is not trusted by the system's CAs";
  if (mentions("subject name") || mentions("does not match")) what = "is for another name";
  if (mentions("expired") || mentions("not yet valid")) what = "is out of date";
  return std::string("the server's certificate ").append(what).append(" (").append(detail).append(")");
}

}  // namespace

template <typename T>
void CurlTransfer::Set(CURLoption option, T value) {
  const CURLcode code = curl_easy_setopt(easy_, option, value);
  // The options used here can fail only for lack of memory.
  if (code == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
  assert(code == CURLE_OK);
}

CurlTransfer::CurlTransfer(CurlShared& shared) : shared_(shared), easy_(curl_easy_init()) {
  if (easy_ == nullptr) throw std::bad_alloc();
  Set(CURLOPT_PRIVATE, static_cast<void*>(this));
  Set(CURLOPT_ERRORBUFFER, error_text_.data());
  Set(CURLOPT_HEADERFUNCTION, &CurlTransfer::OnHeader);
  Set(CURLOPT_HEADERDATA, static_cast<void*>(this));
  Set(CURLOPT_WRITEFUNCTION, &CurlTransfer::OnBody);
  Set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  Set(CURLOPT_PREREQFUNCTION, &CurlTransfer::BeforeRequest);
  Set(CURLOPT_PREREQDATA, static_cast<void*>(this));
  Set(CURLOPT_SHARE, shared_.tls_sessions);
  Set(CURLOPT_NOSIGNAL, 1L);
  Set(CURLOPT_FOLLOWLOCATION, 0L);
  Set(CURLOPT_PROTOCOLS_STR, "http,https");
  Set(CURLOPT_PATH_AS_IS, 1L);
  SetUpConnection();
  SetUpTls();
}

CurlTransfer::~CurlTransfer() {
  curl_easy_cleanup(easy_);
  curl_slist_free_all(headers_);
  curl_slist_free_all(connect_to_);
}

void CurlTransfer::SetUpConnection() {
  const TransportOptions& options = *shared_.options;
  Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  Set(CURLOPT_TCP_NODELAY, 1L);
  Set(CURLOPT_TCP_KEEPALIVE, 1L);
  Set(CURLOPT_TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  Set(CURLOPT_TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  Set(CURLOPT_MAXAGE_CONN, kIdleConnectionSeconds);
  Set(CURLOPT_SOCKOPTFUNCTION, &CurlTransfer::OnSocket);
  Set(CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(options.connect_timeout).count()));
  // The empty string keeps curl from reading http_proxy and the like by itself.
  // As client-go, the proxy and not this machine looks the server's name up: it may be known there alone.
  const bool is_socks = options.proxy_url.starts_with("socks5://");
  Set(CURLOPT_PROXY, (is_socks ? "socks5h" + options.proxy_url.substr(6) : options.proxy_url).c_str());
  Set(CURLOPT_NOPROXY, options.no_proxy.c_str());
  Set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);

  base_url_ = options.server;
  if (options.tls_server_name.empty()) return;
  // curl verifies the URL's host: put the name to verify there, and the real host into CONNECT_TO and the Host header.
  const ServerUrl server = *ParseServerUrl(options.server);  // Checked when the transport was made.
  base_url_ = server.scheme + "://" + options.tls_server_name + ":" + server.port + server.path;
  host_header_ = "Host: " + server.host + ":" + server.port;
  const std::string route = "::" + server.host + ":" + server.port;
  connect_to_ = curl_slist_append(nullptr, route.c_str());
  Set(CURLOPT_CONNECT_TO, connect_to_);
}

void CurlTransfer::SetUpTls() {
  const TransportOptions& options = *shared_.options;
  Set(CURLOPT_SSL_CTX_FUNCTION, &OnTlsContext);
  Set(CURLOPT_SSL_CTX_DATA, static_cast<void*>(&shared_));
  // An https proxy is verified as the server is; so does client-go.
  Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  Set(CURLOPT_PROXY_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (options.insecure_skip_verify) {
    Set(CURLOPT_SSL_VERIFYPEER, 0L);
    Set(CURLOPT_SSL_VERIFYHOST, 0L);
    Set(CURLOPT_PROXY_SSL_VERIFYPEER, 0L);
    Set(CURLOPT_PROXY_SSL_VERIFYHOST, 0L);
  }
  if (!options.ca_pem.empty()) {
    const curl_blob ca = BlobOf(options.ca_pem);
    Set(CURLOPT_CAINFO_BLOB, &ca);
    Set(CURLOPT_PROXY_CAINFO_BLOB, &ca);
    // Otherwise curl would also trust the system's folder of roots.
    Set(CURLOPT_CAPATH, static_cast<char*>(nullptr));
    Set(CURLOPT_PROXY_CAPATH, static_cast<char*>(nullptr));
  }
  if (!options.cert_pem.empty()) {
    const curl_blob cert = BlobOf(options.cert_pem);
    const curl_blob key = BlobOf(options.key_pem);
    Set(CURLOPT_SSLCERT_BLOB, &cert);
    Set(CURLOPT_SSLKEY_BLOB, &key);
  }
}

void CurlTransfer::Prepare(std::shared_ptr<Exchange> exchange, bool may_share_connection) {
  exchange_ = std::move(exchange);
  was_sent_ = false;
  is_http2_ = false;
  error_text_[0] = '\0';
  Set(CURLOPT_URL, (base_url_ + exchange_->request().target).c_str());
  SetMayShareConnection(may_share_connection);
  SetMethodAndBody();
  SetHeaders();
}

void CurlTransfer::SetMayShareConnection(bool may_share_connection) {
  Set(CURLOPT_PIPEWAIT, may_share_connection ? 1L : 0L);
}

void CurlTransfer::SetMethodAndBody() {
  const HttpRequest& request = exchange_->request();
  Set(CURLOPT_HTTPGET, 1L);  // Undoes what the previous exchange set.
  Set(CURLOPT_CUSTOMREQUEST, static_cast<char*>(nullptr));
  const bool is_post = request.method == "POST";
  if (is_post || request.method == "PUT" || request.method == "PATCH" || !request.body.empty()) {
    Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    Set(CURLOPT_POSTFIELDS, request.body.c_str());  // Not copied: the exchange owns it.
  } else if (request.method == "HEAD") {
    Set(CURLOPT_NOBODY, 1L);
    return;
  }
  if (!is_post && request.method != "GET") Set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (request.method == "GET" && !request.body.empty()) Set(CURLOPT_CUSTOMREQUEST, "GET");
}

void CurlTransfer::SetHeaders() {
  curl_slist_free_all(headers_);
  // No "100 Continue" round trip, and no form content type for a body without one.
  headers_ = curl_slist_append(nullptr, "Expect:");
  if (!host_header_.empty()) headers_ = curl_slist_append(headers_, host_header_.c_str());
  bool has_content_type = false;
  bool accepts_gzip = false;
  std::string line;
  for (const auto& [name, value] : exchange_->request().headers) {
    if (IsHeader(name, "accept-encoding")) {
      // curl decodes the answer only if it adds this header itself.
      accepts_gzip = value == "gzip";
      continue;
    }
    has_content_type = has_content_type || IsHeader(name, "content-type");
    line.assign(name).append(value.empty() ? ";" : ": ").append(value);
    headers_ = curl_slist_append(headers_, line.c_str());
  }
  if (!has_content_type) headers_ = curl_slist_append(headers_, "Content-Type:");
  Set(CURLOPT_HTTPHEADER, headers_);
  Set(CURLOPT_ACCEPT_ENCODING, accepts_gzip ? "gzip" : static_cast<const char*>(nullptr));
}

void CurlTransfer::End(CURLcode code) {
  if (code == CURLE_OK) {
    exchange_->OnEnd(std::nullopt);
  } else {
    exchange_->OnEnd(ErrorFor(code));
  }
  exchange_.reset();
}

void CurlTransfer::Drop(std::optional<Error> error) {
  if (error) exchange_->OnEnd(std::move(error));
  exchange_.reset();
}

CurlTransfer& CurlTransfer::From(CURL* easy) {
  void* self = nullptr;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, reinterpret_cast<char**>(&self));
  return *static_cast<CurlTransfer*>(self);
}

Error CurlTransfer::ErrorFor(CURLcode code) const {
  if (code == CURLE_OUT_OF_MEMORY) return Error(ErrorCode::kInternal, "out of memory");
  const TransportOptions& options = *shared_.options;
  const std::string_view detail = error_text_[0] != '\0' ? error_text_.data() : curl_easy_strerror(code);
  if (code == CURLE_PEER_FAILED_VERIFICATION) {
    const std::string why = ExplainCertificate(detail, !options.ca_pem.empty());
    // Terminal: retries do not make the certificate trusted.
    return Error(ErrorCode::kUnavailable, "connect to " + options.server + ": " + why).as_terminal();
  }
  if (!was_sent_) return Error(ErrorCode::kUnavailable, "connect to " + options.server + ": " + PartOfSentence(detail));
  // BeforeRequest() is the only callback that aborts: it refused to send a write a second time.
  const std::string why = code == CURLE_ABORTED_BY_CALLBACK ? "the server closed it" : PartOfSentence(detail);
  return Error(ErrorCode::kUnavailable,
               "connection to " + options.server + " broke before the answer was complete: " + why)
      .with_http(0, std::string(kConnectionLost));
}

std::size_t CurlTransfer::OnHeader(char* data, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  if (transfer.exchange_->OnHeaderLine({data, size * count})) {
    transfer.shared_.http_major = transfer.exchange_->http_major();
  }
  return size * count;
}

std::size_t CurlTransfer::OnBody(char* data, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  return transfer.exchange_->OnBody({data, size * count}) ? size * count : 0;
}

int CurlTransfer::BeforeRequest(void* self, char*, char*, int, int) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  long connects = 0;
  curl_easy_getinfo(transfer.easy_, CURLINFO_NUM_CONNECTS, &connects);
  transfer.shared_.connections_opened.fetch_add(connects, std::memory_order_relaxed);
  if (transfer.was_sent_) {
    // curl resends by itself when a reused connection turns out to be dead. The server may have carried out the
    // request, so only reads may be sent twice.
    const std::string& method = transfer.exchange_->request().method;
    if (method != "GET" && method != "HEAD" && !transfer.WasRefused()) return CURL_PREREQFUNC_ABORT;
  }
  transfer.was_sent_ = true;
  transfer.is_http2_ = SpeaksHttp2(transfer.easy_);
  transfer.tls_ends_before_ = transfer.shared_.tls_ends;
  return CURL_PREREQFUNC_OK;
}

// HTTP/2 only: the server has said that it did not process the request, by REFUSED_STREAM or by a GOAWAY that names an
// earlier stream as its last (RFC 9113, 8.7). curl has no code for it. But for a refusal apart, curl 7.88 resends only
// when a connection breaks, and then writes down why, or when the server ends one in order right after it reset the
// stream. Read in its source, held to it by http2_retry_test.cc, and taken for granted of no other version.
bool CurlTransfer::WasRefused() const {
  return IsKnownCurl() && is_http2_ && error_text_[0] == '\0' && tls_ends_before_ == shared_.tls_ends;
}

int CurlTransfer::OnSocket(void*, curl_socket_t socket, curlsocktype) {
  // Best effort: a kernel without the option only finds a dead peer later.
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kTcpUserTimeoutMs, sizeof kTcpUserTimeoutMs);
  return CURL_SOCKOPT_OK;
}

}  // namespace kube
