// SPDX-License-Identifier: Apache-2.0
#include "bench/peers/peer.h"

#include <cstdlib>
#include <iostream>
#include <utility>

namespace bench {

void Say(const std::string& line) { std::cout << line << std::endl; }

void Await() {
  std::string line;
  if (!std::getline(std::cin, line)) std::_Exit(1);
}

std::unique_ptr<kube::Connection> ConnectOrExit(const std::string& kubeconfig, const kube::Clock& clock) {
  auto connection = kube::Connect({.kubeconfig = kubeconfig, .user_agent = "bench-peers"}, clock);
  if (connection) return *std::move(connection);
  std::cerr << connection.error().message() << "\n";
  std::exit(1);
}

}  // namespace bench
