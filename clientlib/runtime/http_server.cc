// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/http_server.h"

// Asio's fences order the threads of one io_context; ours has one thread. ThreadSanitizer does not support fences, and
// g++ refuses to compile them with it.
#define BOOST_ASIO_DISABLE_FENCED_BLOCK

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <list>
#include <optional>
#include <thread>
#include <utility>

namespace kube {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using Handlers = std::map<std::string, HttpServer::Handler>;

constexpr std::size_t kDrainStep = 4096;
constexpr std::size_t kMaxDrained = 64UL << 10;
constexpr std::chrono::minutes kCertificateAge(1);

using Plain = beast::tcp_stream;
using Tls = beast::ssl_stream<beast::tcp_stream>;

class Closable {
 public:
  virtual ~Closable() = default;
  virtual void Close() = 0;
};

struct Shared {  // Used by the server's thread only.
  const Handlers handlers;
  const HttpServerLimits limits;
  std::list<Closable*> sessions;  // Those that are open, the one that has waited longest for its request first.
};

// One connection: reads and answers requests until either side closes it. The pending operation owns the session.
template <typename Stream>
class Session : public Closable, public std::enable_shared_from_this<Session<Stream>> {
 public:
  template <typename... Context>
  Session(tcp::socket socket, Shared& shared, Context&... tls)
      : stream_(std::move(socket), tls...),
        shared_(shared),
        place_(shared.sessions.insert(shared.sessions.end(), this)) {}
  ~Session() override { Leave(); }

  // Its pending operation fails and then destroys it.
  void Close() override {
    Leave();
    lowest().close();
  }

  void Start() {
    if constexpr (std::is_same_v<Stream, Tls>) {
      lowest().expires_after(shared_.limits.time);
      stream_.async_handshake(ssl::stream_base::server, [self = Self()](beast::error_code error) {
        if (!error) self->Read();
      });
    } else {
      Read();
    }
  }

 private:
  enum class After { kNextRequest, kClose, kDrain };

  std::shared_ptr<Session> Self() { return this->shared_from_this(); }
  beast::tcp_stream& lowest() { return beast::get_lowest_layer(stream_); }

