// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/relay.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace grus::testing {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

[[noreturn]] void Fail(const char* what) { throw std::runtime_error(std::string(what) + ": " + std::strerror(errno)); }

// Moves what is there to read; false at the end of either side.
bool Move(int from, int to) {
  char buffer[65536];
  const ssize_t count = read(from, buffer, sizeof buffer);
  if (count <= 0) return false;
  for (ssize_t sent = 0; sent < count;) {
    const ssize_t part = send(to, buffer + sent, static_cast<std::size_t>(count - sent), MSG_NOSIGNAL);
    if (part <= 0) return false;
    sent += part;
  }
  return true;
}

}  // namespace

Relay::Relay(int server_port) : server_port_(server_port), socket_(Bind()) {}

Relay::~Relay() {
  Shut();
  close(socket_);
}

int Relay::Bind() {
  const int bound = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(bound, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(bound, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  sockaddr_in address = Loopback(port_);
  socklen_t size = sizeof address;
  if (bind(bound, reinterpret_cast<sockaddr*>(&address), size) != 0) Fail("bind");
  if (getsockname(bound, reinterpret_cast<sockaddr*>(&address), &size) != 0) Fail("getsockname");
  port_ = ntohs(address.sin_port);
  return bound;
}

void Relay::Open() {
  if (listen(socket_, 64) != 0) Fail("listen");
  if (pipe2(wake_, O_CLOEXEC) != 0) Fail("pipe");
  thread_ = std::jthread([this, listener = socket_, wake = wake_[0]] { Run(listener, wake); });
}

void Relay::Shut() {
  if (!thread_.joinable()) return;
  close(wake_[1]);  // Its end is what the thread waits for.
  thread_.join();
  close(wake_[0]);
  // Bound again before it is given up: the port lies where the kernel takes those of outgoing connections from.
  const int next = Bind();
  close(socket_);
  socket_ = next;
}

void Relay::Run(int listener, int wake) {
  // fds[0] is the wake-up, fds[1] the listener, then pairs: client, server.
  std::vector<pollfd> fds = {{wake, POLLIN, 0}, {listener, POLLIN, 0}};
  for (;;) {
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[0].revents != 0) break;
    for (std::size_t i = 2; i + 1 < fds.size();) {
      const bool is_open = (fds[i].revents == 0 || Move(fds[i].fd, fds[i + 1].fd)) &&
                           (fds[i + 1].revents == 0 || Move(fds[i + 1].fd, fds[i].fd));
      if (is_open) {
        i += 2;
        continue;
      }
      close(fds[i].fd);
      close(fds[i + 1].fd);
      fds.erase(fds.begin() + static_cast<std::ptrdiff_t>(i), fds.begin() + static_cast<std::ptrdiff_t>(i) + 2);
    }
    if (fds[1].revents == 0) continue;
    const int client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(server_port_);
    if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      close(client);
      close(server);
      continue;
    }
    fds.push_back({client, POLLIN, 0});
    fds.push_back({server, POLLIN, 0});
  }
  for (std::size_t i = 2; i < fds.size(); ++i) close(fds[i].fd);
}

}  // namespace grus::testing
