// SPDX-License-Identifier: Apache-2.0
// The connections of a server: what they share, and how one begins.
#pragma once

#include <list>
#include <memory>

#include "clientlib/runtime/http_routes.h"
#include "clientlib/runtime/http_server.h"
#include "clientlib/runtime/http_server_asio.h"
#include "clientlib/runtime/http_server_body.h"

namespace kube {

class ClosableSession {
 public:
  virtual ~ClosableSession() = default;
  virtual void Close() = 0;
};

// Used by the thread that moves bytes only; other threads call handlers of `routes`.
struct HttpSessions {
  const HttpRoutes routes;
  const HttpServerLimits limits;
  BodyBudget bodies{limits.bodies_bytes};
  // Those that are open: the one that has waited longest for its request first; and those whose request a thread of the
  // pool answers. These are not closed by us: `pool` has no more in its queue than connections are allowed.
  std::list<ClosableSession*> waiting{};
  std::list<ClosableSession*> answered{};
  boost::asio::thread_pool* pool = nullptr;  // Null: handlers run on the thread that moves bytes.
};

// Reads and answers requests until either side closes the connection. `tls` null: without TLS.
void StartSession(boost::asio::ip::tcp::socket socket, HttpSessions& sessions,
                  std::shared_ptr<boost::asio::ssl::context> tls);

}  // namespace kube