  void Read() {
    // The parser accepts no body, so a request takes no more memory than its header.
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_.limits.header_bytes));
    lowest().expires_after(shared_.limits.time);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = Self()](beast::error_code error, std::size_t) { self->AfterRead(error); });
  }

  void Leave() {
    if (place_ != shared_.sessions.end()) shared_.sessions.erase(place_);
    place_ = shared_.sessions.end();
  }

  void AfterRead(beast::error_code error) {
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      return Refuse(http::status::request_header_fields_too_large);
    }
    const bool is_http_error = error && error.category() == make_error_code(http::error::bad_method).category();
    if (is_http_error && error != http::error::end_of_stream && error != http::error::partial_message) {
      return Refuse(http::status::bad_request);
    }
    if (error) return;                             // Closed, broken or too slow.
    if (place_ == shared_.sessions.end()) return;  // Closed by us, though the request came meanwhile.
    shared_.sessions.splice(shared_.sessions.end(), shared_.sessions, place_);

    const auto& request = parser_->get();
    const bool is_head = request.method() == http::verb::head;
    if (request.method() != http::verb::get && !is_head) return Refuse(http::status::method_not_allowed);
    // A body has no meaning here, and unread it would be parsed as the next request.
    if (parser_->chunked() || parser_->content_length().value_or(0) > 0) return Refuse(http::status::bad_request);
    if (request.version() >= 11 && request.count(http::field::host) != 1) {
      return Refuse(http::status::bad_request);  // RFC 9112, 3.2
    }
    Write(Answer(request.target(), request[http::field::authorization]), is_head,
          request.keep_alive() ? After::kNextRequest : After::kClose);
  }

  HttpReply Answer(std::string_view target, std::string_view authorization) const {
    const std::size_t path_end = std::min(target.find('?'), target.size());
    const auto handler = shared_.handlers.find(std::string(target.substr(0, path_end)));
    if (handler == shared_.handlers.end()) return {.status = 404, .body = "not found\n"};
    const std::string_view query = target.substr(std::min(path_end + 1, target.size()));
    try {
      return handler->second({std::string(query), std::string(authorization)});
    } catch (const std::exception& e) {  // A bug, but not one to end the process for.
      return {.status = 500, .body = std::string("exception: ") + e.what() + "\n"};
    }
  }

  // Answers and closes the connection: the request was not read to its end.
  void Refuse(http::status status) {
    HttpReply reply{.status = static_cast<int>(status)};
    reply.body.append(http::obsolete_reason(status)) += '\n';
    Write(std::move(reply), false, After::kDrain);
  }

  void Write(HttpReply reply, bool is_head, After after) {
    response_ = {};
    response_.version(11);
    response_.result(static_cast<unsigned>(reply.status));
    response_.set(http::field::content_type, reply.content_type);
    if (response_.result() == http::status::unauthorized) response_.set(http::field::www_authenticate, "Bearer");
    if (response_.result() == http::status::method_not_allowed) response_.set(http::field::allow, "GET, HEAD");
    response_.keep_alive(after == After::kNextRequest);
    response_.content_length(reply.body.size());  // For HEAD too, whose body is not sent.
    if (!is_head) response_.body() = std::move(reply.body);
    lowest().expires_after(shared_.limits.write_time);
    http::async_write(stream_, response_, [self = Self(), after](beast::error_code error, auto) {
      self->response_ = {};
      if (error) return;
      if (after == After::kNextRequest) return self->Read();
      self->EndSending(after);
    });
  }

  // Fails if the peer has closed.
  void EndSending(After after) {
    const auto then = [self = Self(), after](beast::error_code) {
      beast::error_code ignored;
      self->lowest().socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
      if (after == After::kDrain) self->Drain(kMaxDrained);
    };
    if constexpr (std::is_same_v<Stream, Tls>) {
      stream_.async_shutdown(then);
    } else {
      then({});
    }
  }

  // Reads what the peer still sends. Closing with unread bytes resets the connection, and the peer may lose our answer.
  void Drain(std::size_t left) {
    buffer_.clear();
    lowest().async_read_some(buffer_.prepare(kDrainStep),
                             [self = Self(), left](beast::error_code error, std::size_t taken) {
                               if (!error && taken < left) self->Drain(left - taken);
                             });
  }

  Stream stream_;
  Shared& shared_;
  std::list<Closable*>::iterator place_;  // Its own in `sessions`; their end once it is closed.
  beast::flat_buffer buffer_{2 * shared_.limits.header_bytes + kDrainStep};
  std::optional<http::request_parser<http::empty_body>> parser_;
  http::response<http::string_body> response_;
};

struct HostPort {
  std::string host;  // Empty: all addresses.
  std::string port;
};

std::optional<HostPort> SplitAddress(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  HostPort out{address.substr(0, colon), address.substr(colon + 1)};
  if (out.host.size() >= 2 && out.host.front() == '[' && out.host.back() == ']') {
    out.host = out.host.substr(1, out.host.size() - 2);
  } else if (out.host.find(':') != std::string::npos) {
    return std::nullopt;  // An IPv6 address needs brackets.
  }
  const bool is_number =
      !out.port.empty() && out.port.size() <= 5 && out.port.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number || std::stoi(out.port) > 65535) return std::nullopt;
  return out;
}

beast::error_code Listen(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  beast::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error && endpoint.address() == asio::ip::address_v6::any()) {
    acceptor.set_option(asio::ip::v6_only(false), error);
  }
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    beast::error_code ignored;
    acceptor.close(ignored);
  }
  return error;
}

// Errors do not contain the key.
Result<std::shared_ptr<ssl::context>> TlsContext(const CertificatePair& certificate) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  beast::error_code error;
  context->use_certificate_chain(asio::buffer(certificate.cert_pem), error);
  if (error) return Error(ErrorCode::kInvalidArgument, "not a certificate in PEM: " + error.message());
  context->use_private_key(asio::buffer(certificate.key_pem), ssl::context::pem, error);
  if (error) return Error(ErrorCode::kInvalidArgument, "not the certificate's key in PEM: " + error.message());
  return context;
}

}  // namespace

