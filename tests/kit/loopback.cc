// SPDX-License-Identifier: Apache-2.0
#include "tests/kit/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace kube::testing {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

int WithoutDelay(int fd) {
  const int on = 1;
  if (fd >= 0) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

}  // namespace

int BindToLoopback(int& port, bool shares_port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (shares_port) {
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  }
  sockaddr_in address = Loopback(port);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || bind(fd, generic, size) != 0 || getsockname(fd, generic, &size) != 0) {
    throw std::runtime_error("no port of 127.0.0.1");
  }
  port = ntohs(address.sin_port);
  return fd;
}

int ListenOnLoopback(int& port) {
  const int fd = BindToLoopback(port);
  if (listen(fd, 512) != 0) throw std::runtime_error("cannot listen on 127.0.0.1");
  return fd;
}

int ConnectToLoopback(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return WithoutDelay(fd);
  close(fd);
  return -1;
}

int AcceptFrom(int listener) { return WithoutDelay(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)); }

}  // namespace kube::testing
