// SPDX-License-Identifier: Apache-2.0
// From the command line to a client that talks to the API server.
#pragma once

#include <memory>
#include <stop_token>

#include "clientlib/auth/token_source.h"
#include "clientlib/client/client.h"
#include "clientlib/http/curl_transport.h"
#include "controllers/manager/options.h"

namespace grus {

// Everything that a connection needs, in the order in which it must be destroyed. Not movable.
struct Connection {
  kube::ClientConfig config;
  std::unique_ptr<kube::CurlTransport> transport;
  std::unique_ptr<kube::TokenSource> tokens;
  std::unique_ptr<kube::Client> client;        // For all but leases.
  std::unique_ptr<kube::Client> lease_client;  // On a connection of its own.
};

// Reads the configuration; no network. `observer` may be null.
kube::Result<std::unique_ptr<Connection>> MakeConnection(const Options& options, const kube::Clock& clock,
                                                         kube::RequestObserver* observer);

// Waits until the API server answers and serves all our kinds. What waiting may mend is logged, one line a try;
// what it cannot is the error: a certificate that is not trusted, credentials that are refused. `ns`: one in which we
// may list our kinds; empty: all.
kube::Status WaitForServer(Connection& connection, const std::string& ns, const kube::Clock& clock,
                           const kube::Log& log, std::stop_token stop);

}  // namespace grus
