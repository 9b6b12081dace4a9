// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>

namespace kube::testing {

// A socket of a client that may behave badly. Reads fail after 20 s.
class RawConnection {
 public:
  explicit RawConnection(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval limit{20, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~RawConnection() { close(socket_); }
  RawConnection(const RawConnection&) = delete;

  bool is_connected() const { return is_connected_; }
  void Send(const std::string& bytes) { (void)send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }

  // Whether the server has answered or closed within `time`.
  bool AwaitNews(std::chrono::milliseconds time) const {
    pollfd event{socket_, POLLIN, 0};
    return poll(&event, 1, static_cast<int>(time.count())) > 0;
  }

  // Until `end` has come; without `end`, until the server closes.
  std::string Read(const std::string& end = {}) {
    std::string got;
    char bytes[4096];
    while (end.empty() || got.find(end) == std::string::npos) {
      const ssize_t n = recv(socket_, bytes, sizeof(bytes), 0);
      if (n < 0) return got + (errno == ECONNRESET ? "" : "<no answer in time>");
      if (n == 0) break;
      got.append(bytes, static_cast<std::size_t>(n));
    }
    return got;
  }

 private:
  int socket_;
  bool is_connected_ = false;
};

// One request, and all that comes until the server closes.
inline std::string Exchange(int port, const std::string& request) {
  RawConnection connection(port);
  connection.Send(request);
  return connection.Read();
}

}  // namespace kube::testing
