// SPDX-License-Identifier: Apache-2.0
// A network between clients and a server on this machine that a test opens, shuts and breaks.
//
// While it is shut connections are refused, and those that were open are broken. Used by one thread.
#pragma once

#include <mutex>
#include <thread>
#include <vector>

namespace kit {

class Relay {
 public:
  enum class Fault {
    kFreeze,  // Bytes are taken and acknowledged but go no further, as behind a proxy that hangs.
    kDrop,    // What the client sends is not even acknowledged, as when the way to the server is gone.
  };

  explicit Relay(int server_port);  // Shut. Throws if no port can be had.
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int port() const { return port_; }
  int connections() const;  // Accepted since the start.
  void Open();
  void Shut();

  // REQUIRES of all: it is open.
  void BreakOpenOnes(Fault fault);  // Connections that are made later work.
  void BreakAll(Fault fault);       // Also those that are made until Heal().
  void Heal();                      // Everything flows again, also what was held back.

 private:
  struct Pair {
    int client;
    int server;
    bool is_broken;
  };

  void Break(Fault fault);  // REQUIRES: mutex_ is held.
  void Wake() const;
  void Run();
  void Accept();  // REQUIRES: mutex_ is held.

  const int server_port_;
  int port_ = 0;
  int socket_ = -1;  // Bound; listens while open.
  int wake_ = -1;

  mutable std::mutex mutex_;  // Guards everything below but thread_.
  std::vector<Pair> pairs_;
  int accepted_ = 0;
  bool is_shut_ = true;
  bool freezes_new_ones_ = false;

  std::jthread thread_;
};

}  // namespace kit
