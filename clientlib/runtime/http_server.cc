// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/http_server.h"

#include <optional>
#include <thread>
#include <utility>

#include "clientlib/runtime/http_server_asio.h"
#include "clientlib/runtime/http_server_session.h"
#include "clientlib/runtime/http_server_tls.h"

namespace kube {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Handlers = std::map<std::string, HttpServer::Handler>;

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

boost::system::error_code Listen(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  boost::system::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error && endpoint.address() == asio::ip::address_v6::any()) {
    acceptor.set_option(asio::ip::v6_only(false), error);
  }
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    boost::system::error_code ignored;
    acceptor.close(ignored);
  }
  return error;
}

}  // namespace

struct HttpServer::Impl {
  Impl(Handlers handlers, const HttpServerLimits& limits, CertificateSource certificates, HttpClientTrust clients)
      : sessions{.routes = HttpRoutes(std::move(handlers)), .limits = limits} {
    if (certificates) tls.emplace(std::move(certificates), std::move(clients));
  }
  ~Impl() {
    io.stop();
    if (thread.joinable()) thread.join();
    if (!pool) return;
    pool->stop();  // What no thread has begun to answer is dropped.
    pool->join();
  }

  void Run() {
    if (sessions.limits.threads > 1) {
      pool.emplace(static_cast<std::size_t>(sessions.limits.threads));
      sessions.pool = &*pool;
    }
    Accept();
    thread = std::thread([this] { io.run(); });
  }

  void Accept() {
    acceptor.async_accept([this](boost::system::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      const bool is_full = !error && sessions.waiting.size() + sessions.answered.size() >= sessions.limits.connections;
      const bool makes_room = (is_full || error == asio::error::no_descriptors) && !sessions.waiting.empty();
      if (makes_room) sessions.waiting.front()->Close();
      if (!error) {
        if (!is_full || makes_room) Serve(std::move(socket));
        return Accept();
      }
      // Out of file descriptors, most likely: try again when some may have been closed.
      retry.expires_after(std::chrono::milliseconds(100));
      retry.async_wait([this](boost::system::error_code aborted) {
        if (!aborted) Accept();
      });
    });
  }

  void Serve(tcp::socket socket) {
    if (!tls) return StartSession(std::move(socket), sessions, nullptr);
    (void)tls->Refresh(std::chrono::steady_clock::now());  // The sources tell of their errors; what was may still do.
    StartSession(std::move(socket), sessions, tls->context());
  }

  HttpSessions sessions;
  std::optional<HttpServerTls> tls;  // None: no TLS.
  asio::io_context io{1};            // Destroyed before `sessions`, which its sessions use.
  tcp::acceptor acceptor{io};
  int port = 0;
  asio::steady_timer retry{io};
  std::optional<asio::thread_pool> pool;  // Its tasks have sessions of `io`.
  std::thread thread;
};

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, Handlers handlers,
                                                      HttpServerLimits limits, CertificateSource certificates,
                                                      HttpClientTrust clients) {
  const std::optional<HostPort> split = SplitAddress(address);
  if (!split) {
    return Error(ErrorCode::kInvalidArgument,
                 "listen on " + address + ": want host:port, :port or [v6]:port, with a port up to 65535");
  }
  if (clients.ca && !certificates) {
    return Error(ErrorCode::kInvalidArgument, "serve on " + address + ": clients' certificates need TLS");
  }
  auto impl = std::make_unique<Impl>(std::move(handlers), limits, std::move(certificates), std::move(clients));
  if (impl->tls) {
    if (Status ready = impl->tls->Refresh(std::chrono::steady_clock::now()); !ready) {
      return std::move(ready).error().with("serve TLS on " + address);
    }
  }
  boost::system::error_code error;
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
  impl->Run();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

int HttpServer::port() const { return impl_->port; }

}  // namespace kube
