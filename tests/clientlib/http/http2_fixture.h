// SPDX-License-Identifier: Apache-2.0
// A transport, a server that speaks HTTP/2, and a network between them that fails when a test wants it to.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "tests/clientlib/http/transport_fixture.h"
#include "tests/kit/http2_server.h"
#include "tests/kit/relay.h"

namespace kube::testing {

class Http2Fixture : public TransportFixture {
 protected:
  void StartServer(Http2Server::Handler handler) {
    server_ = std::make_unique<Http2Server>(ca_.Issue(), std::move(handler));
    network_ = std::make_unique<kit::Relay>(server_->port());
    network_->Open();
  }
  TransportOptions ThroughTheNetwork() const {
    return {.server = "https://127.0.0.1:" + std::to_string(network_->port()), .ca_pem = ca_.cert_pem()};
  }

  std::unique_ptr<Http2Server> server_;
  std::unique_ptr<kit::Relay> network_;
};

}  // namespace kube::testing