struct HttpServer::Impl {
  Impl(Handlers handlers, HttpServerLimits limits, CertificateSource source)
      : shared{std::move(handlers), limits, {}}, certificates(std::move(source)) {}
  ~Impl() {
    io.stop();
    if (thread.joinable()) thread.join();
  }

  void Accept() {
    acceptor.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      const bool is_full = !error && shared.sessions.size() >= shared.limits.connections;
      const bool makes_room = is_full || error == asio::error::no_descriptors;
      if (makes_room && !shared.sessions.empty()) shared.sessions.front()->Close();
      if (!error && certificates) {
        (void)RefreshCertificate();  // The source tells of its errors; the one before may still be good.
        std::make_shared<Session<Tls>>(std::move(socket), shared, *tls)->Start();
        return Accept();
      }
      if (!error) {
        std::make_shared<Session<Plain>>(std::move(socket), shared)->Start();
        return Accept();
      }
      // Out of file descriptors, most likely: try again when some may have been closed.
      retry.expires_after(std::chrono::milliseconds(100));
      retry.async_wait([this](beast::error_code aborted) {
        if (!aborted) Accept();
      });
    });
  }

  Status RefreshCertificate() {
    const auto now = std::chrono::steady_clock::now();
    if (tls && now - read_at < kCertificateAge) return {};
    read_at = now;
    const Result<CertificatePair> read = certificates();
    if (!read) return read.error();
    if (tls && read->cert_pem == in_use.cert_pem && read->key_pem == in_use.key_pem) return {};
    Result<std::shared_ptr<ssl::context>> made = TlsContext(*read);
    if (!made) return std::move(made).error();
    tls = *std::move(made);  // A session keeps its own SSL, which keeps what it needs of the context before.
    in_use = *read;
    return {};
  }

  Shared shared;
  const CertificateSource certificates;  // Null: no TLS.
  CertificatePair in_use;
  std::shared_ptr<ssl::context> tls;
  std::chrono::steady_clock::time_point read_at;
  asio::io_context io{1};  // Destroyed before `shared`, which its sessions use.
  tcp::acceptor acceptor{io};
  int port = 0;
  asio::steady_timer retry{io};
  std::thread thread;
};

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, Handlers handlers,
                                                      HttpServerLimits limits, CertificateSource certificates) {
  const std::optional<HostPort> split = SplitAddress(address);
  if (!split) {
    return Error(ErrorCode::kInvalidArgument,
                 "listen on " + address + ": want host:port, :port or [v6]:port, with a port up to 65535");
  }
  auto impl = std::make_unique<Impl>(std::move(handlers), limits, std::move(certificates));
  if (impl->certificates) {
    if (Status ready = impl->RefreshCertificate(); !ready) {
      return std::move(ready).error().with("serve TLS on " + address);
    }
  }
  beast::error_code error;
  if (split->host.empty()) {
    const auto port = static_cast<std::uint16_t>(std::stoi(split->port));
    error = Listen(impl->acceptor, {tcp::v6(), port});
    // A host without IPv6.
    if (error == asio::error::address_family_not_supported || error == asio::error::no_protocol_option) {
      error = Listen(impl->acceptor, {tcp::v4(), port});
    }
  } else {
    tcp::resolver resolver(impl->io);
    const auto found =
        resolver.resolve(split->host, split->port, tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (!error) error = Listen(impl->acceptor, found.begin()->endpoint());
  }
  if (error) return Error(ErrorCode::kUnavailable, error.message()).with("listen on " + address);

  impl->port = impl->acceptor.local_endpoint().port();
  impl->Accept();
  impl->thread = std::thread([&io = impl->io] { io.run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

int HttpServer::port() const { return impl_->port; }

}  // namespace kube
