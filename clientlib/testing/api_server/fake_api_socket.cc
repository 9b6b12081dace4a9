// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/fake_api_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <list>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "clientlib/testing/api_server/request.h"

namespace kube::testing {
namespace {

constexpr std::size_t kMaxRequest = 8UL << 20;
constexpr Duration kLook = std::chrono::milliseconds(500);  // How often a quiet watch checks for its client.

std::string Hex(std::size_t number) {
  char digits[20];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number, 16);
  return {digits, end};
}

HttpRequest ParseHead(std::string_view head) {
  HttpRequest request;
  const std::size_t method_end = head.find(' ');
  const std::size_t target_end = head.find(' ', method_end + 1);
  request.method = head.substr(0, method_end);
  request.target = head.substr(method_end + 1, target_end - method_end - 1);
  std::size_t at = head.find("\r\n");
  while (at != std::string_view::npos && at + 2 < head.size()) {
    const std::size_t end = std::min(head.find("\r\n", at + 2), head.size());
    const std::string_view line = head.substr(at + 2, end - at - 2);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos) {
      std::string_view value = line.substr(colon + 1);
      while (value.starts_with(' ')) value.remove_prefix(1);
      request.headers.emplace_back(line.substr(0, colon), value);
    }
    at = end;
  }
  return request;
}

// One client: requests one after the other, until either side closes the connection.
class Connection {
 public:
  Connection(int fd, FakeApiServer& server) : fd_(fd), server_(server), thread_([this] { Run(); }) {}
  ~Connection() {
    stop_.request_stop();
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
  }
  bool is_done() const { return is_done_; }

 private:
  void Run() {
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    while (const std::optional<HttpRequest> request = ReadRequest()) {
      Result<StreamResponse> response = server_.Open(*request, stop_.get_token());
      if (!response || !Answer(std::move(*response))) break;
    }
    shutdown(fd_, SHUT_RDWR);
    is_done_ = true;
  }

  bool Fill() {
    char bytes[16384];
    const ssize_t got = recv(fd_, bytes, sizeof bytes, 0);
    if (got <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(got));
    return buffer_.size() <= kMaxRequest;
  }

  std::optional<HttpRequest> ReadRequest() {
    std::size_t end;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (!Fill()) return std::nullopt;
    }
    HttpRequest request = ParseHead(std::string_view(buffer_).substr(0, end));
    buffer_.erase(0, end + 4);
    if (HeaderOf(request, "transfer-encoding") == "chunked") {
      if (!ReadChunks(request.body)) return std::nullopt;
      return request;
    }
    std::size_t size = 0;
    const std::string_view length = HeaderOf(request, "content-length");
    std::from_chars(length.data(), length.data() + length.size(), size);
    if (!Take(size, request.body)) return std::nullopt;
    return request;
  }

  bool Take(std::size_t size, std::string& to) {
    if (size > kMaxRequest) return false;
    while (buffer_.size() < size) {
      if (!Fill()) return false;
    }
    to.append(buffer_, 0, size);
    buffer_.erase(0, size);
    return true;
  }

  bool ReadChunks(std::string& body) {
    for (;;) {
      std::size_t end;
      while ((end = buffer_.find("\r\n")) == std::string::npos) {
        if (!Fill()) return false;
      }
      std::size_t size = 0;
      std::from_chars(buffer_.data(), buffer_.data() + end, size, 16);
      buffer_.erase(0, end + 2);
      std::string line_end;
      if (body.size() + size > kMaxRequest || !Take(size, body) || !Take(2, line_end)) return false;
      if (size == 0) return true;
    }
  }

  bool Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  bool IsClientGone() const {
    pollfd poll_fd{fd_, POLLIN | POLLRDHUP, 0};
    return poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
  }

  bool Answer(StreamResponse response) {
    std::string head = "HTTP/1.1 " + std::to_string(response.head.status) + " \r\n";
    for (const auto& [name, value] : response.head.headers) {
      head.append(name).append(": ").append(value).append("\r\n");
    }
    if (!response.stream) {
      head.append("Content-Length: ").append(std::to_string(response.head.body.size())).append("\r\n\r\n");
      return Write(head + response.head.body);
    }
    if (!Write(head.append("Transfer-Encoding: chunked\r\n\r\n"))) return false;
    const SystemClock clock;
    for (;;) {
      Result<std::string> bytes = response.stream->Read(clock.Now() + kLook, stop_.get_token());
      if (!bytes && bytes.error().code() == ErrorCode::kTimeout && !IsClientGone()) continue;
      if (!bytes) return false;
      if (bytes->empty()) return Write("0\r\n\r\n");
      if (!Write(Hex(bytes->size()).append("\r\n").append(*bytes).append("\r\n"))) return false;
    }
  }

  const int fd_;
  FakeApiServer& server_;
  std::stop_source stop_;
  std::string buffer_;
  std::atomic<bool> is_done_{false};
  std::thread thread_;  // Last: it uses the members above.
};

}  // namespace

struct FakeApiSocket::Impl {
  explicit Impl(FakeApiServer& its_server) : server(its_server) {}
  ~Impl() {
    shutdown(listener, SHUT_RDWR);
    if (acceptor.joinable()) acceptor.join();
    if (listener >= 0) close(listener);
  }

  void Accept() {
    for (;;) {
      const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      std::lock_guard lock(mutex);
      connections.remove_if([](const auto& connection) { return connection->is_done(); });
      connections.push_back(std::make_unique<Connection>(fd, server));
    }
  }

  FakeApiServer& server;
  int listener = -1;
  int port = 0;
  std::mutex mutex;  // Guards connections.
  std::list<std::unique_ptr<Connection>> connections;
  std::thread acceptor;
};

Result<std::unique_ptr<FakeApiSocket>> FakeApiSocket::Open(FakeApiServer& server, int port) {
  auto impl = std::make_unique<Impl>(server);
  impl->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(impl->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (impl->listener < 0 || bind(impl->listener, generic, size) != 0 || listen(impl->listener, 512) != 0 ||
      getsockname(impl->listener, generic, &size) != 0) {
    return Error(ErrorCode::kUnavailable, "cannot listen on 127.0.0.1:" + std::to_string(port));
  }
  impl->port = ntohs(address.sin_port);
  Impl& started = *impl;
  impl->acceptor = std::thread([&started] { started.Accept(); });
  return std::unique_ptr<FakeApiSocket>(new FakeApiSocket(std::move(impl)));
}

FakeApiSocket::FakeApiSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FakeApiSocket::~FakeApiSocket() = default;

int FakeApiSocket::port() const { return impl_->port; }
std::string FakeApiSocket::url() const { return "http://127.0.0.1:" + std::to_string(impl_->port); }

}  // namespace kube::testing
