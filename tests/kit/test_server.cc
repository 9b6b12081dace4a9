// SPDX-License-Identifier: Apache-2.0
#include "tests/kit/test_server.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "clientlib/base/lower_case.h"
#include "tests/kit/certificates.h"
#include "tests/kit/loopback.h"

namespace kube::testing {
namespace {

std::shared_ptr<SSL_CTX> MakeTls(const TestServer::Options& options) {
  if (options.cert_pem.empty()) return nullptr;
  std::shared_ptr<SSL_CTX> tls = ServerTls({options.cert_pem, options.key_pem});
  if (!options.client_ca_pem.empty()) {
    std::shared_ptr<BIO> bio(BIO_new_mem_buf(options.client_ca_pem.data(), -1), BIO_free);
    X509* ca = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(tls.get()), ca);
    X509_free(ca);
    SSL_CTX_set_verify(tls.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  if (options.newest_tls != 0) {
    // What is older than TLS 1.2 is out of bounds for OpenSSL's usual level of security.
    SSL_CTX_set_security_level(tls.get(), 0);
    SSL_CTX_set_min_proto_version(tls.get(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(tls.get(), options.newest_tls);
  }
  return tls;
}

TestRequest ParseHead(const std::string& head) {
  TestRequest request;
  const std::size_t method_end = head.find(' ');
  const std::size_t target_end = head.find(' ', method_end + 1);
  request.method = head.substr(0, method_end);
  request.target = head.substr(method_end + 1, target_end - method_end - 1);
  std::size_t at = head.find("\r\n");
  while (at != std::string::npos && at + 2 < head.size()) {
    const std::size_t end = head.find("\r\n", at + 2);
    const std::string line = head.substr(at + 2, end - at - 2);
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) {
      request.headers.emplace_back(kube::LowerCase(line.substr(0, colon)), line.substr(colon + 2));
    }
    at = end;
  }
  return request;
}

std::string Head(int status, const TestConnection::Headers& headers) {
  std::string head = "HTTP/1.1 " + std::to_string(status) + " Test\r\n";
  for (const auto& [name, value] : headers) head.append(name).append(": ").append(value).append("\r\n");
  return head;
}

}  // namespace

std::string TestRequest::Header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) return value;
  }
  return {};
}

void TestConnection::Respond(int status, std::string_view body, const Headers& headers) {
  Raw(Head(status, headers) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
}

void TestConnection::StartChunks(int status, const Headers& headers) {
  Raw(Head(status, headers) + "Transfer-Encoding: chunked\r\n\r\n");
}

void TestConnection::Chunk(std::string_view bytes) {
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  Raw(std::string(size) + std::string(bytes) + "\r\n");
}

class TestServer::Connection final : public TestConnection {
 public:
  Connection(int fd, TestServer& server) : fd_(fd), server_(server), thread_([this] { Run(); }) {}
  ~Connection() override {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
  }

  void Raw(std::string_view bytes) override {
    while (!bytes.empty() && is_open_) {
      const auto sent = ssl_ ? SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()))
                             : static_cast<int>(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
      if (sent <= 0) {
        is_open_ = false;
        return;
      }
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  void Close() override {
    is_open_ = false;
    shutdown(fd_, SHUT_RDWR);
  }
  void AwaitClosing() override {
    while (Fill()) buffer_.clear();
  }
  void Tunnel(int port) override {
    const int other = ConnectToLoopback(port);
    Raw(other < 0 ? "HTTP/1.1 502 Test\r\n\r\n" : "HTTP/1.1 200 Test\r\n\r\n");
    while (other >= 0) {
      pollfd fds[] = {{fd_, POLLIN, 0}, {other, POLLIN, 0}};
      const bool has_more = ssl_ && SSL_pending(ssl_.get()) > 0;
      if (poll(fds, 2, has_more ? 0 : -1) < 0) continue;
      char bytes[16384];
      if (has_more || fds[0].revents != 0) {
        if (!Fill()) break;
        send(other, buffer_.data(), buffer_.size(), MSG_NOSIGNAL);
        buffer_.clear();
      }
      if (fds[1].revents != 0) {
        const ssize_t got = recv(other, bytes, sizeof bytes, 0);
        if (got <= 0) break;
        Raw({bytes, static_cast<std::size_t>(got)});
      }
    }
    if (other >= 0) close(other);
    Close();
  }

 private:
  void Run() {
    if (server_.tls_) {
      ssl_.reset(SSL_new(server_.tls_.get()), SSL_free);
      SSL_set_fd(ssl_.get(), fd_);
      if (SSL_accept(ssl_.get()) != 1) return Close();
      if (SSL_session_reused(ssl_.get()) == 1) ++server_.resumed_sessions_;
    }
    while (is_open_) {
      const std::optional<TestRequest> request = ReadRequest();
      if (!request) break;
      server_.handler_(*request, *this);
    }
    Close();
  }

  bool Fill() {
    char bytes[16384];
    const auto got =
        ssl_ ? SSL_read(ssl_.get(), bytes, sizeof bytes) : static_cast<int>(recv(fd_, bytes, sizeof bytes, 0));
    if (got <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }

  std::optional<TestRequest> ReadRequest() {
    std::size_t end;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (!Fill()) return std::nullopt;
    }
    TestRequest request = ParseHead(buffer_.substr(0, end + 2));
    buffer_.erase(0, end + 4);
    const std::string length = request.Header("content-length");
    const std::size_t size = length.empty() ? 0 : std::stoul(length);
    while (buffer_.size() < size) {
      if (!Fill()) return std::nullopt;
    }
    request.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return request;
  }

  const int fd_;
  TestServer& server_;
  std::shared_ptr<SSL> ssl_;
  std::string buffer_;
  bool is_open_ = true;
  std::thread thread_;  // Last: it uses the members above.
};

TestServer::TestServer(const Options& options, Handler handler)
    : handler_(std::move(handler)), tls_(MakeTls(options)), listener_(ListenOnLoopback(port_)) {
  // OpenSSL writes to sockets without MSG_NOSIGNAL.
  std::signal(SIGPIPE, SIG_IGN);
  acceptor_ = std::thread([this] { Accept(); });
}

TestServer::~TestServer() {
  is_stopping_ = true;
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  close(listener_);
  open_.clear();
}

std::string TestServer::url() const {
  return (tls_ ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port_);
}

void TestServer::Accept() {
  while (!is_stopping_) {
    const int fd = AcceptFrom(listener_);
    if (fd < 0) break;
    ++connections_;
    std::lock_guard lock(mutex_);
    open_.push_back(std::make_unique<Connection>(fd, *this));
  }
}

ClosedPort::ClosedPort() : socket_(BindToLoopback(port_)) {}

ClosedPort::~ClosedPort() { close(socket_); }

}  // namespace kube::testing
