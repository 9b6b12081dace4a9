// SPDX-License-Identifier: Apache-2.0
// A door between a client and a server on this machine that a test opens and shuts.
//
// While it is shut connections are refused, and those that were open are broken.
#pragma once

#include <thread>

namespace grus::testing {

class Relay {
 public:
  explicit Relay(int server_port);  // Shut. Throws if no port can be had.
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int port() const { return port_; }
  void Open();
  void Shut();

 private:
  int Bind();  // A socket with our port, or with any, which is then ours.
  void Run(int listener, int wake);

  const int server_port_;
  int port_ = 0;
  int socket_ = -1;  // Bound; listens while open.
  int wake_[2] = {-1, -1};
  std::jthread thread_;
};

}  // namespace grus::testing
