// SPDX-License-Identifier: Apache-2.0
// Makes a client of the API server from a kubeconfig or a pod's service account. Thread-safe; a connection is used by
// any number of threads.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "clientlib/auth/client_config.h"
#include "clientlib/auth/token_source.h"
#include "clientlib/base/log.h"
#include "clientlib/client/client.h"
#include "clientlib/http/curl_transport.h"

namespace kube {

struct ConnectOptions {
  std::string kubeconfig{};  // Empty: in a pod its service account, else as kubectl: $KUBECONFIG, ~/.kube/config.
  std::string context{};     // Empty: the kubeconfig's current one.
  std::string user_agent = "grus-clientlib";
  // Both may be null, and must outlive the connection. Replaced certificates are logged to `log`.
  RequestObserver* observer = nullptr;
  const Log* log = nullptr;
  std::optional<Duration> timeout{};        // Of `client`'s requests; none: its own.
  std::optional<std::size_t> body_limit{};  // Of an answer, in bytes; none: the transport's own.
};

// Everything that a connection needs. Each member uses those above it, so they must be destroyed in reverse. Not
// movable.
struct Connection {
  ClientConfig config;
  std::unique_ptr<CurlTransport> transport;
  std::unique_ptr<TokenSource> tokens;    // Also keeps the transport's certificates fresh.
  std::unique_ptr<Client> client;         // For all but leases.
  std::unique_ptr<Client> review_client;  // For who may do what. No SetWriteGate(): also asked by who does not lead.
  std::unique_ptr<Client> lease_client;   // For leader election: its own connection, a short timeout.
};

// Reads the configuration; no network. Errors: a missing or malformed file, an unknown context, an invalid certificate.
// Each names the file and what to do.
Result<std::unique_ptr<Connection>> Connect(const ConnectOptions& options, const Clock& clock);

}  // namespace kube
