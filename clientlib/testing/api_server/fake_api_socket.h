// SPDX-License-Identifier: Apache-2.0
// Serves a FakeApiServer over plain HTTP/1.1 on a port of 127.0.0.1: for kubectl, and for clients in other processes.
//
//   kubectl --server "$URL" get pods
//
// Uses a thread for each connection. Thread-safe. The destructor breaks all connections.
#pragma once

#include <memory>
#include <string>

#include "clientlib/base/result.h"
#include "clientlib/testing/api_server/fake_api_server.h"

namespace kube::testing {

class FakeApiSocket {
 public:
  // `server` must outlive it; its clock should run in real time. `port` 0: any free port. Errors: kUnavailable.
  static Result<std::unique_ptr<FakeApiSocket>> Open(FakeApiServer& server, int port = 0);
  ~FakeApiSocket();

  int port() const;
  std::string url() const;  // "http://127.0.0.1:PORT"

 private:
  struct Impl;
  explicit FakeApiSocket(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kube::testing
