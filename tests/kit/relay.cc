// SPDX-License-Identifier: Apache-2.0
#include "tests/kit/relay.h"

#include <linux/filter.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "tests/kit/loopback.h"

namespace kit {
namespace {

using kube::testing::BindToLoopback;
using kube::testing::ConnectToLoopback;

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

// The kernel then throws away what comes in for this socket before TCP sees it. A connection takes it over from the
// socket that it is accepted from.
void DropIncoming(int socket) {
  sock_filter nothing_passes = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{1, &nothing_passes};
  if (setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) Fail("SO_ATTACH_FILTER");
}

// Fails if there is no filter, which is as good.
void LetIncomingPass(int socket) {
  const int unused = 0;
  setsockopt(socket, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused);
}

}  // namespace

Relay::Relay(int server_port)
    : server_port_(server_port), socket_(BindToLoopback(port_, true)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) Fail("eventfd");
}

Relay::~Relay() {
  Shut();
  close(socket_);
  close(wake_);
}

int Relay::connections() const {
  std::lock_guard lock(mutex_);
  return accepted_;
}

void Relay::Open() {
  if (listen(socket_, 64) != 0) Fail("listen");
  is_shut_ = freezes_new_ones_ = false;
  thread_ = std::jthread([this] { Run(); });
}

void Relay::Shut() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    is_shut_ = true;
  }
  Wake();
  thread_.join();
  for (const Pair& pair : pairs_) {
    close(pair.client);
    close(pair.server);
  }
  pairs_.clear();
  // Bound again before it is given up: the port lies where the kernel takes those of outgoing connections from.
  const int next = BindToLoopback(port_, true);
  close(socket_);
  socket_ = next;
}

void Relay::BreakOpenOnes(Fault fault) {
  std::lock_guard lock(mutex_);
  Break(fault);
}

void Relay::BreakAll(Fault fault) {
  std::lock_guard lock(mutex_);
  Break(fault);
  freezes_new_ones_ = fault == Fault::kFreeze;
  if (fault == Fault::kDrop) DropIncoming(socket_);
}

void Relay::Break(Fault fault) {
  for (Pair& pair : pairs_) {
    pair.is_broken = true;
    if (fault == Fault::kDrop) DropIncoming(pair.client);
  }
  Wake();
}

void Relay::Heal() {
  std::lock_guard lock(mutex_);
  freezes_new_ones_ = false;
  LetIncomingPass(socket_);
  for (Pair& pair : pairs_) {
    pair.is_broken = false;
    LetIncomingPass(pair.client);
  }
  Wake();
}

void Relay::Wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof one);
}

void Relay::Run() {
  std::vector<pollfd> fds;  // The wake-up, the listener, then client and server of each pair.
  for (;;) {
    fds = {{wake_, POLLIN, 0}, {socket_, POLLIN, 0}};
    {
      std::lock_guard lock(mutex_);
      for (const Pair& pair : pairs_) {
        // poll() ignores negative ones.
        fds.push_back({pair.is_broken ? -1 : pair.client, POLLIN, 0});
        fds.push_back({pair.is_broken ? -1 : pair.server, POLLIN, 0});
      }
    }
    if (poll(fds.data(), fds.size(), -1) < 0) continue;

    std::lock_guard lock(mutex_);
    std::uint64_t wakes = 0;
    [[maybe_unused]] const auto got = read(wake_, &wakes, sizeof wakes);
    if (is_shut_) return;
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      const Pair pair = pairs_[i];
      if (pair.is_broken) continue;  // Since the poll.
      const bool is_open = (fds[2 + 2 * i].revents == 0 || Move(pair.client, pair.server)) &&
                           (fds[3 + 2 * i].revents == 0 || Move(pair.server, pair.client));
      if (is_open) continue;
      close(pair.client);
      close(pair.server);
      pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (fds[1].revents != 0) Accept();
  }
}

void Relay::Accept() {
  const int client = kube::testing::AcceptFrom(socket_);
  if (client < 0) return;
  ++accepted_;
  const int server = ConnectToLoopback(server_port_);
  if (server < 0) {
    close(client);
    return;
  }
  pairs_.push_back({client, server, freezes_new_ones_});
}

}  // namespace kit
